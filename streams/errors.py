"""The root of the error tree.

    ForestallError
    ├── KeptFolderRefused      streams.errors       the folder of compiled code may hold what others have put there
    ├── StreamError            streams.errors       events, declarations, files, batches
    ├── PatternError           nfa.errors           pattern text, compilation, run state
    ├── ConstraintError        constraints.errors   constraint sets and their clashes
    ├── WorkflowError          workflows.errors     models and simulation
    ├── ShardError             shards.errors        entries and states of shards
    ├── PipelineError          pipeline.errors      log, Spark job, sinks
    └── ServiceError           service.errors       settings, stores, registry, delivery

An error names what is wrong, where, and what would be right. ``code`` is stable and part of the API; ``fault`` says who
can mend it; ``is_retryable`` says whether the same call may succeed later; ``details`` carries plain JSON values.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

Detail: TypeAlias = "str | int | float | bool | None | list[Detail] | dict[str, Detail]"
Fault = Literal["caller", "external", "internal"]


class ForestallError(Exception):
    """Base of every error that this project raises on purpose.

    Args:
        message: One sentence for a person: what, where, what would be right.
        details: Plain JSON values for a program.
    """

    code: ClassVar[str] = "error"
    fault: ClassVar[Fault] = "internal"
    is_retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class KeptFolderRefused(ForestallError):
    """The folder of compiled code belongs to another user, or others may write to it."""

    code: ClassVar[str] = "kept-folder-refused"
    fault: ClassVar[Fault] = "external"


class StreamError(ForestallError):
    """Something is wrong with an event, a stream declaration, an event file or a stored batch."""

    code: ClassVar[str] = "stream"
    fault: ClassVar[Fault] = "caller"


class EventRejected(StreamError):
    """An event cannot be taken: malformed, without key or time, or of the wrong type."""

    code: ClassVar[str] = "event-rejected"


class EventBreaksSchema(EventRejected):
    """The attributes of an event do not keep the schema of its type; the message names places and reasons."""

    code: ClassVar[str] = "schema-broken"


class DeclarationError(StreamError):
    """A stream declaration contradicts itself or misses a part."""

    code: ClassVar[str] = "stream-declaration"


class EventFileError(StreamError):
    """An event file cannot be read; the message names file and place."""

    code: ClassVar[str] = "event-file"


class ControlRecordError(StreamError):
    """A control record of the log cannot be read, or cannot take effect at its place."""

    code: ClassVar[str] = "control-record"


class BatchFormatError(StreamError):
    """Stored bytes are not a batch of a known version."""

    code: ClassVar[str] = "batch-format"
    fault: ClassVar[Fault] = "internal"

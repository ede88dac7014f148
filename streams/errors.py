"""The root of the error tree.

    ForestallError
    ├── KeptFolderRefused      streams.errors       other users may have written to the folder of compiled code
    ├── StateLost              streams.errors       a file that a saved state names is missing or damaged
    ├── StreamError            streams.errors       events, declarations, files, batches
    ├── PatternError           nfa.errors           pattern text, compilation, run state
    ├── ConstraintError        constraints.errors   constraint sets and their clashes
    ├── WorkflowError          workflows.errors     models and simulation
    ├── ShardError             shards.errors        entries and states of shards
    ├── PipelineError          pipeline.errors      log, Spark job, sinks
    ├── ServiceError           service.errors       settings, stores, registry, delivery
    └── ClientError            service.client       calls of a running service

The message of an error names the fault, its place, and the correction. ``code`` is stable and part of the API.
``fault`` names who can fix the error. ``is_retryable``: whether the same call may succeed later. ``details``: plain
JSON values.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

Detail: TypeAlias = "str | int | float | bool | None | list[Detail] | dict[str, Detail]"
Fault = Literal["caller", "external", "internal"]


class ForestallError(Exception):
    """Base of all errors that this project raises on purpose.

    The message is one sentence for people: the fault, its place, the correction. The details are plain JSON values for
    programs.
    """

    code: str = "error"
    fault: ClassVar[Fault] = "internal"
    is_retryable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str | None = None, fault: Fault | None = None, is_retryable: bool | None = None
    ) -> None:
        """Set the class attributes of an error class from its header, such as ``class X(Base, code="x")``."""
        super().__init_subclass__()
        cls.code = cls.code if code is None else code
        cls.fault = cls.fault if fault is None else fault
        cls.is_retryable = cls.is_retryable if is_retryable is None else is_retryable

    def __init__(self, message: str, **details: Detail) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class KeptFolderRefused(ForestallError, code="kept-folder-refused", fault="external"):
    """The folder of compiled code belongs to another user, or others may write to it."""


class StateLost(ForestallError, code="state-lost", fault="external"):
    """A file that a saved state names is missing or damaged. The state has to be rebuilt from an older one."""


class StreamError(ForestallError, code="stream", fault="caller"):
    """An event, a stream declaration, an event file or a stored batch is invalid."""


class EventRejected(StreamError, code="event-rejected"):
    """An event is rejected because it is malformed, lacks a key or a time, or has a type that is not allowed."""


class EventAhead(EventRejected, code="event-ahead"):
    """The time of an event is further ahead of the clock than its stream allows."""


class EventBreaksSchema(EventRejected, code="schema-broken"):
    """The attributes of an event violate the schema of its type; the message names each place and reason."""


class DeclarationError(StreamError, code="stream-declaration"):
    """A stream declaration contradicts itself or lacks a part."""


class EventFileError(StreamError, code="event-file"):
    """An event file cannot be read; the message names the file and the place."""


class ControlRecordError(StreamError, code="control-record"):
    """A control record of the log cannot be read, or cannot be applied at its place."""


class BatchFormatError(StreamError, code="batch-format", fault="internal"):
    """Stored bytes are not a batch of a known version."""

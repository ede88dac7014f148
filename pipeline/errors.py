"""Errors of the pipeline.

PipelineError
├── JavaMissing            no Java 17 or newer for Spark
├── LogUnreachable         Redis does not answer
├── LogDamaged             the log misses entries that have to be read
├── MatchLimitReached      more matches were completed at once than are told
├── RunLimitReached        a trace has more partial matches of a pattern than are kept
├── SourceOptionError      an option of the event-log source is missing or malformed
├── SavedStateError        saved state of a shard is damaged or of an unknown version
└── QueryFailed            the streaming query ended by an error
"""

from __future__ import annotations

from typing import ClassVar

from streams import Fault, ForestallError


class PipelineError(ForestallError):
    """Something is wrong in the log, the Spark job or the state of a shard."""

    code: ClassVar[str] = "pipeline"


class JavaMissing(PipelineError):
    """Spark needs Java 17 or newer and none was found."""

    code: ClassVar[str] = "java-missing"
    fault: ClassVar[Fault] = "external"


class LogUnreachable(PipelineError):
    """The event log does not answer, after all retries."""

    code: ClassVar[str] = "log-unreachable"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class LogDamaged(PipelineError):
    """Entries that have to be read are no longer in the log."""

    code: ClassVar[str] = "log-damaged"
    fault: ClassVar[Fault] = "external"


class MatchLimitReached(PipelineError):
    """More matches of a pattern were completed at once than are told; the rest is counted in a dead letter."""

    code: ClassVar[str] = "match-limit"
    fault: ClassVar[Fault] = "caller"


class RunLimitReached(PipelineError):
    """A trace has more partial matches of a pattern than are kept; matches may be missing."""

    code: ClassVar[str] = "run-limit"
    fault: ClassVar[Fault] = "caller"


class SourceOptionError(PipelineError):
    """An option of the event-log source is missing or malformed."""

    code: ClassVar[str] = "source-option"
    fault: ClassVar[Fault] = "caller"


class SavedStateError(PipelineError):
    """Saved state of a shard is damaged or of a version that this release does not know."""

    code: ClassVar[str] = "saved-state"


class QueryFailed(PipelineError):
    """The streaming query ended by an error; a restart goes on from its checkpoint."""

    code: ClassVar[str] = "query-failed"
    is_retryable: ClassVar[bool] = True

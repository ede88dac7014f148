"""Errors of the pipeline.

PipelineError
├── JavaMissing            no Java 17 or newer for Spark
├── ClusterUnready         no machine of a cluster came, or one lacks a package
├── LogUnreachable         Redis does not answer
├── LogDamaged             the log misses entries that have to be read
├── MatchLimitReached      more matches were completed at once than are told
├── RunLimitReached        a trace has more partial matches of a pattern than are kept
├── WorkLimitReached       a trace costs a pattern more work than is allowed
├── SourceOptionError      an option of the event-log source is missing or malformed
├── EventLate              an event came later than its stream allows
├── EntryQuarantined       an entry broke the matcher and was set aside
├── SavedStateError        saved state of a shard is damaged or of an unknown version
├── QueryFailed            the streaming query ended by an error
├── BacktestFailed         Spark gave up on a backtest
├── FeedFolderMissing      the folder of a feed is no folder, or cannot be listed
├── FeedDamaged            what a feed remembers of its input is gone or damaged
├── KafkaClientMissing     the package confluent-kafka is not installed
├── KafkaUnreachable       the brokers do not answer, or refuse
└── KafkaGap               records that have to be read are gone from the topic
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


class ClusterUnready(PipelineError):
    """No machine of a cluster came, or one lacks what the job needs."""

    code: ClassVar[str] = "cluster-unready"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


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


class WorkLimitReached(PipelineError):
    """The events of a trace met more partial matches of a pattern than they may: it is given up in that trace."""

    code: ClassVar[str] = "work-limit"
    fault: ClassVar[Fault] = "caller"


class SourceOptionError(PipelineError):
    """An option of the event-log source is missing or malformed."""

    code: ClassVar[str] = "source-option"
    fault: ClassVar[Fault] = "caller"


class EventLate(PipelineError):
    """An event came later than its stream allows."""

    code: ClassVar[str] = "late-event"
    fault: ClassVar[Fault] = "caller"


class EntryQuarantined(PipelineError):
    """An entry broke the matcher and was set aside; it stays in the log."""

    code: ClassVar[str] = "quarantined"


class SavedStateError(PipelineError):
    """Saved state of a shard is damaged or of a version that this release does not know."""

    code: ClassVar[str] = "saved-state"


class QueryFailed(PipelineError):
    """The streaming query ended by an error; a restart goes on from its checkpoint."""

    code: ClassVar[str] = "query-failed"
    is_retryable: ClassVar[bool] = True


class BacktestFailed(PipelineError):
    """Spark gave up on a backtest; the message says why."""

    code: ClassVar[str] = "backtest-failed"


class FeedFolderMissing(PipelineError):
    """The folder of a feed is no folder, or cannot be listed."""

    code: ClassVar[str] = "feed-folder"
    fault: ClassVar[Fault] = "caller"


class FeedDamaged(PipelineError):
    """What a feed remembers of its input is gone or damaged."""

    code: ClassVar[str] = "feed-damaged"
    fault: ClassVar[Fault] = "external"


class KafkaClientMissing(PipelineError):
    """The package confluent-kafka is not installed."""

    code: ClassVar[str] = "kafka-client"
    fault: ClassVar[Fault] = "caller"


class KafkaUnreachable(PipelineError):
    """The brokers do not answer, or refuse what is asked of them."""

    code: ClassVar[str] = "kafka-unreachable"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class KafkaGap(PipelineError):
    """Records that have to be read are gone from the topic: reading on would leave them out."""

    code: ClassVar[str] = "kafka-gap"
    fault: ClassVar[Fault] = "external"

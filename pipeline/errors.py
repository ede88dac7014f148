"""Errors of the pipeline.

PipelineError
├── JavaMissing            no Java 17 or newer for Spark
├── ClusterUnready         no machine of a cluster came, or one lacks a package
├── LogUnreachable         Redis does not answer
├── LogDamaged             the log misses entries that have to be read
├── SourceOptionError      an option of the event-log source is missing or malformed
├── QueryFailed            the streaming query ended by an error
├── BacktestFailed         Spark gave up on a backtest
├── FeedFolderMissing      the folder of a feed is not a folder, or cannot be listed
├── FeedDamaged            what a feed remembers of its input is gone or damaged
├── KafkaClientMissing     the package confluent-kafka is not installed
├── KafkaUnreachable       the brokers do not answer, or refuse
└── KafkaGap               records that have to be read are gone from the topic
"""

from __future__ import annotations

from typing import ClassVar

from streams import Fault, ForestallError


class PipelineError(ForestallError):
    """Something is wrong in the log or the Spark job."""

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


class SourceOptionError(PipelineError):
    """An option of the event-log source is missing or malformed."""

    code: ClassVar[str] = "source-option"
    fault: ClassVar[Fault] = "caller"


class QueryFailed(PipelineError):
    """The streaming query failed; after a restart it continues from its checkpoint."""

    code: ClassVar[str] = "query-failed"
    is_retryable: ClassVar[bool] = True


class BacktestFailed(PipelineError):
    """Spark gave up on a backtest; the message says why."""

    code: ClassVar[str] = "backtest-failed"


class FeedFolderMissing(PipelineError):
    """The folder of a feed is not a folder, or cannot be listed."""

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

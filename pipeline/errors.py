"""Errors of the pipeline."""

from __future__ import annotations

from streams import ForestallError


class PipelineError(ForestallError, code="pipeline"):
    """An error in the log or the Spark job."""


class JavaMissing(PipelineError, code="java-missing", fault="external"):
    """Spark needs Java 17 or newer and none was found."""


class ClusterUnready(PipelineError, code="cluster-unready", fault="external", is_retryable=True):
    """No machine of a cluster registered in time, or a machine lacks packages that the job needs."""


class LogUnreachable(PipelineError, code="log-unreachable", fault="external", is_retryable=True):
    """The event log does not answer, after all retries."""


class LogDamaged(PipelineError, code="log-damaged", fault="external"):
    """Entries that must be read are no longer in the log."""


class SourceOptionError(PipelineError, code="source-option", fault="caller"):
    """An option of the event-log source is missing or malformed."""


class QueryFailed(PipelineError, code="query-failed", is_retryable=True):
    """The streaming query failed; after a restart it continues from its checkpoint."""


class BacktestFailed(PipelineError, code="backtest-failed"):
    """A backtest ended before its history did. The message has the reason."""


class FeedFolderMissing(PipelineError, code="feed-folder", fault="caller"):
    """The folder of a feed is not a folder, or cannot be listed."""


class FeedDamaged(PipelineError, code="feed-damaged", fault="external"):
    """A feed's own records about its input are gone or damaged."""


class KafkaClientMissing(PipelineError, code="kafka-client", fault="caller"):
    """The package confluent-kafka is not installed."""


class KafkaUnreachable(PipelineError, code="kafka-unreachable", fault="external", is_retryable=True):
    """The brokers do not answer, or refuse a request."""


class KafkaGap(PipelineError, code="kafka-gap", fault="external"):
    """Records that must be read are no longer in the topic, so continuing would skip them."""

"""The service branch of the error tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from streams import ForestallError


class ServiceError(ForestallError, code="service"):
    """An error of the running service, or of a request to it."""


class SettingsInvalid(ServiceError, code="settings-invalid", fault="caller"):
    """The settings from the environment cannot be used. The message lists every fault."""


class NoServerBinary(ServiceError, code="no-redis-binary", fault="external"):
    """There is neither a Redis URL nor a server binary to start."""


class EmbeddedServerFailed(ServiceError, code="embedded-redis", fault="external"):
    """The private server does not start or does not answer."""


class DataFolderUnusable(ServiceError, code="data-folder", fault="caller"):
    """The data folder cannot be written, or another service uses it."""


class PortInUse(ServiceError, code="port-in-use", fault="caller"):
    """Another process listens on the API's port."""


class TracerMissing(ServiceError, code="tracer-missing", fault="external"):
    """Tracing is configured, but the packages of the extra ``otel`` are not installed."""


class StoreUnavailable(ServiceError, code="store-unavailable", fault="external", is_retryable=True):
    """Redis does not answer, or cannot accept writes now. The same call may succeed later."""


class StoreFull(StoreUnavailable, code="store-full"):
    """Redis has reached its ``maxmemory``, and accepts no writes until memory is freed."""


class TooManyListeners(ServiceError, code="too-many-listeners", fault="external", is_retryable=True):
    """The maximum number of clients already follows the alerts of this process."""


class LogFull(ServiceError, code="log-full", fault="external", is_retryable=True):
    """The backlog has reached a limit, so the log accepts no events at present.

    The details name the full limit (``events`` or ``bytes``), the ``backlog``, the ``limit`` and ``retry_after_s``.
    """


class LogResharding(ServiceError, code="log-resharding", fault="external", is_retryable=True):
    """The log is being divided into more shards, and accepts no records until this is done."""


class ReshardRefused(ServiceError, code="reshard-refused", fault="caller"):
    """The log cannot be divided into this number of shards, no log exists, or the service is running."""


class BackupRefused(ServiceError, code="backup-refused", fault="caller"):
    """A backup cannot be made or restored now: the service runs, data or the file exists, or no data exists."""


class BackupDamaged(ServiceError, code="backup-damaged", fault="external"):
    """A file is not a backup, is of another version, or is damaged."""


class RecordFormatError(ServiceError, code="record-format"):
    """A stored record is damaged or of a version that this release does not know."""


class StoreNewer(ServiceError, code="store-newer", fault="external"):
    """The stored data has the format of a newer release, which this release cannot read."""


class PreconditionFailed(ServiceError, code="precondition-failed", fault="caller"):
    """The stored record does not match the caller's condition. The detail ``etag`` is the tag of the stored record."""


class NotFound(ServiceError, code="not-found", fault="caller"):
    """A requested resource does not exist."""


class UnknownStream(NotFound, code="unknown-stream"):
    """No stream of that name is declared."""

    @classmethod
    def named(cls, stream: str) -> Self:
        """Return the error for the name of an undeclared stream."""
        return cls(f"there is no stream {stream!r}; declare it first (POST /v1/streams)", stream=stream)


class UnknownPatternName(NotFound, code="unknown-pattern"):
    """No pattern of that name is registered."""


class UnknownOperator(NotFound, code="unknown-operator"):
    """No operator of that kind and name is registered."""


class UnknownConstraints(NotFound, code="unknown-constraints"):
    """The stream has no constraint set."""


class UnknownWorkflow(NotFound, code="unknown-workflow"):
    """No workflow has that name, or it has no such version."""


class UnknownTable(NotFound, code="unknown-table"):
    """No reference table has that name."""


class NotFollowing(NotFound, code="not-following"):
    """The stream follows no workflow."""


class UnknownTrace(NotFound, code="unknown-trace"):
    """The log holds no event of the transaction, or no longer holds any."""


class UnknownBacktest(NotFound, code="unknown-backtest"):
    """No backtest has that id."""


class UnknownProject(NotFound, code="unknown-project"):
    """No project of that name was applied."""


class UnknownEventType(NotFound, code="unknown-event-type"):
    """An event type has no schema."""


class UnknownDeadLetter(NotFound, code="unknown-dead-letter"):
    """No dead letter with that id is kept."""


class UnknownAlert(NotFound, code="unknown-alert"):
    """No alert has that id."""


class UnknownIncident(NotFound, code="unknown-incident"):
    """No incident has that id, or it is no longer kept."""


class UnknownWebhook(NotFound, code="unknown-webhook"):
    """No webhook has that id."""


class UnknownSink(NotFound, code="unknown-sink"):
    """No sink has that id."""


class UnknownDelivery(NotFound, code="unknown-delivery"):
    """No delivery with that id is in a webhook's queue or log."""


class UnknownKey(NotFound, code="unknown-key"):
    """No API key has that id."""


class Conflict(ServiceError, code="conflict", fault="caller"):
    """The request conflicts with a registered resource."""


class OperatorExists(Conflict, code="operator-exists"):
    """Another operator has the name."""


class IncidentClosed(Conflict, code="incident-closed"):
    """The incident is closed."""


class StreamExists(Conflict, code="stream-exists"):
    """The stream exists with another declaration."""


class StreamDerived(Conflict, code="stream-derived"):
    """The events of the stream are derived by operators, so it accepts no posted events and no punctuations."""


class PunctuationAhead(Conflict, code="punctuation-ahead"):
    """The time of a punctuation or of the end of a trace is further ahead of the clock than the stream allows."""


class StreamNotDerived(Conflict, code="stream-not-derived"):
    """INTO names a stream that accepts posted events."""


class StreamInUse(Conflict, code="stream-in-use"):
    """The stream to be deleted is in use. The details list the uses."""


class PatternOnOtherStream(Conflict, code="pattern-on-other-stream"):
    """The name belongs to a pattern on another stream."""


class WrongPatternState(Conflict, code="pattern-state"):
    """The pattern's state does not permit the action. The details list the permitted actions."""


class OperatorOnOtherStream(Conflict, code="operator-on-other-stream"):
    """The name belongs to an operator of that kind on another stream."""


class WrongOperatorState(Conflict, code="operator-state"):
    """The operator's state does not permit the action. The details list the permitted actions."""


class MigrationRefused(Conflict, code="migration-refused"):
    """The old version's partial matches cannot be continued, because the next version is matched by another key."""


class NotReplayable(Conflict, code="not-replayable"):
    """A dead letter contains no complete event, so it cannot be sent again."""


class TableInUse(Conflict, code="table-in-use"):
    """Operators look up the table that is to be deleted, or its new rows lack a key or column that operators read."""


class WorkflowFollowed(Conflict, code="workflow-followed"):
    """Streams follow the workflow that is to be deleted. The details list these streams."""


class KeyUnusable(Conflict, code="key-unusable"):
    """The API key is revoked or has expired, so it gets no new secret."""


class IdempotencyKeyReused(ServiceError, code="idempotency-key-mismatch", fault="caller"):
    """An idempotency key was used before with another request."""


class WebhookNameTaken(Conflict, code="webhook-name-taken"):
    """Another webhook has the name."""


class FeedMisplaced(Conflict, code="feed-misplaced"):
    """A feed and the log disagree on the feed's position. Continuing would lose or duplicate events."""


class FeedInUse(Conflict, code="feed-in-use"):
    """Another process runs the feed, or the feed's name belongs to another source or stream."""


class RegistryContended(Conflict, code="registry-contended", fault="external", is_retryable=True):
    """Other clients keep changing the same record. The same call may succeed later."""

    @classmethod
    def over(cls, record: str) -> Self:
        """Return the error for a record, such as ``the webhook 'w'``."""
        return cls(f"{record} is being changed by other clients; try again")


class LimitExceeded(ServiceError, code="limit-exceeded", fault="caller"):
    """The request is larger than a limit of this service."""


class BatchTooLarge(LimitExceeded, code="batch-too-large"):
    """Too many events in one request."""


class TooManyEventTypes(LimitExceeded, code="too-many-event-types"):
    """The stream already has schemas for the maximum number of event types."""


class TooManyProjects(LimitExceeded, code="too-many-projects"):
    """The service has the maximum number of projects."""


class TraceTooLong(LimitExceeded, code="trace-too-long"):
    """A transaction has too many events to be matched again."""


class TooManyNotes(LimitExceeded, code="too-many-notes"):
    """An alert has the maximum number of notes."""


class PatternTooLong(LimitExceeded, code="pattern-too-long"):
    """The pattern text is too long."""


class ModelTooLarge(LimitExceeded, code="model-too-large"):
    """The workflow model has too many bytes, event types or elements."""


class ConstraintsTooLarge(LimitExceeded, code="constraints-too-large"):
    """The constraint set of a stream names too many event types."""


class RequestRefused(ServiceError, code="request-refused", fault="caller"):
    """The request is not valid."""


class DerivationRefused(RequestRefused, code="derivation-refused"):
    """A stream would be derived from itself, or through too many other streams."""


class StreamMissing(RequestRefused, code="stream-missing"):
    """A constraint document names no stream, or another stream than the call."""


class WorkflowInDocument(RequestRefused, code="workflow-in-document"):
    """A constraint document contains a workflow, which only the service may write."""


class InvalidTableName(RequestRefused, code="table-name"):
    """The name is not valid for a reference table."""


class TooManyTables(LimitExceeded, code="too-many-tables"):
    """The service has the maximum number of reference tables."""


class InvalidWorkflowName(RequestRefused, code="workflow-name"):
    """The name is not valid for a workflow."""


class SchemaRefused(RequestRefused, code="schema-refused"):
    """A JSON Schema is not valid, or uses unsupported features."""


class InvalidCursor(RequestRefused, code="invalid-cursor"):
    """``after`` is not a cursor of this service."""


class InvalidIdempotencyKey(RequestRefused, code="idempotency-key"):
    """An idempotency key is empty or too long."""


class BacktestRefused(RequestRefused, code="backtest-refused"):
    """A backtest names a pattern or a file that cannot or must not be used."""


class TooManyBacktests(LimitExceeded, code="too-many-backtests"):
    """The store of backtests is full, and too few of its backtests have ended to make room."""


class TooManyKeys(LimitExceeded, code="too-many-keys"):
    """The maximum number of usable API keys already exists."""


class KeyRefused(RequestRefused, code="key-refused"):
    """An API key cannot be created or changed as requested. The message says what is possible."""


class WebhookRefused(RequestRefused, code="webhook-refused"):
    """A webhook's address, secret, headers or template cannot be used. The detail ``field`` names the member."""


class ServiceNotReady(ServiceError, code="service-not-ready", fault="external"):
    """A started service does not become ready."""


class KernelsNotCompiled(ServiceError, code="kernels-not-compiled", fault="external"):
    """Some kernels could not be compiled and kept."""


class FileUnreadable(ServiceError, code="file", fault="caller"):
    """A file cannot be read or written. The message names the file."""


class PatternNameTaken(ServiceError, code="pattern-name-taken", fault="caller"):
    """Two patterns of one call have the same name."""


class ProjectRefused(ServiceError, code="project-refused", fault="caller"):
    """The documents of a project are invalid. The message lists every problem with its place."""

    @property
    def problems(self) -> list[str]:
        """The problems, each with its place."""
        return cast("list[str]", self.details["problems"])

    @classmethod
    def of(cls, problems: Sequence[str]) -> Self:
        """Return the refusal that lists the problems."""
        return cls("\n".join(problems), problems=list(problems))


class ApplyStopped(ServiceError, code="apply-stopped", fault="caller"):
    """Another client changed the service, or the service refused a change, while a project was applied."""


class TooManyQuestions(ServiceError, code="too-many-questions", fault="external", is_retryable=True):
    """This process already waits for the maximum number of answers."""


class PipelineAway(ServiceError, code="pipeline-not-running", fault="external", is_retryable=True):
    """The pipeline, which alone can answer, is not running."""


class AnswersLate(ServiceError, code="answers-late", fault="external", is_retryable=True):
    """Not all shards have answered a question in time."""


class OperatorAway(RequestRefused, code="operator-not-running"):
    """An operator that is not running cannot answer questions."""


class CaseFilterRefused(RequestRefused, code="case-filter-refused"):
    """A filter of open transactions has an invalid duration, or names a pattern of another stream or key."""


class QuestionRefused(RequestRefused, code="question-refused"):
    """A shard cannot answer a question."""

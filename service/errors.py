"""The service branch of the error tree.

ServiceError                     service.errors
├── SettingsInvalid              the environment is wrong; every fault is listed
├── NoServerBinary               no Redis-compatible server to start
├── EmbeddedServerFailed         the private server does not come up
├── DataFolderUnusable           cannot be written, or is in use
├── PortInUse                    somebody else listens where the API is to listen
├── TracerMissing                tracing is configured, but OpenTelemetry is not installed
├── StoreUnavailable             Redis does not answer; try again
│   └── StoreFull                Redis has no memory left
├── LogResharding                the log is being divided into more shards; try again later
├── ReshardRefused               the log cannot be divided so, or not now
├── BackupRefused                not while the service runs, or not over what is there
├── BackupDamaged                a file is not a backup, or is damaged
├── StoreNewer                   what is stored was written by a newer release
├── TooManyListeners             as many follow the alerts as may; try again later
├── LogFull                      too much waits to be matched; try again later
├── RecordFormatError            a stored record of an unknown version
├── PreconditionFailed           what is there is not what the caller has read
├── NotFound
│   ├── UnknownStream            no stream of that name
│   ├── UnknownPatternName       no pattern of that name
│   ├── UnknownOperator          no operator of that kind and name
│   ├── UnknownConstraints       the stream has no constraint set
│   ├── UnknownWorkflow          no workflow of that name, or no such version of it
│   ├── NotFollowing             the stream follows no workflow
│   ├── UnknownTrace             the log holds no event of that transaction
│   ├── UnknownAlert             no alert with that id
│   ├── UnknownEventType         a type of events has no schema
│   ├── UnknownDeadLetter        no dead letter with that id is kept
│   ├── UnknownBacktest          no backtest with that id
│   ├── UnknownWebhook           no webhook with that id
│   ├── UnknownDelivery          no delivery with that id is remembered
│   └── UnknownKey               no API key with that id
├── Conflict
│   ├── StreamExists             declared already, differently
│   ├── StreamInUse              something is on the stream that is to be deleted
│   ├── PatternOnOtherStream     the name is taken on another stream
│   ├── WrongPatternState        a pattern is in no state from which that can be done
│   ├── OperatorOnOtherStream    the same of other kinds of operators
│   ├── WrongOperatorState       the same of other kinds of operators
│   ├── MigrationRefused         partial matches cannot be continued beside the next version
│   ├── NotReplayable            a dead letter holds no event that could be sent again
│   ├── WorkflowFollowed         streams follow the workflow that is to be deleted
│   ├── KeyUnusable              the API key is revoked or has expired
│   ├── IdempotencyKeyReused     the key came before with another body
│   ├── WebhookNameTaken         another webhook has the name
│   ├── FeedMisplaced            a feed and the log do not agree on how far it is
│   ├── FeedInUse                another process runs the feed, or its name is taken by another one
│   └── RegistryContended        others keep changing the same record; try again
├── LimitExceeded
│   ├── TooManyBacktests         as many wait as are allowed to
│   ├── TooManyKeys              as many API keys are usable as are kept
│   ├── BatchTooLarge            too many events in one request
│   ├── TooManyEventTypes        as many types of a stream have schemas as may
│   ├── TraceTooLong             a transaction has more events than are matched again
│   ├── TooManyNotes             an alert has as many notes as it may have
│   ├── PatternTooLong           the pattern text is too long
│   ├── ConstraintsTooLarge      the constraint set of a stream names too many event types
│   └── ModelTooLarge            the workflow model has too many bytes, event types or elements
├── RequestRefused
│   ├── BacktestRefused          a backtest names what cannot be matched, or a file that it must not
│   ├── StreamMissing            it is not said which stream a constraint document is for
│   ├── WorkflowInDocument       a constraint document brings a workflow of its own
│   ├── InvalidWorkflowName      not a name that a workflow can have
│   ├── SchemaRefused            not a JSON Schema that is read here
│   ├── InvalidCursor            not a cursor that was given out
│   ├── InvalidIdempotencyKey    empty or too long
│   ├── KeyRefused               an API key cannot be made or changed so
│   └── WebhookRefused           the address, secret, headers or template cannot be used
├── ServiceUnreachable           a running service does not answer its client; try again
├── ServiceOverloaded            a running service takes no more events for now; try again later
├── CallRefused                  a running service refuses a call of its client
├── ServiceNotReady              a service was started and does not get ready
├── KernelsNotCompiled           compiled kernels cannot be made or kept
├── FileUnreadable               a file of a command cannot be read or written
├── PatternNameTaken             two patterns of one command share a name
├── ProjectRefused               service.projects: documents are wrong; every problem is listed with its place
└── ApplyStopped                 service.projects: a service refused a change, or was changed by somebody else
"""

from __future__ import annotations

from typing import ClassVar, Self

from streams import ForestallError
from streams.errors import Fault


class ServiceError(ForestallError):
    """Something is wrong with the running service or with what it was asked."""

    code: ClassVar[str] = "service"


class SettingsInvalid(ServiceError):
    """Settings from the environment cannot be used; the message lists every fault."""

    code: ClassVar[str] = "settings-invalid"
    fault: ClassVar[Fault] = "caller"


class NoServerBinary(ServiceError):
    """There is neither a Redis URL nor a server binary to start."""

    code: ClassVar[str] = "no-redis-binary"
    fault: ClassVar[Fault] = "external"


class EmbeddedServerFailed(ServiceError):
    """The private server does not start or does not answer."""

    code: ClassVar[str] = "embedded-redis"
    fault: ClassVar[Fault] = "external"


class DataFolderUnusable(ServiceError):
    """The data folder cannot be written, or another service uses it."""

    code: ClassVar[str] = "data-folder"
    fault: ClassVar[Fault] = "caller"


class PortInUse(ServiceError):
    """Somebody else listens where the API is to listen."""

    code: ClassVar[str] = "port-in-use"
    fault: ClassVar[Fault] = "caller"


class TracerMissing(ServiceError):
    """Tracing is configured, but the packages of the extra ``otel`` are not installed."""

    code: ClassVar[str] = "tracer-missing"
    fault: ClassVar[Fault] = "external"


class StoreUnavailable(ServiceError):
    """Redis does not answer, or cannot take writes now; the same call may succeed later."""

    code: ClassVar[str] = "store-unavailable"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class StoreFull(StoreUnavailable):
    """Redis has reached its ``maxmemory``; it takes no writes until something makes room."""

    code: ClassVar[str] = "store-full"


class TooManyListeners(ServiceError):
    """As many follow the alerts of this process as may."""

    code: ClassVar[str] = "too-many-listeners"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class LogFull(ServiceError):
    """So much of the log waits to be matched that it takes no more events for now.

    The details say what is full (``events`` or ``bytes``), the ``backlog``, the ``limit`` and ``retry_after_s``.
    """

    code: ClassVar[str] = "log-full"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class LogResharding(ServiceError):
    """The log is being divided into more shards and takes nothing until that is done."""

    code: ClassVar[str] = "log-resharding"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class ReshardRefused(ServiceError):
    """The log cannot be divided into this number of shards, or not while the service runs."""

    code: ClassVar[str] = "reshard-refused"
    fault: ClassVar[Fault] = "caller"


class BackupRefused(ServiceError):
    """A backup cannot be made or restored now: the service runs, or there is something already."""

    code: ClassVar[str] = "backup-refused"
    fault: ClassVar[Fault] = "caller"


class BackupDamaged(ServiceError):
    """A file is not a backup, is of another version, or is damaged."""

    code: ClassVar[str] = "backup-damaged"
    fault: ClassVar[Fault] = "external"


class RecordFormatError(ServiceError):
    """A stored record is damaged or of a version that this release does not know."""

    code: ClassVar[str] = "record-format"


class StoreNewer(ServiceError):
    """What is stored has a format that only a newer release reads."""

    code: ClassVar[str] = "store-newer"
    fault: ClassVar[Fault] = "external"


class PreconditionFailed(ServiceError):
    """What is there is not what the caller has read; the detail ``etag`` is that of what is there."""

    code: ClassVar[str] = "precondition-failed"
    fault: ClassVar[Fault] = "caller"


class NotFound(ServiceError):
    """What was asked for does not exist."""

    code: ClassVar[str] = "not-found"
    fault: ClassVar[Fault] = "caller"


class UnknownStream(NotFound):
    """No stream of that name is declared."""

    code: ClassVar[str] = "unknown-stream"

    @classmethod
    def named(cls, stream: str) -> Self:
        """The error about a name."""
        return cls(f"there is no stream {stream!r}; declare it first (POST /v1/streams)", stream=stream)


class UnknownPatternName(NotFound):
    """No pattern of that name is registered."""

    code: ClassVar[str] = "unknown-pattern"


class UnknownOperator(NotFound):
    """No operator of that kind and name is registered."""

    code: ClassVar[str] = "unknown-operator"


class UnknownConstraints(NotFound):
    """The stream has no constraint set."""

    code: ClassVar[str] = "unknown-constraints"


class UnknownWorkflow(NotFound):
    """No workflow has that name, or it has no such version."""

    code: ClassVar[str] = "unknown-workflow"


class NotFollowing(NotFound):
    """The stream follows no workflow."""

    code: ClassVar[str] = "not-following"


class UnknownTrace(NotFound):
    """The log holds no event of that transaction, or holds none any more."""

    code: ClassVar[str] = "unknown-trace"


class UnknownBacktest(NotFound):
    """No backtest with that id."""

    code: ClassVar[str] = "unknown-backtest"


class UnknownEventType(NotFound):
    """A type of events has no schema."""

    code: ClassVar[str] = "unknown-event-type"


class UnknownDeadLetter(NotFound):
    """No dead letter with that id is kept."""

    code: ClassVar[str] = "unknown-dead-letter"


class UnknownAlert(NotFound):
    """No alert has that id."""

    code: ClassVar[str] = "unknown-alert"


class UnknownWebhook(NotFound):
    """No webhook has that id."""

    code: ClassVar[str] = "unknown-webhook"


class UnknownDelivery(NotFound):
    """No delivery of that id is in a webhook's queue or its log."""

    code: ClassVar[str] = "unknown-delivery"


class UnknownKey(NotFound):
    """No API key has that id."""

    code: ClassVar[str] = "unknown-key"


class Conflict(ServiceError):
    """The request clashes with what is registered."""

    code: ClassVar[str] = "conflict"
    fault: ClassVar[Fault] = "caller"


class StreamExists(Conflict):
    """The stream is declared already, differently."""

    code: ClassVar[str] = "stream-exists"


class StreamInUse(Conflict):
    """Something is on the stream that is to be deleted; the details list it."""

    code: ClassVar[str] = "stream-in-use"


class PatternOnOtherStream(Conflict):
    """The name belongs to a pattern on another stream."""

    code: ClassVar[str] = "pattern-on-other-stream"


class WrongPatternState(Conflict):
    """A pattern is in no state from which that can be done; the details name what can be."""

    code: ClassVar[str] = "pattern-state"


class OperatorOnOtherStream(Conflict):
    """The name belongs to an operator of that kind on another stream."""

    code: ClassVar[str] = "operator-on-other-stream"


class WrongOperatorState(Conflict):
    """An operator is in no state from which that can be done; the details name what can be."""

    code: ClassVar[str] = "operator-state"


class MigrationRefused(Conflict):
    """The former version cannot continue for its partial matches, as the next one is matched by another key."""

    code: ClassVar[str] = "migration-refused"


class NotReplayable(Conflict):
    """A dead letter holds no event, or not the whole of it, that could be sent again."""

    code: ClassVar[str] = "not-replayable"


class WorkflowFollowed(Conflict):
    """Streams follow the workflow that is to be deleted; the details name them."""

    code: ClassVar[str] = "workflow-followed"


class KeyUnusable(Conflict):
    """The API key is revoked or has expired, so it gets no new secret."""

    code: ClassVar[str] = "key-unusable"


class IdempotencyKeyReused(Conflict):
    """An idempotency key came back with another body."""

    code: ClassVar[str] = "idempotency-key-reused"


class WebhookNameTaken(Conflict):
    """Another webhook has the name."""

    code: ClassVar[str] = "webhook-name-taken"


class FeedMisplaced(Conflict):
    """A feed and the log do not agree on how far it is; going on would lose or double events."""

    code: ClassVar[str] = "feed-misplaced"


class FeedInUse(Conflict):
    """Another process runs the feed, or its name belongs to a feed of something else."""

    code: ClassVar[str] = "feed-in-use"


class RegistryContended(Conflict):
    """Others keep changing the same record; the same call may succeed later."""

    code: ClassVar[str] = "registry-contended"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True

    @classmethod
    def over(cls, record: str) -> Self:
        """The error for a record, such as ``the webhook 'w'``."""
        return cls(f"{record} is being changed by other clients; try again")


class LimitExceeded(ServiceError):
    """The request is larger than a limit of this service."""

    code: ClassVar[str] = "limit-exceeded"
    fault: ClassVar[Fault] = "caller"


class BatchTooLarge(LimitExceeded):
    """Too many events in one request."""

    code: ClassVar[str] = "batch-too-large"


class TooManyEventTypes(LimitExceeded):
    """As many types of a stream have schemas as may."""

    code: ClassVar[str] = "too-many-event-types"


class TraceTooLong(LimitExceeded):
    """A transaction has more events than are matched again."""

    code: ClassVar[str] = "trace-too-long"


class TooManyNotes(LimitExceeded):
    """An alert has as many notes as it may have."""

    code: ClassVar[str] = "too-many-notes"


class PatternTooLong(LimitExceeded):
    """The pattern text is too long."""

    code: ClassVar[str] = "pattern-too-long"


class ModelTooLarge(LimitExceeded):
    """The workflow model has too many bytes, event types or elements."""

    code: ClassVar[str] = "model-too-large"


class ConstraintsTooLarge(LimitExceeded):
    """The constraint set of a stream names too many event types."""

    code: ClassVar[str] = "constraints-too-large"


class RequestRefused(ServiceError):
    """The request means nothing to this service."""

    code: ClassVar[str] = "request-refused"
    fault: ClassVar[Fault] = "caller"


class StreamMissing(RequestRefused):
    """A constraint document does not say which stream it is for, or says another one than the call."""

    code: ClassVar[str] = "stream-missing"


class WorkflowInDocument(RequestRefused):
    """A constraint document brings a workflow of its own, which only the service writes."""

    code: ClassVar[str] = "workflow-in-document"


class InvalidWorkflowName(RequestRefused):
    """A workflow cannot have that name."""

    code: ClassVar[str] = "workflow-name"


class SchemaRefused(RequestRefused):
    """A JSON Schema is none, or one that is not read here."""

    code: ClassVar[str] = "schema-refused"


class InvalidCursor(RequestRefused):
    """``after`` is not a cursor that this service gave out."""

    code: ClassVar[str] = "invalid-cursor"


class InvalidIdempotencyKey(RequestRefused):
    """An idempotency key is empty or too long."""

    code: ClassVar[str] = "idempotency-key"


class BacktestRefused(RequestRefused):
    """A backtest names what cannot be matched in the past, or a file that it must not."""

    code: ClassVar[str] = "backtest-refused"


class TooManyBacktests(LimitExceeded):
    """As many backtests wait as are allowed to."""

    code: ClassVar[str] = "too-many-backtests"


class TooManyKeys(LimitExceeded):
    """As many API keys are usable as are kept."""

    code: ClassVar[str] = "too-many-keys"


class KeyRefused(RequestRefused):
    """An API key cannot be made or changed so; the message says what would do."""

    code: ClassVar[str] = "key-refused"


class WebhookRefused(RequestRefused):
    """A webhook's address, secret, headers or template cannot be used; ``field`` says which."""

    code: ClassVar[str] = "webhook-refused"


class ServiceUnreachable(ServiceError):
    """A running service does not answer its client, or cannot take the call now."""

    code: ClassVar[str] = "service-unreachable"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class ServiceOverloaded(ServiceError):
    """A running service takes no more events for now (429); the detail ``retry_after_s`` says when to ask again."""

    code: ClassVar[str] = "service-overloaded"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class CallRefused(ServiceError):
    """A running service refuses a call of its client; the message is the problem that it names."""

    code: ClassVar[str] = "call-refused"
    fault: ClassVar[Fault] = "caller"


class ServiceNotReady(ServiceError):
    """A service was started and does not get ready."""

    code: ClassVar[str] = "service-not-ready"
    fault: ClassVar[Fault] = "external"


class KernelsNotCompiled(ServiceError):
    """Kernels were to be compiled and kept, and some were not."""

    code: ClassVar[str] = "kernels-not-compiled"
    fault: ClassVar[Fault] = "external"


class FileUnreadable(ServiceError):
    """A file cannot be read or written; the message names it."""

    code: ClassVar[str] = "file"
    fault: ClassVar[Fault] = "caller"


class PatternNameTaken(ServiceError):
    """Two patterns of one call have the same name."""

    code: ClassVar[str] = "pattern-name-taken"
    fault: ClassVar[Fault] = "caller"

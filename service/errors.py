"""The service branch of the error tree.

ServiceError                 service.errors
├── SettingsInvalid          the environment is wrong; every fault is listed
├── NoServerBinary           no Redis-compatible server to start
├── EmbeddedServerFailed     the private server does not come up
├── StoreUnavailable         Redis does not answer; try again
├── RecordFormatError        a stored record of an unknown version
├── NotFound                 UnknownStream, UnknownPatternName, UnknownConstraints, UnknownAlert, UnknownWebhook
├── Conflict                 StreamExists, PatternOnOtherStream, IdempotencyKeyReused, RegistryContended
├── LimitExceeded            BatchTooLarge, PatternTooLong
└── RequestRefused           KeyMismatch, InvalidCursor, InvalidIdempotencyKey, WebhookRefused
"""

from __future__ import annotations

from typing import ClassVar

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


class StoreUnavailable(ServiceError):
    """Redis does not answer, or cannot take writes now; the same call may succeed later."""

    code: ClassVar[str] = "store-unavailable"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class RecordFormatError(ServiceError):
    """A stored record is damaged or of a version that this release does not know."""

    code: ClassVar[str] = "record-format"


class NotFound(ServiceError):
    """What was asked for does not exist."""

    code: ClassVar[str] = "not-found"
    fault: ClassVar[Fault] = "caller"


class UnknownStream(NotFound):
    """No stream of that name is declared."""

    code: ClassVar[str] = "unknown-stream"


class UnknownPatternName(NotFound):
    """No pattern of that name is registered."""

    code: ClassVar[str] = "unknown-pattern"


class UnknownConstraints(NotFound):
    """The stream has no constraint set."""

    code: ClassVar[str] = "unknown-constraints"


class UnknownAlert(NotFound):
    """No alert has that id."""

    code: ClassVar[str] = "unknown-alert"


class UnknownWebhook(NotFound):
    """No webhook has that id."""

    code: ClassVar[str] = "unknown-webhook"


class Conflict(ServiceError):
    """The request clashes with what is registered."""

    code: ClassVar[str] = "conflict"
    fault: ClassVar[Fault] = "caller"


class StreamExists(Conflict):
    """The stream is declared already, differently."""

    code: ClassVar[str] = "stream-exists"


class PatternOnOtherStream(Conflict):
    """The name belongs to a pattern on another stream."""

    code: ClassVar[str] = "pattern-on-other-stream"


class IdempotencyKeyReused(Conflict):
    """An idempotency key came back with another body."""

    code: ClassVar[str] = "idempotency-key-reused"


class RegistryContended(Conflict):
    """Others keep changing the same record; the same call may succeed later."""

    code: ClassVar[str] = "registry-contended"
    fault: ClassVar[Fault] = "external"
    is_retryable: ClassVar[bool] = True


class LimitExceeded(ServiceError):
    """The request is larger than a limit of this service."""

    code: ClassVar[str] = "limit-exceeded"
    fault: ClassVar[Fault] = "caller"


class BatchTooLarge(LimitExceeded):
    """Too many events in one request."""

    code: ClassVar[str] = "batch-too-large"


class PatternTooLong(LimitExceeded):
    """The pattern text is too long."""

    code: ClassVar[str] = "pattern-too-long"


class RequestRefused(ServiceError):
    """The request means nothing to this service."""

    code: ClassVar[str] = "request-refused"
    fault: ClassVar[Fault] = "caller"


class KeyMismatch(RequestRefused):
    """``WHERE [..]`` names another key than the stream's."""

    code: ClassVar[str] = "pattern-key"


class InvalidCursor(RequestRefused):
    """``after`` is not a cursor that this service gave out."""

    code: ClassVar[str] = "invalid-cursor"


class InvalidIdempotencyKey(RequestRefused):
    """An idempotency key is empty or too long."""

    code: ClassVar[str] = "idempotency-key"


class WebhookRefused(RequestRefused):
    """A webhook's address or secret cannot be used."""

    code: ClassVar[str] = "webhook-refused"

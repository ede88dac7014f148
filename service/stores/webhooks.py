"""Registered webhooks: where alerts, corrections and deviations go, and how their deliveries fare."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast

from service.errors import UnknownWebhook
from service.stores.connection import PREFIX, Client, register
from service.stores.records import decode, encode

WEBHOOKS_KEY = PREFIX + "webhooks"
STATS_KEY = PREFIX + "webhook-stats:"

DeliveredKind: TypeAlias = Literal["alert", "correction", "deviation"]
USUAL_KINDS: tuple[DeliveredKind, ...] = ("alert", "correction")

_DISABLE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWebhook:
    """Where alerts go.

    Attributes:
        secret: ``whsec_`` and the base64 of the signing key.
        stream: Only what is of this stream; None means any.
        pattern: Only what is of this pattern; None means any.
        is_enabled: False once the receiver answered that it is gone (410).
        registered_us: Microseconds UTC.
        kinds: What is sent.
    """

    id: str
    url: str
    secret: str
    stream: str | None
    pattern: str | None
    is_enabled: bool
    registered_us: int
    kinds: tuple[DeliveredKind, ...] = USUAL_KINDS

    def wants(self, kind: DeliveredKind, stream: str, pattern: str | None) -> bool:
        """Whether what is of that kind, stream and pattern shall be delivered here; a deviation is of no pattern."""
        is_near = self.stream in (None, stream) and self.pattern in (None, pattern)
        return self.is_enabled and kind in self.kinds and is_near


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """How deliveries to one webhook fared.

    Attributes:
        delivered: Alerts that the receiver took.
        failed_attempts: Attempts that failed.
        dead: Alerts given up on.
        last_status: HTTP status of the last attempt, if there was an answer.
        last_error: Why the last attempt failed; None when it did not.
        last_attempt_us: Microseconds UTC.
    """

    delivered: int = 0
    failed_attempts: int = 0
    dead: int = 0
    last_status: int | None = None
    last_error: str | None = None
    last_attempt_us: int | None = None


class WebhookStore:
    """The registered webhooks."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._disable = register(client, _DISABLE)

    def put(self, webhook: RegisteredWebhook) -> None:
        """Keep a webhook under its id."""
        self._client.hset(WEBHOOKS_KEY, webhook.id, encode(**asdict(webhook)))

    def get(self, webhook_id: str) -> RegisteredWebhook:
        """One webhook.

        Raises:
            UnknownWebhook: There is none of that id.
        """
        body = cast("bytes | None", self._client.hget(WEBHOOKS_KEY, webhook_id))
        if body is None:
            raise UnknownWebhook(f"there is no webhook {webhook_id!r}", webhook=webhook_id)
        return _webhook(body, webhook_id)

    def all(self) -> list[RegisteredWebhook]:
        """All webhooks, the oldest first."""
        records = cast("dict[bytes, bytes]", self._client.hgetall(WEBHOOKS_KEY))
        webhooks = [_webhook(body, key.decode()) for key, body in records.items()]
        return sorted(webhooks, key=lambda webhook: (webhook.registered_us, webhook.id))

    def disable(self, webhook: RegisteredWebhook) -> None:
        """Send nothing more there; nothing happens when it is deleted by now."""
        fields = {**asdict(webhook), "is_enabled": False}
        self._disable([WEBHOOKS_KEY], [webhook.id, encode(**fields)])

    def delete(self, webhook_id: str) -> None:
        """Forget a webhook and its statistics; what is queued for it is dropped when it comes due.

        Raises:
            UnknownWebhook: There is none of that id.
        """
        if not self._client.hdel(WEBHOOKS_KEY, webhook_id):
            raise UnknownWebhook(f"there is no webhook {webhook_id!r}", webhook=webhook_id)
        self._client.delete(STATS_KEY + webhook_id)

    def stats(self, webhook_id: str) -> DeliveryStats:
        """How deliveries there fared so far."""
        raw = cast("dict[bytes, bytes]", self._client.hgetall(STATS_KEY + webhook_id))
        fields: dict[str, Any] = {
            name.decode(): value.decode() if name == b"last_error" else int(value)
            for name, value in raw.items()
            if value != b""
        }
        return DeliveryStats(**fields)


def _webhook(body: bytes, webhook_id: str) -> RegisteredWebhook:
    fields = decode(body, f"the webhook {webhook_id!r}")
    return RegisteredWebhook(**{**fields, "kinds": tuple(fields.get("kinds", USUAL_KINDS))})

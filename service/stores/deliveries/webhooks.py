"""Registered webhooks: the receivers of results, and the state of their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from service.errors import UnknownSink, UnknownWebhook, WebhookNameTaken
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.record_books import Records
from service.stores.records import encode, read_record
from service.stores.severities import USUAL_SEVERITY, Severity, is_as_grave
from shards import USUAL_KINDS

WEBHOOKS_KEY = PREFIX + "webhooks"
NAMES_KEY = PREFIX + "webhook-names"
TURNS_KEY = PREFIX + "deliveries:turns"
STATS_KEY = PREFIX + "webhook-stats:"
CIRCUIT_KEY = PREFIX + "webhook-circuit:"
LOG_KEY = PREFIX + "webhook-log:"
GIVEN_UP_KEY = PREFIX + "webhook-given-up:"
GIVEN_UP_RECORDS_KEY = PREFIX + "webhook-given-up-records:"

_FORMER_KINDS = ("alert", "correction")  # of records without the member

_OF_EACH = (STATS_KEY, CIRCUIT_KEY, LOG_KEY, GIVEN_UP_KEY, GIVEN_UP_RECORDS_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiringSecret:
    """A secret that was replaced; messages are also signed with it until ``until_us`` (microseconds UTC)."""

    secret: str
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRules:
    """How a webhook collects results."""

    every: str
    every_us: int
    at_once: Severity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWebhook:
    """A receiver of alerts and other results. Members with a default are missing in older records.

    ``secret`` is ``whsec_`` and the base64 of the signing key; ``retiring`` are earlier ones, the latest first. Without
    ``min_severity`` it gets results of any, and deviations. ``sink``: the ``kind`` and the members of a sink that is
    not a webhook, whose secret is its password, and whose address is for people.
    """

    id: str
    url: str
    secret: str
    stream: str | None
    pattern: str | None
    is_enabled: bool
    registered_us: int
    kinds: tuple[str, ...] = USUAL_KINDS
    min_severity: Severity | None = None
    description: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    template: Mapping[str, Any] | None = None
    retiring: tuple[RetiringSecret, ...] = ()
    disabled_because: str | None = None
    name: str = ""
    digest: DigestRules | None = None
    sink: Mapping[str, Any] | None = None

    def wants(self, kind: str, stream: str, pattern: str | None, severity: str = USUAL_SEVERITY) -> bool:
        """Whether a result of a kind, stream and pattern is to be delivered here; a deviation belongs to no pattern."""
        is_near = self.stream in (None, stream) and self.pattern in (None, pattern)
        is_grave = self.min_severity is None or (pattern is not None and is_as_grave(severity, self.min_severity))
        return self.is_enabled and kind in self.kinds and is_near and is_grave

    def collects(self, pattern: str | None, severity: str) -> bool:
        """Whether a wanted result waits for the next digest; a deviation belongs to no pattern."""
        if self.digest is None or self.digest.at_once is None:
            return self.digest is not None
        return pattern is None or not is_as_grave(severity, self.digest.at_once)

    def secrets_at(self, now_us: int) -> list[str]:
        """The secrets with which a message is signed now: the current one, then those that are being retired."""
        return [self.secret, *(old.secret for old in self.retiring if now_us < old.until_us)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """Totals of the deliveries to a webhook; the last HTTP status is None if there was no answer."""

    delivered: int = 0
    failed_attempts: int = 0
    dead: int = 0
    last_status: int | None = None
    last_error: str | None = None
    last_attempt_us: int | None = None


class WebhookStore(Records[RegisteredWebhook]):
    """The registered webhooks, and other sinks, by id."""

    key = WEBHOOKS_KEY
    one = "the webhook"

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._put = register(client, "registry/put_webhook")

    def unknown(self, name: str, why: str = "", **details: Any) -> UnknownWebhook:
        """The error for an id of no webhook."""
        return UnknownWebhook(f"there is no webhook {name!r}", webhook=name)

    def read(self, body: bytes, name: str) -> RegisteredWebhook:
        """Read a stored webhook."""
        return read_webhook(body, name)

    def put(self, webhook: RegisteredWebhook) -> None:
        """Store a webhook under its id; raises ``WebhookNameTaken`` if another webhook has its name."""
        record = encode(**asdict(webhook))
        if not self._put(webhooks=WEBHOOKS_KEY, names=NAMES_KEY, id=webhook.id, name=webhook.name, record=record):
            raise WebhookNameTaken(
                f"another webhook is called {webhook.name!r}; take another name, or change that one",
                name=webhook.name,
            )

    def all(self) -> list[RegisteredWebhook]:
        """All webhooks, oldest first."""
        return sorted(super().all(), key=lambda webhook: (webhook.registered_us, webhook.id))

    def of_kind(self, webhook_id: str, *, is_sink: bool) -> RegisteredWebhook:
        """A webhook, or another sink; raises ``UnknownWebhook`` or ``UnknownSink``."""
        found = self.find(webhook_id)
        if found is None or (found.sink is not None) != is_sink:
            raise UnknownSink(f"there is no sink {webhook_id!r}") if is_sink else self.unknown(webhook_id)
        return found

    def delete(self, webhook_id: str, condition: Condition = ANY) -> None:
        """Delete a webhook, its statistics and its log; its queued deliveries are dropped when their turn comes."""
        self.drop(webhook_id, condition, ("DEL", *belongings_of(webhook_id)), ("ZADD", TURNS_KEY, 0, webhook_id))

    def stats(self, webhook_id: str) -> DeliveryStats:
        """Totals of the deliveries to a webhook."""
        raw = cast("dict[bytes, bytes]", self._client.hgetall(STATS_KEY + webhook_id))
        fields: dict[str, Any] = {
            name.decode(): value.decode() if name == b"last_error" else int(value)
            for name, value in raw.items()
            if value != b""
        }
        return DeliveryStats(**fields)


def belongings_of(webhook_id: str) -> list[str]:
    """The Redis keys of a webhook's data other than its record."""
    return [key + webhook_id for key in _OF_EACH]


def read_webhook(body: bytes, webhook_id: str) -> RegisteredWebhook:
    """Read a stored webhook."""
    return read_record(RegisteredWebhook, body, f"the webhook {webhook_id!r}", kinds=_FORMER_KINDS)

"""Registered webhooks and other sinks, which receive results, and statistics of their deliveries."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, cast

import orjson

from service.errors import UnknownSink, UnknownWebhook, WebhookNameTaken
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.record_books import Change, Records
from service.stores.records import encode, read_record
from service.stores.routes import require_not_removed
from service.stores.severities import Severity, is_as_grave
from shards import USUAL_KINDS

WEBHOOKS_KEY = PREFIX + "webhooks"
WEBHOOKS_READ_KEY = PREFIX + "webhooks-read"  # random mark, set by readers and deleted by every change
NAMES_KEY = PREFIX + "webhook-names"
TURNS_KEY = PREFIX + "deliveries:turns"
STATS_KEY = PREFIX + "webhook-stats:"
CIRCUIT_KEY = PREFIX + "webhook-circuit:"
LOG_KEY = PREFIX + "webhook-log:"
GIVEN_UP_KEY = PREFIX + "webhook-given-up:"
GIVEN_UP_RECORDS_KEY = PREFIX + "webhook-given-up-records:"

_FORMER_KINDS = ("alert", "correction")  # value of ``kinds`` in records that lack the member

_READ_AGAIN_S = 60
_UNREAD = ("DEL", WEBHOOKS_READ_KEY)
_WEBHOOK_KEYS = (STATS_KEY, CIRCUIT_KEY, LOG_KEY, GIVEN_UP_KEY, GIVEN_UP_RECORDS_KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiringSecret:
    """A replaced secret. Until ``until_us`` (microseconds UTC), messages are signed with both secrets."""

    secret: str
    until_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRules:
    """The rules by which a webhook receives digests.

    Attributes:
        every: Interval between digests, as the user wrote it.
        every_us: The same interval in microseconds.
        at_once: Least severity of results that are sent at once instead of in a digest, or None for no such results.
    """

    every: str
    every_us: int
    at_once: Severity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWebhook:
    """A webhook or another sink, which receives results. Members with a default may be missing in older records.

    Attributes:
        url: Address of the webhook. For any other sink, a text that is only displayed.
        secret: ``whsec_`` and the base64 of the signing key. For any other sink, its password.
        stream: Stream whose results are sent, or None for all streams.
        pattern: Pattern whose results are sent, or None for all patterns.
        min_severity: Least severity of results that are sent. If None, all results are sent, including deviations.
        retiring: Earlier secrets, the latest first.
        sink: Kind and further members of a sink that is not a webhook, or None for a webhook.
        key: Key of a transaction or table row whose results are sent, or None for all keys.
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
    key: str | None = None

    def takes(self, pattern: str | None, severity: str) -> bool:
        """Return whether a result passes the filter ``min_severity``.

        ``pattern`` is None for a deviation, which passes only if ``min_severity`` is None.
        """
        return self.min_severity is None or (pattern is not None and is_as_grave(severity, self.min_severity))

    def collects(self, pattern: str | None, severity: str) -> bool:
        """Return whether a result is collected for the next digest instead of being sent at once.

        ``pattern`` is None for a deviation. If the webhook has digests, every deviation is collected.
        """
        if self.digest is None or self.digest.at_once is None:
            return self.digest is not None
        return pattern is None or not is_as_grave(severity, self.digest.at_once)

    def secrets_at(self, now_us: int) -> list[str]:
        """Return the secrets with which messages are signed at a time: the current secret, then retiring secrets."""
        return [
            self.secret,
            *(retiring_secret.secret for retiring_secret in self.retiring if now_us < retiring_secret.until_us),
        ]


class Webhooks(list[RegisteredWebhook]):
    """Registered webhooks, oldest first, with an index that finds the webhooks for a result."""

    @classmethod
    def of(cls, webhooks: Sequence[RegisteredWebhook]) -> Webhooks:
        """Convert a sequence of webhooks. Return a ``Webhooks`` unchanged, so that its index is built only once."""
        return webhooks if isinstance(webhooks, cls) else cls(webhooks)

    def wanting(
        self, kind: str, stream: str, pattern: str | None, severity: str, body: bytes
    ) -> Iterator[RegisteredWebhook]:
        """Return the enabled webhooks whose filters select a result. ``pattern`` is None for a deviation."""
        key = orjson.loads(body).get("key") if kind in self._kinds_by_key else None
        places = product((kind,), (stream, None), {pattern, None}, {key, None})
        numbers = sorted(number for place in places for number in self._index.get(place, ()))
        return (self[number] for number in numbers if self[number].takes(pattern, severity))

    @cached_property
    def _index(self) -> Mapping[tuple[str | None, ...], list[int]]:
        """The indexes of enabled webhooks in this list, by kind, stream, pattern and key. None selects any value."""
        numbers: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(list)
        for number, webhook in enumerate(self):
            for kind in set(webhook.kinds) if webhook.is_enabled else ():
                numbers[kind, webhook.stream, webhook.pattern, webhook.key].append(number)
        return dict(numbers)

    @cached_property
    def _kinds_by_key(self) -> frozenset[str]:
        return frozenset(kind for webhook in self if webhook.key is not None for kind in webhook.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """Totals of the deliveries to a webhook. ``last_status`` is None if the last attempt got no answer."""

    delivered: int = 0
    failed_attempts: int = 0
    dead: int = 0
    last_status: int | None = None
    last_error: str | None = None
    last_attempt_us: int | None = None


class WebhookStore(Records[RegisteredWebhook]):
    """The registered webhooks and other sinks, by id."""

    key = WEBHOOKS_KEY
    one = "the webhook"

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._put = register(client, "registry/put_webhook")
        self._cached: tuple[str, Webhooks] | None = None  # the mark when the webhooks were read, and the webhooks

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownWebhook:
        return UnknownWebhook(f"there is no webhook {name!r}", webhook=name)

    def read(self, body: bytes, name: str) -> RegisteredWebhook:
        return read_webhook(body, name)

    def put(self, webhook: RegisteredWebhook) -> None:
        """Store a webhook under its id.

        If another webhook has its name, raise ``WebhookNameTaken``. If its stream was removed, raise ``UnknownStream``.
        """
        record, stream = encode(**asdict(webhook)), webhook.stream or ""
        keys = {"webhooks": WEBHOOKS_KEY, "names": NAMES_KEY, "mark": WEBHOOKS_READ_KEY}
        reply = self._put(**keys, id=webhook.id, name=webhook.name, stream=stream, record=record)
        require_not_removed(stream, reply)
        if not reply:
            raise WebhookNameTaken(
                f"another webhook is called {webhook.name!r}; take another name, or change that one",
                name=webhook.name,
            )

    def all(self) -> Webhooks:
        """Return all webhooks, oldest first, from a cache that is valid until a change, and for at most a minute.

        The limit of a minute is needed during an update, because processes of earlier releases change webhooks without
        invalidating the cache.
        """
        mark = cast("bytes | None", self._client.get(WEBHOOKS_READ_KEY))
        if mark is None:  # set the mark before reading, so that a change in between deletes it
            self._client.set(WEBHOOKS_READ_KEY, uuid.uuid4().hex, nx=True, ex=_READ_AGAIN_S)
            mark = cast("bytes | None", self._client.get(WEBHOOKS_READ_KEY)) or b""
        if not mark or self._cached is None or self._cached[0] != mark.decode():
            webhooks = sorted(super().all(), key=lambda webhook: (webhook.registered_us, webhook.id))
            self._cached = mark.decode(), Webhooks(webhooks)
        return self._cached[1]

    def apply(
        self, name: str, change: Callable[[RegisteredWebhook | None], Change | None]
    ) -> tuple[RegisteredWebhook, bool]:
        """Change a webhook as ``Records.apply`` does, and invalidate the caches of all processes."""

        def changed(registered: RegisteredWebhook | None) -> Change | None:
            update = change(registered)
            return None if update is None else replace(update, commands=(*update.commands, _UNREAD))

        return super().apply(name, changed)

    def of_kind(self, webhook_id: str, *, is_sink: bool) -> RegisteredWebhook:
        """Return the webhook with an id, or raise ``UnknownWebhook``.

        If ``is_sink``, return the sink with this id that is not a webhook, or raise ``UnknownSink``.
        """
        webhook = self.find(webhook_id)
        if webhook is None or (webhook.sink is not None) != is_sink:
            raise UnknownSink(f"there is no sink {webhook_id!r}") if is_sink else self.unknown(webhook_id)
        return webhook

    def delete(self, webhook_id: str, condition: Condition = ANY) -> None:
        """Delete a webhook, its statistics and its log. Queued deliveries are dropped at the webhook's next turn."""
        dropped = ("DEL", *belongings_of(webhook_id))
        self.drop(webhook_id, condition, dropped, ("ZADD", TURNS_KEY, 0, webhook_id), _UNREAD)

    def stats(self, webhook_id: str) -> DeliveryStats:
        raw = cast("dict[bytes, bytes]", self._client.hgetall(STATS_KEY + webhook_id))
        fields: dict[str, Any] = {
            name.decode(): value.decode() if name == b"last_error" else int(value)
            for name, value in raw.items()
            if value != b""
        }
        return DeliveryStats(**fields)


def belongings_of(webhook_id: str) -> list[str]:
    """Return the Redis keys of a webhook's statistics, circuit breaker, log and abandoned deliveries."""
    return [key + webhook_id for key in _WEBHOOK_KEYS]


def read_webhook(body: bytes, webhook_id: str) -> RegisteredWebhook:
    """Decode the stored record of a webhook."""
    return read_record(RegisteredWebhook, body, f"the webhook {webhook_id!r}", kinds=_FORMER_KINDS)

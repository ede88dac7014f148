"""The durable queue of deliveries, which has one queue per webhook and serves the webhooks in turn.

A delivery is queued when its result is written. It leaves the queue when the receiver accepts it or when it is
abandoned. A worker claims a delivery under a lease. If the worker dies, the lease expires and the delivery is due
again. A failed attempt counts only if the worker still holds the lease. A successful attempt counts as long as the
delivery is queued.

Each claim serves the webhooks with due deliveries round robin, one delivery per round, and begins with the webhooks
that have waited longest. So a webhook with a hundred thousand due deliveries does not delay other webhooks. A webhook
has at most ``target_concurrency`` attempts in progress.

Each webhook has a circuit breaker. After ``circuit_failures`` failed attempts in a row the circuit opens, and the
webhook's deliveries wait. Then one attempt per ``circuit_pause_s`` probes the receiver, and the first success closes
the circuit. The deliveries of a disabled webhook wait until it is enabled. The deliveries of a deleted webhook are
dropped.

A delivery whose record cannot be read is abandoned when it is claimed, or when its digest is made; a collected delivery
also if its result cannot be listed in a digest. The record is retained.

A webhook can collect results for a digest. The collected deliveries wait outside the queue until the digest is due.
Then one delivery replaces them (``service.delivery.digests``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, cast

from service.errors import RecordFormatError, UnknownDelivery
from service.settings import WebhookSettings
from service.stores.connection import PREFIX, Client, register
from service.stores.deliveries.delivery import (
    DIGEST,
    DUE_KEY,
    RECORDS_KEY,
    Delivery,
    DeliveryOutcome,
    Verdict,
    read_delivery,
)
from service.stores.deliveries.webhooks import (
    CIRCUIT_KEY,
    GIVEN_UP_KEY,
    GIVEN_UP_RECORDS_KEY,
    LOG_KEY,
    STATS_KEY,
    TURNS_KEY,
    WEBHOOKS_KEY,
)
from service.stores.keyspace import RESTORING_KEY
from service.stores.latencies import LatencyStore
from service.stores.records import decode, encode
from streams import ScriptInput

WAITING_KEY = PREFIX + "deliveries:waiting:"
SENDING_KEY = PREFIX + "deliveries:sending:"
COLLECTED_KEY = PREFIX + "deliveries:collected:"
DIGESTS_KEY = PREFIX + "deliveries:digests"  # webhooks by the time at which their digest is due
_KEYS = {
    "new": DUE_KEY,
    "records": RECORDS_KEY,
    "turns": TURNS_KEY,
    "webhooks": WEBHOOKS_KEY,
    "digests": DIGESTS_KEY,
    "restoring": RESTORING_KEY,
}
_WEBHOOK_KEYS = {  # prefixes of keys, completed by a webhook's id
    "waiting": WAITING_KEY,
    "sending": SENDING_KEY,
    "circuit": CIRCUIT_KEY,
    "stats": STATS_KEY,
    "log": LOG_KEY,
    "given_up": GIVEN_UP_KEY,
    "given_up_records": GIVEN_UP_RECORDS_KEY,
    "collected": COLLECTED_KEY,
}
_LOG_PAGE = 500
_MOST_LOGGED = 250_000  # characters; longer bodies are not logged, but stored while the delivery waits or is abandoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A logged delivery attempt. The verdict ``dead`` means that the last attempt has failed."""

    delivery: str
    kind: str
    item: str
    attempt: int
    verdict: Verdict
    at_us: int
    status: int | None
    error: str | None
    duration_ms: int
    next_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The circuit breaker of a webhook.

    Attributes:
        failures: Number of failed attempts since the last success.
        since_us: Time of the first of these failures.
        until_us: Time until which no attempt is made, because the circuit is open or the receiver asked for a pause.
            None if attempts can be made now.
    """

    failures: int = 0
    since_us: int | None = None
    until_us: int | None = None


class DeliveryStore:
    """The queue of deliveries and the log of attempts.

    ``settings`` limit the attempts for each webhook. Up to ``given_up_kept`` abandoned deliveries per webhook are
    retained, so that users can send them again.
    """

    def __init__(self, client: Client, settings: WebhookSettings, *, given_up_kept: int) -> None:
        self._client = client
        self._settings = settings
        self._given_up_kept = given_up_kept
        prefixes = {f"{name}_key": key for name, key in _WEBHOOK_KEYS.items()}
        self._claim = register(client, "deliveries/claim", **_KEYS, **prefixes)
        self._settle = register(client, "deliveries/settle", **_KEYS)
        self._again = register(client, "deliveries/send_again", **_KEYS)
        self._close = register(client, "deliveries/close_digest", **_KEYS)
        self._latencies = LatencyStore(client)

    def claim(
        self,
        now_us: int,
        lease_us: int,
        limit: int,
        close: Callable[[str], object] = lambda _: None,
        report: Callable[[RecordFormatError], object] = lambda _: None,
    ) -> list[Delivery]:
        """Claim up to ``limit`` due deliveries for ``lease_us`` microseconds. The webhooks are served in turn.

        ``close`` is called with the id of each webhook whose digest is due. A delivery whose record cannot be read is
        abandoned, and ``report`` is called with the error. While a backup is being restored, nothing is claimed.
        """
        end_us = now_us + lease_us
        settings = self._settings
        claimed, due = cast(
            "tuple[list[tuple[bytes, bytes]], list[bytes]]",
            self._claim(
                now_us=now_us,
                lease_us=end_us,
                limit=limit,
                most_waiting=settings.max_waiting,
                per_target=settings.target_concurrency,
                circuit_failures=settings.circuit_failures,
                given_up_kept=self._given_up_kept,
            ),
        )
        for webhook in due:
            close(webhook.decode())
        return self._read(claimed, end_us, now_us, report)

    def collected(
        self, webhook_id: str, limit: int, now_us: int, report: Callable[[RecordFormatError], object] = lambda _: None
    ) -> list[Delivery]:
        """Return up to ``limit`` deliveries that a webhook has collected, oldest first.

        A delivery whose record cannot be read is abandoned, and ``report`` is called with the error.
        """
        ids = cast("list[bytes]", self._client.zrange(COLLECTED_KEY + webhook_id, 0, limit - 1))
        records = cast("list[bytes | None]", self._client.hmget(RECORDS_KEY, ids)) if ids else []
        stored = dict(zip(ids, records, strict=True))
        if missing := [id_ for id_, record in stored.items() if record is None]:  # sent again at a user's request
            self._client.zrem(COLLECTED_KEY + webhook_id, *missing)
        return self._read([(id_, record) for id_, record in stored.items() if record is not None], 0, now_us, report)

    def close_digest(self, webhook_id: str, ids: Sequence[str], digest: str, body: str | None, now_us: int) -> bool:
        """Replace collected deliveries by one delivery, which sends the digest ``body``. Return whether this was done.

        If ``body`` is None, drop the deliveries without a digest. If another call has replaced or dropped any of the
        deliveries already, change nothing.
        """
        delivery = Delivery(
            id=f"{webhook_id}:{digest}",
            webhook=webhook_id,
            alert=digest,
            kind=DIGEST,
            attempts=0,
            queued_us=now_us,
            lease_us=0,
            body=body,
        )
        is_closed = self._close(
            **_keys_of(webhook_id, "collected waiting"),
            webhook=webhook_id,
            now_us=now_us,
            id=delivery.id,
            record=b"" if body is None else delivery.record(0),
            ids=list(ids),
        )
        return bool(is_closed)

    def postpone_digest(self, webhook_id: str, until_us: int) -> None:
        """Postpone a webhook's digest to the time ``until_us``, because the digest cannot be made now."""
        self._client.zadd(DIGESTS_KEY, {webhook_id: until_us}, xx=True)

    def count_collected(self, webhook_id: str) -> int:
        return self._client.zcard(COLLECTED_KEY + webhook_id)

    def settle(self, delivery: Delivery, outcome: DeliveryOutcome) -> bool:
        """Record the outcome of an attempt. Return False if the outcome is ignored, otherwise True.

        For example, a failure after the end of the lease is ignored, because another worker may have claimed the
        delivery.
        """
        if (outcome.verdict == "retry") != (outcome.next_us is not None):
            raise ValueError("a retry, and only a retry, has a next due time")
        attempts = delivery.attempts + (outcome.verdict in ("retry", "dead"))
        is_counted = self._settled(
            delivery.webhook,
            id=delivery.id,
            lease_us=delivery.lease_us,
            verdict=outcome.verdict,
            next_us=outcome.next_us or 0,
            record=delivery.record(attempts),
            status="" if outcome.status is None else outcome.status,
            reason=outcome.error or "",
            now_us=outcome.at_us,
            entry=encode(**asdict(_attempt_of(delivery, outcome))),
            body="" if outcome.verdict == "retry" or len(delivery.body or "") > _MOST_LOGGED else delivery.body or "",
            rest_us=outcome.rest_us or 0,
        )
        if is_counted and outcome.verdict == "delivered":
            self._latencies.note("delivery", [outcome.at_us - delivery.queued_us])
        return is_counted

    def _read(
        self,
        entries: Sequence[tuple[bytes, bytes]],
        lease_us: int,
        now_us: int,
        report: Callable[[RecordFormatError], object],
    ) -> list[Delivery]:
        deliveries = []
        for id_, record in entries:
            try:
                deliveries.append(read_delivery(id_.decode(), record, lease_us))
            except RecordFormatError as error:
                self._abandon(id_.decode(), record, lease_us, error.message, now_us)
                report(error)
        return deliveries

    def abandon(self, delivery: Delivery, reason: str, now_us: int) -> None:
        """Abandon a delivery that can never succeed, without counting a failed attempt.

        A worker has claimed the delivery, or the delivery is collected for a digest.
        """
        self._abandon(delivery.id, delivery.record(delivery.attempts), delivery.lease_us, reason, now_us)

    def _abandon(self, delivery_id: str, record: bytes, lease_us: int, reason: str, now_us: int) -> None:
        self._settled(
            delivery_id.partition(":")[0],
            id=delivery_id,
            lease_us=lease_us,
            verdict="unreadable",
            next_us=0,
            record=record,
            status="",
            reason=reason,
            now_us=now_us,
            entry=b"",
            body="",
            rest_us=0,
        )

    def _settled(self, webhook_id: str, **inputs: ScriptInput) -> bool:
        settings = self._settings
        is_counted = self._settle(
            **_keys_of(webhook_id, "waiting sending collected stats circuit log given_up given_up_records"),
            **inputs,
            webhook=webhook_id,
            log_kept=settings.log_kept,
            given_up_kept=self._given_up_kept,
            per_target=settings.target_concurrency,
            circuit_failures=settings.circuit_failures,
            circuit_pause_us=round(settings.circuit_pause_s * 1_000_000),
        )
        return bool(is_counted)

    def send_again(self, webhook_id: str, deliveries: Sequence[Delivery], now_us: int) -> int:
        """Make deliveries of a webhook due now, and forget their failed attempts. Return their number.

        Finished and abandoned deliveries are queued again. A collected delivery is removed from its digest. A delivery
        that is being sent is neither changed nor counted, unless its lease has expired.
        """
        queued = self._again(
            **_keys_of(webhook_id, "waiting sending given_up given_up_records collected"),
            webhook=webhook_id,
            now_us=now_us,
            fresh=[part for delivery in deliveries for part in (delivery.id, delivery.record(0))],
        )
        return int(queued)

    def wake(self, webhook_id: str, now_us: int) -> None:
        """Reset the failures and the circuit of a changed webhook, so that its due deliveries are sent now."""
        self._client.delete(CIRCUIT_KEY + webhook_id)
        self.send_again(webhook_id, [], now_us)

    def circuit(self, webhook_id: str) -> Circuit:
        raw = cast("dict[bytes, bytes]", self._client.hgetall(CIRCUIT_KEY + webhook_id))
        fields = {name.decode(): int(value) for name, value in raw.items()}
        if fields.get("failures", 0) < self._settings.circuit_failures:
            fields.pop("until_us", None)  # the circuit was opened under another value of the setting
        if (rest_us := fields.pop("rest_us", None)) is not None:
            fields["until_us"] = max(rest_us, fields.get("until_us", 0))
        return Circuit(**fields)

    def waiting(self, webhook_id: str) -> int:
        """Return the number of deliveries in a webhook's queue, including deliveries that are being sent."""
        return self._client.zcard(WAITING_KEY + webhook_id) + self._client.zcard(SENDING_KEY + webhook_id)

    def queued(self) -> int:
        """Return the number of deliveries of all webhooks, including deliveries that are being sent."""
        return self._client.hlen(RECORDS_KEY)

    def delivery(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Return a webhook's queued, abandoned or finished delivery. If there is none, raise ``UnknownDelivery``."""
        is_of_webhook = delivery_id.startswith(webhook_id + ":")
        for key in (RECORDS_KEY, GIVEN_UP_RECORDS_KEY + webhook_id) if is_of_webhook else ():
            record = cast("bytes | None", self._client.hget(key, delivery_id))
            if record is not None:
                return read_delivery(delivery_id, record, 0)
        until = "+"
        while page := self._rows(webhook_id, until, _LOG_PAGE):
            for _, fields in page:
                attempt = _attempt(fields)
                if attempt.delivery == delivery_id and attempt.verdict != "retry":
                    return _logged_delivery(webhook_id, attempt, fields.get(b"body", b"").decode() or None)
            until = "(" + page[-1][0].decode()
        raise UnknownDelivery(
            f"the webhook {webhook_id!r} has no delivery {delivery_id!r} in its queue or its log", delivery=delivery_id
        )

    def given_up(self, webhook_id: str, since_us: int, limit: int) -> list[Delivery]:
        """Return up to ``limit`` readable deliveries that were abandoned since a time, oldest first."""
        first = 0
        while page := self._client.zrangebyscore(GIVEN_UP_KEY + webhook_id, since_us, "+inf", start=first, num=limit):
            ids = cast("list[bytes]", page)
            records = cast("list[bytes | None]", self._client.hmget(GIVEN_UP_RECORDS_KEY + webhook_id, ids))
            if deliveries := [*_readable(ids, records)]:
                return deliveries
            first += limit
        return []

    def count_given_up(self, webhook_id: str, since_us: int = 0) -> int:
        """Return the number of deliveries that were abandoned since a time and have not been queued again."""
        return self._client.zcount(GIVEN_UP_KEY + webhook_id, since_us, "+inf")

    def _rows(self, webhook_id: str, until: str, limit: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        rows = self._client.xrevrange(LOG_KEY + webhook_id, max=until, count=limit)
        return cast("list[tuple[bytes, dict[bytes, bytes]]]", rows)


def _readable(ids: Sequence[bytes], records: Sequence[bytes | None]) -> Iterator[Delivery]:
    for id_, record in zip(ids, records, strict=True):
        with suppress(RecordFormatError):
            if record is not None:
                yield read_delivery(id_.decode(), record, 0)


def _keys_of(webhook_id: str, names: str) -> dict[str, str]:
    return {name: _WEBHOOK_KEYS[name] + webhook_id for name in names.split()}


def _attempt_of(delivery: Delivery, outcome: DeliveryOutcome) -> Attempt:
    return Attempt(
        delivery=delivery.id,
        kind=delivery.kind,
        item=delivery.alert,
        attempt=delivery.attempts + 1,
        verdict=outcome.verdict,
        at_us=outcome.at_us,
        status=outcome.status,
        error=outcome.error,
        duration_ms=outcome.duration_ms,
        next_us=outcome.next_us,
    )


def _attempt(fields: dict[bytes, bytes]) -> Attempt:
    entry: dict[str, Any] = decode(fields[b"record"], "an attempt to deliver")
    return Attempt(**entry)


def _logged_delivery(webhook_id: str, attempt: Attempt, body: str | None) -> Delivery:
    return Delivery(
        id=attempt.delivery,
        webhook=webhook_id,
        alert=attempt.item,
        kind=attempt.kind,
        attempts=0,
        queued_us=attempt.at_us,
        lease_us=0,
        body=body,
    )

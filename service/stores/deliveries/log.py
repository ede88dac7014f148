"""Delivery attempts and their outcomes: the latest of each webhook, and the abandoned deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from service.errors import UnknownDelivery
from service.stores.connection import Client
from service.stores.deliveries.delivery import RECORDS_KEY, Delivery, Verdict, read_delivery
from service.stores.deliveries.webhooks import GIVEN_UP_KEY, GIVEN_UP_RECORDS_KEY, LOG_KEY
from service.stores.records import decode

_PAGE_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A delivery attempt; with the verdict ``dead`` it was the last one."""

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


class DeliveryLog:
    """The latest attempts of each webhook, written by the queue."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def delivery(self, webhook_id: str, delivery_id: str) -> Delivery:
        """A delivery of a webhook that waits, was abandoned, or ended a short while ago; else ``UnknownDelivery``."""
        mine = delivery_id.startswith(webhook_id + ":")
        for key in (RECORDS_KEY, GIVEN_UP_RECORDS_KEY + webhook_id) if mine else ():
            record = cast("bytes | None", self._client.hget(key, delivery_id))
            if record is not None:
                return read_delivery(delivery_id, record, 0)
        until = "+"
        while page := self._rows(webhook_id, until, _PAGE_ROWS):
            for _, fields in page:
                attempt = _attempt(fields)
                if attempt.delivery == delivery_id and attempt.verdict != "retry":
                    return _ended(webhook_id, attempt, fields.get(b"body", b"").decode() or None)
            until = "(" + page[-1][0].decode()
        raise UnknownDelivery(
            f"the webhook {webhook_id!r} has no delivery {delivery_id!r} in its queue or its log", delivery=delivery_id
        )

    def given_up(self, webhook_id: str, since_us: int, limit: int) -> list[Delivery]:
        """Deliveries abandoned since a time, oldest first."""
        keys = self._client.zrangebyscore(GIVEN_UP_KEY + webhook_id, since_us, "+inf", start=0, num=limit)
        ids = cast("list[bytes]", keys)
        if not ids:
            return []
        records = cast(
            "list[bytes | None]", self._client.hmget(GIVEN_UP_RECORDS_KEY + webhook_id, cast("list[str]", ids))
        )
        found = zip(ids, records, strict=True)
        return [read_delivery(id_.decode(), record, 0) for id_, record in found if record is not None]

    def count_given_up(self, webhook_id: str, since_us: int = 0) -> int:
        """The number of deliveries abandoned since a time and not sent again."""
        return self._client.zcount(GIVEN_UP_KEY + webhook_id, since_us, "+inf")

    def _rows(self, webhook_id: str, until: str, limit: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        found = self._client.xrevrange(LOG_KEY + webhook_id, max=until, count=limit)
        return cast("list[tuple[bytes, dict[bytes, bytes]]]", found)


def _attempt(fields: dict[bytes, bytes]) -> Attempt:
    entry: dict[str, Any] = decode(fields[b"record"], "an attempt to deliver")
    return Attempt(**entry)


def _ended(webhook_id: str, attempt: Attempt, body: str | None) -> Delivery:
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

"""Deliveries: each is one alert, correction or deviation on its way to one webhook.

The script that writes a result also appends its deliveries to a list, from which the queue takes them
(``service.stores.deliveries.delivery_queue``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from service.errors import RecordFormatError
from service.stores.connection import PREFIX
from service.stores.records import decode, encode

DUE_KEY = PREFIX + "deliveries:due"  # new deliveries, and waiting ones of earlier releases
RECORDS_KEY = PREFIX + "deliveries:records"

DIGEST = "digest"
"""The kind of a delivery of collected results."""
COLLECTED = "+"
"""Prefix of the part after the webhook, in ids of deliveries that are collected."""

Verdict = Literal["delivered", "retry", "dead", "dropped"]

_REQUIRED = {"webhook": str, "alert": str, "attempts": int, "queued_us": int}
_OPTIONAL = ("kind", "body", "traceparent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One alert, correction or deviation on its way to one webhook, under the lease of a worker until ``lease_us``.

    ``body``: the result as JSON; None for an alert, which the alert log holds.
    """

    id: str
    webhook: str
    alert: str
    kind: str = "alert"
    attempts: int
    queued_us: int
    lease_us: int
    body: str | None = None
    traceparent: str | None = None

    def record(self, attempts: int) -> bytes:
        """Encode the delivery as stored, with its number of failed attempts."""
        optional = {"body": self.body, "traceparent": self.traceparent}
        return encode(
            webhook=self.webhook,
            alert=self.alert,
            kind=self.kind,
            attempts=attempts,
            queued_us=self.queued_us,
            **{name: value for name, value in optional.items() if value is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """The outcome of an attempt; ``dead``: the delivery is abandoned, ``dropped``: its webhook or result is gone.

    ``rest_us``: the receiver asked for no further attempt before this time.
    """

    verdict: Verdict
    at_us: int
    status: int | None = None
    error: str | None = None
    next_us: int | None = None
    duration_ms: int = 0
    rest_us: int | None = None


def read_delivery(delivery_id: str, record: bytes, lease_us: int) -> Delivery:
    """Read a stored delivery; raises ``RecordFormatError`` if its record is damaged or has another format."""
    title = f"the delivery {delivery_id}"
    fields = decode(record, title)
    wrong = [name for name, form in _REQUIRED.items() if not isinstance(fields.get(name), form)]
    wrong += [name for name in _OPTIONAL if not isinstance(fields.get(name), str | None)]
    if wrong:
        raise RecordFormatError(f"the stored record of {title} is damaged: {', '.join(wrong)}")
    kind = fields.get("kind") or _kind_of(fields.get("body"))
    members: dict[str, Any] = {name: fields.get(name) for name in (*_REQUIRED, "body", "traceparent")}
    return Delivery(id=delivery_id, lease_us=lease_us, kind=kind, **members)


def _kind_of(body: str | None) -> Any:
    """The kind of result in a delivery record of an earlier release, which names no kind."""
    return "alert" if body is None else orjson.loads(body).get("type", "correction")

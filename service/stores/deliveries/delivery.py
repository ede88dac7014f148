"""Deliveries, each of which sends a result (alert, correction or deviation) or a digest to a webhook.

The script that writes a result also appends its deliveries to a list. The queue moves them from this list to its own
lists (``service.stores.deliveries.delivery_queue``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from service.errors import RecordFormatError
from service.stores.connection import PREFIX
from service.stores.records import decode, encode

DUE_KEY = PREFIX + "deliveries:due"  # new deliveries, and waiting deliveries of earlier releases
RECORDS_KEY = PREFIX + "deliveries:records"

DIGEST = "digest"
"""The kind of a delivery whose body is a digest of collected results."""
COLLECTED = "+"
"""Mark of collected deliveries in their ids, which have the form ``webhook:+result`` instead of ``webhook:result``."""

Verdict = Literal["delivered", "retry", "dead", "dropped"]

_REQUIRED = {"webhook": str, "alert": str, "attempts": int, "queued_us": int}
_OPTIONAL = ("kind", "body", "traceparent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery of a result or digest to a webhook.

    Attributes:
        alert: Id of the result or digest.
        kind: Kind of the result, or ``digest``.
        attempts: Number of failed attempts.
        queued_us: Time at which the delivery was queued, microseconds UTC.
        lease_us: End of the lease of the worker that has claimed the delivery, or 0 if it is not claimed.
        body: The result as JSON, or None for an alert, which is read from the alert log.
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
        """Encode the delivery for the store, with the given number of failed attempts."""
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
    """The outcome of a delivery attempt.

    Attributes:
        verdict: ``delivered`` after a success. After a failure, ``retry`` if another attempt follows at ``next_us``,
            or ``dead`` if the delivery is abandoned. ``dropped`` if the webhook or the result no longer exists.
        rest_us: Time until which the receiver wants no further attempts, or None if it did not ask for a pause.
    """

    verdict: Verdict
    at_us: int
    status: int | None = None
    error: str | None = None
    next_us: int | None = None
    duration_ms: int = 0
    rest_us: int | None = None


def read_delivery(delivery_id: str, record: bytes, lease_us: int) -> Delivery:
    """Decode a stored delivery. If its record is damaged or has another format, raise ``RecordFormatError``."""
    title = f"the delivery {delivery_id}"
    fields = decode(record, title)
    wrong = [name for name, form in _REQUIRED.items() if not isinstance(fields.get(name), form)]
    wrong += [name for name in _OPTIONAL if not isinstance(fields.get(name), str | None)]
    if wrong:
        raise RecordFormatError(f"the stored record of {title} is damaged: {', '.join(wrong)}")
    kind = fields.get("kind") or _kind_of(fields.get("body"), title)
    members: dict[str, Any] = {name: fields.get(name) for name in (*_REQUIRED, "body", "traceparent")}
    return Delivery(id=delivery_id, lease_us=lease_us, kind=kind, **members)


def _kind_of(body: str | None, title: str) -> Any:
    """Return the kind of a delivery from its body, because records of earlier releases do not contain the kind."""
    if body is None:
        return "alert"
    try:
        return orjson.loads(body).get("type", "correction")
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise RecordFormatError(f"the stored body of {title} is damaged: {error}") from error

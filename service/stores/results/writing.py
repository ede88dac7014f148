"""The steps by which all stores of results write the rows of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from service.stores.deliveries.delivery import COLLECTED, DUE_KEY, RECORDS_KEY, Delivery
from service.stores.deliveries.webhooks import RegisteredWebhook, Webhooks
from service.stores.results.blocks import in_parts
from service.stores.results.hours import KEPT_HOURS, hours_key
from service.stores.severities import USUAL_SEVERITY
from shards import ALERT, OutputRow, ResultKind
from streams import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """The parameters for storing and delivering the rows of a micro-batch.

    Attributes:
        epoch: Number of the micro-batch.
        now_us: Time at which deliveries are queued.
        severities: Severities by operator, which are added to the stored bodies. None adds no severity.
        traceparents: Trace contexts by result id. The deliveries of a result continue its trace.
        created_us: Time of storing, which is added to the stored bodies as ``created_at``. None adds no time.
    """

    epoch: int
    now_us: int = 0
    webhooks: Sequence[RegisteredWebhook] = ()
    severities: Mapping[str, str] | None = None
    traceparents: Mapping[str, str] = field(default_factory=dict)
    created_us: int | None = None

    def bodies(self, rows: Sequence[OutputRow]) -> list[bytes]:
        if self.severities is None and self.created_us is None:
            return [row.body for row in rows]
        created = b"" if self.created_us is None else b',"created_at":"%b"' % format_time(self.created_us).encode()
        ends = {name: created + self._severity_member(name) + b"}" for name in {row.subject for row in rows}}
        return [row.body[:-1] + ends[row.subject] for row in rows]

    def arguments(self, kind: ResultKind) -> dict[str, str | int]:
        """Return the script arguments that are the same for all stores of results."""
        return {
            "due": DUE_KEY,
            "deliveries": RECORDS_KEY,
            "hours": hours_key(kind),
            "kept_hours": KEPT_HOURS,
            "epoch": f"epoch:{self.epoch}",
            "now_us": self.now_us,
        }

    def _severity_member(self, name: str) -> bytes:
        return b"" if self.severities is None else b',"severity":"%b"' % self._severity(name).encode()

    def deliveries(self, kind: ResultKind, rows: Sequence[OutputRow]) -> list[dict[str, str]]:
        """Return the deliveries of results to webhooks. Each has an ``id`` and a ``record``, as the scripts need it."""
        if not kind.delivered_as or not self.webhooks:
            return []
        bodies = (
            [None] * len(rows) if kind is ALERT else [_receiver_body(kind, body).decode() for body in self.bodies(rows)]
        )
        deliveries = (
            delivery for row, body in zip(rows, bodies, strict=True) for delivery in self._deliveries(kind, row, body)
        )
        return [{"id": delivery.id, "record": delivery.record(0).decode()} for delivery in deliveries]

    def _deliveries(self, kind: ResultKind, row: OutputRow, body: str | None) -> Iterator[Delivery]:
        name, severity = row.subject or None, self._severity(row.subject)
        for webhook in Webhooks.of(self.webhooks).wanting(kind.delivered_as, row.stream, name, severity, row.body):
            mark = COLLECTED if webhook.collects(name, severity) else ""
            yield Delivery(
                id=f"{webhook.id}:{mark}{row.id}",
                webhook=webhook.id,
                alert=row.id,
                kind=kind.delivered_as,
                attempts=0,
                queued_us=self.now_us,
                lease_us=0,
                body=body,
                traceparent=self.traceparents.get(row.id),
            )

    def _severity(self, name: str) -> str:
        return USUAL_SEVERITY if self.severities is None else self.severities.get(name, USUAL_SEVERITY)


def _receiver_body(kind: ResultKind, body: bytes) -> bytes:
    return b'{"type":"%b",' % kind.delivered_as.encode() + body[1:] if kind.name == "ending" else body


def write_rows(rows: Sequence[OutputRow], most: int, write: Callable[[Sequence[OutputRow]], Sequence[int]]) -> int:
    """Write rows in chunks of at most ``most`` rows. Return the number of rows that were not stored before.

    ``write`` writes a chunk and returns an empty sequence. If some rows of the chunk are stored already, ``write`` does
    nothing and returns the indexes of these rows, counted from 1. Then it is called with the other rows.
    """
    distinct = list({row.id: row for row in rows}.values())
    return sum(_write_chunk(chunk, write) for chunk in in_parts(distinct, [len(row.body) for row in distinct], most))


def _write_chunk(rows: Sequence[OutputRow], write: Callable[[Sequence[OutputRow]], Sequence[int]]) -> int:
    stored_numbers = set(write(rows))
    if not stored_numbers:
        return len(rows)
    unwritten = [row for number, row in enumerate(rows, start=1) if number not in stored_numbers]
    return _write_chunk(unwritten, write) if unwritten else 0

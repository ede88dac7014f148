"""The alert log: every alert once, with its queued webhook deliveries.

A limited number of a stream's alerts is kept; the oldest are removed, with everything that belongs to them, while newer
ones are written. A micro-batch may be written twice if the pipeline dies between its sink and its checkpoint, so the
ids removed during the latest micro-batch are remembered until the next one begins: a removed alert is not stored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import orjson

from service.errors import RecordFormatError
from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, require_cursor
from service.stores.deliveries.delivery import DUE_KEY, RECORDS_KEY, Deliverable, deliveries_of
from service.stores.deliveries.webhooks import RegisteredWebhook
from service.stores.records import FORMAT_VERSION
from service.stores.results.marks import ACKNOWLEDGED_KEY, NOTES_KEY, AlertMarks, unknown_alert
from service.stores.results.recent import graded_body
from service.stores.severities import USUAL_SEVERITY
from shards import ALERT, OutputRow
from streams import NOTED_KEY, parse_time

BODIES_KEY = PREFIX + "alerts:bodies"
NUMBER_KEY = PREFIX + "alerts:number"
INDEX_KEY = PREFIX + "alerts:index"
COUNTS_KEY = PREFIX + "alerts:counts"

LOST_COUNTS_KEY = PREFIX + "alerts:lost"
TRIMMED_KEY = PREFIX + "alerts:trimmed"
TRIMMED_COUNTS_KEY = PREFIX + "alerts:trimmed:counts"

_CHUNK_ALERTS = 200
_TRIMMED_AT_ONCE = 1_000  # more than a chunk adds, so that a lowered limit is reached after a while
_PAGE_ALERTS = 500
_EXAMINED = 5_000
_HEAD = b'{"format":%d,"alert":' % FORMAT_VERSION
_TAIL = b"}"
_LOST = b'"would_be_lost":true'


_Found: TypeAlias = tuple[str, dict[str, Any]]
"""A cursor after an alert, and the alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Selects alerts by stream, pattern, transaction and acknowledgement, and by a detection time from ``since_us`` up
    to but excluding ``until_us``; None: any.
    """

    stream: str | None = None
    pattern: str | None = None
    key: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    is_acknowledged: bool | None = None

    def wants(self, alert: Mapping[str, Any]) -> bool:
        """Whether an alert has the wanted key and a detection time in the wanted range."""
        if self.key is not None and alert.get("key") != self.key:
            return False
        if self.since_us is None and self.until_us is None:
            return True
        detected_us = parse_time(alert["detected_at"])
        is_late_enough = self.since_us is None or detected_us >= self.since_us
        return is_late_enough and (self.until_us is None or detected_us < self.until_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPage:
    """Some alerts, oldest first.

    Attributes:
        alerts: Alerts as plain JSON; acknowledged ones have the member ``acknowledged``.
        after: Cursor after the last examined alert; the given cursor if none was examined.
        has_more: Whether more may follow at present.
    """

    alerts: list[dict[str, Any]]
    after: str
    has_more: bool = False
    cursors: list[str] = field(default_factory=list)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The alerts."""
        return self.alerts


class AlertStore:
    """The alert log; keeps about ``kept`` alerts of a stream, at least this number; 0: all."""

    def __init__(self, client: Client, *, kept: int = 0) -> None:
        self._client = client
        self._kept = kept
        self._append = register(client, "results/append_alerts")
        self.marks = AlertMarks(client, BODIES_KEY)

    def append(
        self,
        rows: Sequence[OutputRow],
        webhooks: Sequence[RegisteredWebhook],
        now_us: int,
        epoch: int = 0,
        traceparents: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """Write new alerts in the given order, each with a delivery for each webhook that wants it; returns their
        number.

        ``epoch`` is the number of the micro-batch. The first attempts of the deliveries are due at ``now_us``.
        ``traceparents`` has the spans of alerts by id; the deliveries carry them.
        """
        added = 0
        for start in range(0, len(rows), _CHUNK_ALERTS):
            chunk = [
                _packed(row, webhooks, now_us, traceparents.get(row.id)) for row in rows[start : start + _CHUNK_ALERTS]
            ]
            new = self._append(
                noted=NOTED_KEY,
                bodies=BODIES_KEY,
                number=NUMBER_KEY,
                due=DUE_KEY,
                deliveries=RECORDS_KEY,
                counts=COUNTS_KEY,
                trimmed=TRIMMED_KEY,
                trimmed_counts=TRIMMED_COUNTS_KEY,
                acknowledged=ACKNOWLEDGED_KEY,
                lost_counts=LOST_COUNTS_KEY,
                now_us=now_us,
                alerts=orjson.dumps(chunk),
                epoch=f"epoch:{epoch}",
                kept=self._kept,
                most_trimmed=_TRIMMED_AT_ONCE,
                index_key=INDEX_KEY,
                notes_key=NOTES_KEY,
            )
            added += int(new)
        return added

    def body(self, alert_id: str) -> bytes:
        """The alert as JSON, byte for byte as it was written; raises ``UnknownAlert`` if it is not kept."""
        stored = cast("bytes | None", self._client.hget(BODIES_KEY, alert_id))
        if stored is None:
            raise unknown_alert(alert_id)
        return _unwrapped(stored, alert_id)

    def get(self, alert_id: str) -> dict[str, Any]:
        """The alert as plain JSON."""
        return cast("dict[str, Any]", orjson.loads(self.body(alert_id)))

    def counts(self) -> dict[tuple[str, str], int]:
        """The number of alerts by stream and pattern, including those that are no longer kept."""
        return self._counted(COUNTS_KEY)

    def lost_counts(self) -> dict[tuple[str, str], int]:
        """The number of alerts that pruning in the mode ``shadow`` would have lost, by stream and pattern."""
        return self._counted(LOST_COUNTS_KEY)

    def _counted(self, key: str) -> dict[tuple[str, str], int]:
        found = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return {cast("tuple[str, str]", tuple(orjson.loads(name))): int(count) for name, count in sorted(found.items())}

    def last(self, stream: str, pattern: str) -> dict[str, Any] | None:
        """The newest alert of a pattern that is kept."""
        found = cast("list[tuple[bytes, dict[bytes, bytes]]]", self._client.xrevrange(_index(stream, pattern), count=1))
        return self.get(found[0][1][b"id"].decode()) if found else None

    def trimmed(self) -> dict[str, int]:
        """The number of alerts removed because their stream exceeded the number to keep, by stream."""
        found = cast("dict[bytes, bytes]", self._client.hgetall(TRIMMED_COUNTS_KEY))
        return {stream.decode(): int(count) for stream, count in sorted(found.items())}

    def newest(self) -> str:
        """Cursor after the newest of all alerts."""
        return str(int(cast("bytes | None", self._client.get(NUMBER_KEY)) or 0))

    def page(self, wanted: AlertFilter = AlertFilter(), *, after: str = "0", limit: int = 100) -> AlertPage:
        """Alerts after a cursor, oldest first; after a cursor older than all kept alerts, the oldest ones.

        If alerts are selected by more than stream and pattern, a page may have fewer alerts than match, because only
        some thousands are examined for it.
        """
        require_cursor(after, NUMBER)
        found: list[_Found] = []
        has_more = False
        for examined, (cursor, alert) in enumerate(self._behind(wanted, after, limit), start=1):
            after = cursor
            if wanted.wants(alert) and wanted.is_acknowledged in (None, "acknowledged" in alert):
                found.append((cursor, alert))
            has_more = len(found) == limit or examined == _EXAMINED
            if has_more:
                break
        return AlertPage(
            alerts=[alert for _, alert in found], after=after, has_more=has_more, cursors=[place for place, _ in found]
        )

    def _behind(self, wanted: AlertFilter, after: str, limit: int) -> Iterator[_Found]:
        """Alerts of a stream and pattern after a cursor, in chunks."""
        is_plain = wanted == AlertFilter(stream=wanted.stream, pattern=wanted.pattern)
        count = limit if is_plain else _PAGE_ALERTS
        index = _index(wanted.stream, wanted.pattern)
        while places := cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrange(index, min=f"({after}-0", max="+", count=count),
        ):
            ids = [fields[b"id"].decode() for _, fields in places]
            bodies = cast("list[bytes | None]", self._client.hmget(BODIES_KEY, ids))
            seen = self.marks.acknowledgements(ids)
            for (place, _), id_, body, mark in zip(places, ids, bodies, seen, strict=True):
                after = place.partition(b"-")[0].decode()
                if body is not None:  # None: it was removed between the two calls
                    alert = orjson.loads(_unwrapped(body, id_))
                    yield after, alert if mark is None else {**alert, "acknowledged": asdict(mark)}


def _packed(
    row: OutputRow, webhooks: Sequence[RegisteredWebhook], now_us: int, traceparent: str | None
) -> Mapping[str, Any]:
    body, pattern = graded_body(row), row.subject
    indexes = [_index(None, None), _index(row.stream, None), _index(None, pattern), _index(row.stream, pattern)]
    item = Deliverable(
        kind=ALERT.delivered_as,
        id=row.id,
        stream=row.stream,
        pattern=pattern,
        severity=row.severity or USUAL_SEVERITY,
        traceparent=traceparent,
    )
    return {
        "id": row.id,
        "stream": row.stream,
        "body": (_HEAD + body + _TAIL).decode(),
        "indexes": indexes,
        "deliveries": deliveries_of(item, webhooks, now_us),
        "counter": row.counter,
        "lost": _LOST in row.body and orjson.loads(row.body).get("would_be_lost", False),
    }


def _index(stream: str | None, pattern: str | None) -> str:
    return INDEX_KEY + "".join(
        f":{kind}:{name}" for kind, name in (("stream", stream), ("pattern", pattern)) if name is not None
    )


def _unwrapped(stored: bytes, alert_id: str) -> bytes:
    if not stored.startswith(_HEAD):
        raise RecordFormatError(
            f"the stored alert {alert_id!r} does not have format {FORMAT_VERSION}, which this release reads"
        )
    return stored[len(_HEAD) : -len(_TAIL)]

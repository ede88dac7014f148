"""The alert log, which stores every alert exactly once, together with its queued deliveries.

Alerts are numbered in the order of writing and written in chunks. In a chunk, the alerts of one stream form a block. A
chunk is identified by the number of its last alert. One index lists all chunks, and further indexes list the chunks
with alerts of a stream or of a pattern. An alert's place, which is stored under its id, consists of the name of its
block and the row in the block.

A limited number of alerts per stream is retained. When new blocks are written, the oldest blocks are trimmed, with
everything that belongs to their alerts. A micro-batch may be written twice if the pipeline dies between sink and
checkpoint. Therefore the ids that the latest micro-batch has trimmed are remembered until the next micro-batch, so that
a trimmed alert is not stored again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import orjson

from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import NUMBER, OLDEST, Cursor, Order, Page
from service.stores.deliveries.webhooks import RegisteredWebhook
from service.stores.results.blocks import StoredAlert, pack_alerts, unpack_alerts, unpack_body
from service.stores.results.hours import by_hour
from service.stores.results.marks import ACKNOWLEDGED_KEY, NOTES_KEY, AlertMarks, unknown_alert
from service.stores.results.writing import Writing, write_rows
from shards import ALERT, OutputRow
from streams import parse_time

PLACES_KEY = PREFIX + "alerts:places"
BLOCKS_KEY = PREFIX + "alerts:blocks"
NUMBER_KEY = PREFIX + "alerts:number"
INDEX_KEY = PREFIX + "alerts:chunks"
COUNTS_KEY = PREFIX + "alerts:counts"
SIZES_KEY = PREFIX + "alerts:sizes"

LOST_COUNTS_KEY = PREFIX + "alerts:lost"
TRIMMED_KEY = PREFIX + "alerts:trimmed"
TRIMMED_COUNTS_KEY = PREFIX + "alerts:trimmed:counts"

MOST_ALERTS = 200  # in a chunk
_PARTS_KEPT = 10  # a chunk has at most 1/10 of the retained alerts, because whole blocks are trimmed
_TRIMMED_AT_ONCE = 1_000  # more than a chunk adds, so that a lowered limit is reached eventually
_PAGE_ALERTS = 500
_EXAMINED = 5_000
_MOST_CHUNKS = 256  # read at once
_UNMARKED: Order = "asc"  # the order of cursors without a letter
_LOST = b'"would_be_lost":true'

_PlacedAlert: TypeAlias = tuple[str, dict[str, Any]]
"""The number of an alert, which is also the cursor after the alert, and the alert as JSON."""

_Chunks: TypeAlias = "list[tuple[bytes, dict[bytes, bytes]]]"
"""Entries of an index, one per chunk: the entry's id, and the number of the chunk's indexed alerts by stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Selects alerts by stream, pattern, transaction (``key``), times and acknowledgement. None selects any value.

    The detection time is at or after ``since_us`` and before ``until_us``. The time at which the alert was stored is
    at or after ``created_since_us`` and before ``created_until_us``.
    """

    stream: str | None = None
    pattern: str | None = None
    key: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    created_since_us: int | None = None
    created_until_us: int | None = None
    is_acknowledged: bool | None = None

    def wants(self, alert: Mapping[str, Any]) -> bool:
        """Return whether an alert passes the filter's key and times. The filter's other members are not checked."""
        if self.key is not None and alert.get("key") != self.key:
            return False
        return _is_within(alert.get("detected_at"), self.since_us, self.until_us) and _is_within(
            alert.get("created_at"), self.created_since_us, self.created_until_us
        )


class AlertStore:
    """The alert log. It retains at least the newest ``kept`` alerts of each stream, or all alerts if ``kept`` is 0."""

    def __init__(self, client: Client, *, kept: int = 0) -> None:
        self._client = client
        self._kept = kept
        self._most = min(MOST_ALERTS, max(1, kept // _PARTS_KEPT)) if kept else MOST_ALERTS
        self._append = register(client, "results/append_alerts")
        self.marks = AlertMarks(client, PLACES_KEY)

    def append(
        self,
        rows: Sequence[OutputRow],
        webhooks: Sequence[RegisteredWebhook],
        now_us: int,
        epoch: int = 0,
        traceparents: Mapping[str, str] = MappingProxyType({}),
        severities: Mapping[str, str] | None = None,
    ) -> int:
        """Write alerts in the given order, queue their deliveries, and return the number of new alerts.

        Alerts that are already stored are skipped.

        Args:
            rows: The alerts.
            webhooks: The webhooks to which alerts may be delivered.
            now_us: Time of storing, at which the deliveries are due.
            epoch: Number of the micro-batch.
            traceparents: Trace contexts by alert id. The deliveries of an alert continue its trace.
            severities: Severities of alerts by pattern (``Writing``).
        """
        writing = Writing(
            epoch=epoch,
            now_us=now_us,
            webhooks=webhooks,
            severities=severities,
            traceparents=traceparents,
            created_us=now_us,
        )
        return write_rows(rows, self._most, partial(self._append_chunk, writing))

    def _append_chunk(self, writing: Writing, rows: Sequence[OutputRow]) -> list[int]:
        """Write alerts. If some of the alerts are stored already, write nothing and return their indexes, from 1."""
        by_stream: dict[str, list[int]] = {}
        for index, row in enumerate(rows):
            by_stream.setdefault(row.stream, []).append(index)
        bodies = writing.bodies(rows)
        stored_numbers: list[int] = self._append(
            places=PLACES_KEY,
            blocks=BLOCKS_KEY,
            number=NUMBER_KEY,
            counts=COUNTS_KEY,
            lost_counts=LOST_COUNTS_KEY,
            sizes=SIZES_KEY,
            trimmed=TRIMMED_KEY,
            trimmed_counts=TRIMMED_COUNTS_KEY,
            acknowledged=ACKNOWLEDGED_KEY,
            kept=self._kept,
            most_trimmed=_TRIMMED_AT_ONCE,
            index_key=INDEX_KEY,
            notes_key=NOTES_KEY,
            chunk=_chunk(rows, by_stream, writing),
            new_blocks=[
                pack_alerts(
                    [rows[index] for index in indexes],
                    [len(rows) - 1 - index for index in indexes],
                    [bodies[index] for index in indexes],
                )
                for indexes in by_stream.values()
            ],
            **writing.arguments(ALERT),
        )
        return stored_numbers

    def body(self, alert_id: str) -> bytes:
        """Return an alert as JSON, byte for byte as it was written. If it is not stored, raise ``UnknownAlert``."""
        block, name, row = self._place(alert_id)
        return unpack_body(block, name, row)

    def numbered(self, alert_ids: Sequence[str]) -> dict[str, StoredAlert]:
        """Return the alerts with the given ids, by id. Alerts that are not stored are left out."""
        if not alert_ids:
            return {}
        places = cast("list[bytes | None]", self._client.hmget(PLACES_KEY, list(alert_ids)))
        names = list(dict.fromkeys(place.decode().partition(":")[2] for place in places if place is not None))
        blocks = cast("list[bytes | None]", self._client.hmget(BLOCKS_KEY, names)) if names else []
        ids = set(alert_ids)
        return {
            alert.id: alert
            for name, block in zip(names, blocks, strict=True)
            if block is not None  # None: removed between the two calls
            for alert in unpack_alerts(block, name)
            if alert.id in ids
        }

    def _place(self, alert_id: str) -> tuple[bytes, str, int]:
        """Return the block of an alert, the block's name, and the alert's row in the block. Rows are counted from 1."""
        place = cast("bytes | None", self._client.hget(PLACES_KEY, alert_id))
        row, _, name = (place or b"").decode().partition(":")
        block = cast("bytes | None", self._client.hget(BLOCKS_KEY, name))
        if place is None or block is None:  # None: it was removed between the two calls
            raise unknown_alert(alert_id)
        return block, name, int(row)

    def get(self, alert_id: str) -> dict[str, Any]:
        return cast("dict[str, Any]", orjson.loads(self.body(alert_id)))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of alerts by stream and pattern, including alerts that were trimmed."""
        return self._counted(COUNTS_KEY)

    def lost_counts(self) -> dict[tuple[str, str], int]:
        """Return the number of alerts that pruning in ``shadow`` mode would have lost, by stream and pattern."""
        return self._counted(LOST_COUNTS_KEY)

    def _counted(self, key: str) -> dict[tuple[str, str], int]:
        fields = cast("dict[bytes, bytes]", self._client.hgetall(key))
        return {
            cast("tuple[str, str]", tuple(orjson.loads(name))): int(count) for name, count in sorted(fields.items())
        }

    def last(self, stream: str, pattern: str) -> dict[str, Any] | None:
        """Return the newest alert of a pattern, or None if no alert of the pattern is stored."""
        alert = next(self._before(AlertFilter(stream=stream, pattern=pattern), None), None)
        return None if alert is None else cast("dict[str, Any]", orjson.loads(alert.body))

    def trimmed(self) -> dict[str, int]:
        """Return the number of trimmed alerts by stream."""
        fields = cast("dict[bytes, bytes]", self._client.hgetall(TRIMMED_COUNTS_KEY))
        return {stream.decode(): int(count) for stream, count in sorted(fields.items())}

    def newest(self) -> str:
        """Return the cursor after the newest of all alerts."""
        return str(int(cast("bytes | None", self._client.get(NUMBER_KEY)) or 0))

    def page(
        self,
        alert_filter: AlertFilter = AlertFilter(),
        *,
        after: str | None = OLDEST,
        order: Order | None = None,
        limit: int = 100,
    ) -> Page:
        """Return a page of the alerts that a filter selects.

        The page starts after the cursor ``after`` and has its order. If ``after`` is None, the page starts at the first
        alert in ``order``, by default at the newest alert. Acknowledged alerts have the member ``acknowledged``.

        At most 5,000 alerts of the stream and pattern are examined for a page. Therefore, if the filter selects by
        other members too, a page can have fewer alerts than ``limit`` although more alerts follow.
        """
        begin = Cursor.read(after, order, NUMBER, _UNMARKED)
        is_upward = begin.order == "asc"
        stored = (
            self._stored(alert_filter, int(begin.place or 0)) if is_upward else self._before(alert_filter, begin.place)
        )
        # This cursor is read before the alerts, so that alerts that are written meanwhile are after the cursor.
        end_cursor = begin.place or ("0" if is_upward else self.newest())
        page_alerts: list[_PlacedAlert] = []
        first, last, has_more = None, begin.place, False
        for examined, (place, alert) in enumerate(self._marked(stored, alert_filter, limit), start=1):
            first, last = first or place, place
            if alert_filter.wants(alert) and alert_filter.is_acknowledged in (None, "acknowledged" in alert):
                page_alerts.append((place, alert))
            has_more = len(page_alerts) == limit or examined == _EXAMINED
            if has_more:
                break
        following = Cursor(begin.order, last).text(_UNMARKED) if has_more else None
        if is_upward:
            newest = last
        elif begin.place:
            newest = page_alerts[0][0] if page_alerts else begin.place
        else:
            newest = max(end_cursor, first or end_cursor, key=int)
        return Page(
            items=[alert for _, alert in page_alerts],
            after=Cursor("asc", newest).text(_UNMARKED),
            next=following,
            cursors=[place for place, _ in page_alerts],
        )

    def _marked(self, stored: Iterator[StoredAlert], alert_filter: AlertFilter, limit: int) -> Iterator[_PlacedAlert]:
        is_plain = alert_filter == AlertFilter(stream=alert_filter.stream, pattern=alert_filter.pattern)
        while alerts := list(islice(stored, limit if is_plain else _PAGE_ALERTS)):
            acknowledgements = self.marks.acknowledgements([alert.id for alert in alerts])
            for alert, mark in zip(alerts, acknowledgements, strict=True):
                members = orjson.loads(alert.body)
                yield str(alert.number), members if mark is None else {**members, "acknowledged": asdict(mark)}

    def _stored(self, alert_filter: AlertFilter, after: int) -> Iterator[StoredAlert]:
        """Yield the alerts of a stream and pattern whose numbers are above ``after``, oldest first."""
        last, count = f"{after}-0", 1
        index = _index(alert_filter.stream, alert_filter.pattern)
        while chunks := cast(_Chunks, self._client.xrange(index, min=f"({last}", count=count)):
            for alert in self._of_chunks(chunks, alert_filter):
                if alert.number > after:
                    yield alert
            last, size = chunks[-1][0].decode(), sum(int(rows) for _, streams in chunks for rows in streams.values())
            count = min(_MOST_CHUNKS, max(1, count * _PAGE_ALERTS // size))

    def _before(self, alert_filter: AlertFilter, before: str | None) -> Iterator[StoredAlert]:
        """Yield the alerts of a stream and pattern, newest first. If ``before`` is given, start below this number."""
        index, until, count = _index(alert_filter.stream, alert_filter.pattern), "+", 1
        if before is not None:
            above = cast(_Chunks, self._client.xrange(index, min=f"{int(before)}-0", count=1))
            until = above[0][0].decode() if above else until
        while chunks := cast(_Chunks, self._client.xrevrange(index, max=until, count=count)):
            for alert in self._of_chunks(chunks, alert_filter, newest_first=True):
                if before is None or alert.number < int(before):
                    yield alert
            until, size = (
                f"({chunks[-1][0].decode()}",
                sum(int(rows) for _, streams in chunks for rows in streams.values()),
            )
            count = min(_MOST_CHUNKS, max(1, count * _PAGE_ALERTS // size))

    def _of_chunks(
        self, chunks: _Chunks, alert_filter: AlertFilter, *, newest_first: bool = False
    ) -> Iterator[StoredAlert]:
        """Yield the alerts of each chunk in turn. The alerts of a chunk are oldest first unless ``newest_first``."""
        names = [
            [
                f"{place.decode()}:{stream.decode()}"
                for stream in streams
                if alert_filter.stream in (None, stream.decode())
            ]
            for place, streams in chunks
        ]
        all_names = [name for chunk_names in names for name in chunk_names]
        bodies = cast("list[bytes | None]", self._client.hmget(BLOCKS_KEY, all_names)) if all_names else []
        blocks = {name: block for name, block in zip(all_names, bodies, strict=True) if block is not None}
        for chunk_names in names:
            alerts = [alert for name in chunk_names if name in blocks for alert in unpack_alerts(blocks[name], name)]
            selected = [alert for alert in alerts if alert_filter.pattern in (None, alert.pattern)]
            yield from sorted(selected, key=lambda alert: alert.number, reverse=newest_first)


def _chunk(rows: Sequence[OutputRow], by_stream: Mapping[str, Sequence[int]], writing: Writing) -> bytes:
    counts, lost = (
        Counter(row.counter for row in group) for group in (rows, [row for row in rows if _is_lost(row.body)])
    )
    streams = [
        {
            "stream": stream,
            "rows": [index + 1 for index in indexes],
            "patterns": Counter(rows[index].subject for index in indexes),
        }
        for stream, indexes in by_stream.items()
    ]
    return orjson.dumps(
        {
            "ids": [row.id for row in rows],
            "streams": streams,
            "counts": [[counter, count, lost[counter]] for counter, count in counts.items()],
            "hours": by_hour(ALERT, rows),
            "deliveries": writing.deliveries(ALERT, rows),
        }
    )


def _is_within(time: str | None, since_us: int | None, until_us: int | None) -> bool:
    """A missing time is within the range only if the range has no bounds."""
    if since_us is None and until_us is None:
        return True
    if time is None:
        return False
    time_us = parse_time(time)
    return (since_us is None or time_us >= since_us) and (until_us is None or time_us < until_us)


def _is_lost(body: bytes) -> bool:
    return _LOST in body and bool(orjson.loads(body).get("would_be_lost", False))


def _index(stream: str | None, pattern: str | None) -> str:
    kind, name = ("stream", stream) if pattern is None else ("pattern", pattern)
    return INDEX_KEY if name is None else f"{INDEX_KEY}:{kind}:{name}"

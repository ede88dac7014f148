"""Pages of a stream's events, which are read from all shards of the log and merged by position.

Positions of entries with events increase across all shards (``append_events.lua``). Therefore a cursor consists of one
position and its shard, and is still valid after the log is divided into more shards. A page ends at the position that
was newest when reading started, so entries that are appended meanwhile are after the page's cursors. A cursor of an
earlier release has a position for each shard.
"""

from __future__ import annotations

import heapq
import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidCursor
from service.stores.connection import Client, register
from service.stores.cursors import Page, require_cursor
from service.stores.log.layout import LayoutStore
from streams import EventBatch, RecordKind, key_hash, log_key, position_order, render_plain

_MOST_ENTRIES = 5_000
_MOST_BYTES = 16_000_000
_ENTRIES_AT_ONCE = 128
_PLACE = r"[0-9]{1,19}-[0-9]{1,19}(?:\.[0-9]{1,9})?"
_SHARDS_CURSOR = re.compile(rf"0|{_PLACE}(?:_{_PLACE}){{0,4095}}")
_LOG_CURSOR = re.compile("e[A-Za-z0-9_-]{30}")
_FORM = struct.Struct(">QQHI")  # milliseconds, number, shard, rows
_WHOLE = 2**32 - 1  # number of rows in a cursor that means all rows of the entry
_LAST_SHARD = 2**16 - 1
_MOST_NUMBER = 2**63 - 1
_BEGINNING = "0"
_FIRST = (0, 0)

_Read: TypeAlias = "list[tuple[bytes, dict[bytes, bytes]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Selects events by stream, transaction (``key``) and event type. None selects any value.

    ``since_ms`` is the time of the stream's declaration by Redis' clock. Events that were appended before this time
    belong to a former stream of the same name and are not selected.
    """

    stream: str
    key: str | None = None
    event_type: str | None = None
    since_ms: int = 0


EventPages: TypeAlias = Callable[[EventFilter, "str | None", int], Page]
"""Function that returns a page of a stream's events for a filter, a cursor (None: the newest events) and a limit.

Lists and listeners depend on this type only. So a stream whose events are not in the log only needs another such
function.
"""


@dataclass(frozen=True, slots=True)
class _Place:
    """A reading position in a shard.

    Attributes:
        order: Id of the last entry that was read.
        rows: Number of the entry's rows that were read, or None for all rows.
    """

    order: tuple[int, int] = _FIRST
    rows: int | None = None

    @classmethod
    def read(cls, text: str) -> _Place:
        position, _, rows = text.partition(".")
        return cls(position_order(position), int(rows) if rows else None)

    def is_before(self, end: tuple[int, int]) -> bool:
        """Return whether a shard may have unread entries or rows between this place and the entry ``end``."""
        return self.order < end or (self.order == end and self.rows is not None)

    @property
    def next_id(self) -> str:
        milliseconds, number = self.order
        return f"{'(' if self.rows is None else ''}{milliseconds}-{number}"


@dataclass(frozen=True, slots=True)
class _Cursor:
    """A reading position in the whole log, whose entries are ordered by position and then by shard."""

    place: _Place
    shard: int

    def __str__(self) -> str:
        rows = _WHOLE if self.place.rows is None else self.place.rows
        return "e" + urlsafe_b64encode(_FORM.pack(*self.place.order, self.shard, rows)).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> _Cursor:
        milliseconds, number, shard, rows = _FORM.unpack(urlsafe_b64decode(text[1:] + "=="))
        return cls(_Place((milliseconds, number), None if rows == _WHOLE else rows), shard)

    def place_of(self, shard: int) -> _Place:
        if shard == self.shard:
            return self.place
        milliseconds, number = self.place.order
        if shard < self.shard or self.place.order == _FIRST:
            return _Place(self.place.order)
        return _Place((milliseconds, number - 1) if number else (milliseconds - 1, _MOST_NUMBER))


@dataclass(frozen=True, slots=True)
class _Entry:
    order: tuple[int, int]
    shard: int
    fields: Mapping[bytes, bytes]

    def events(self, event_filter: EventFilter) -> EventBatch | None:
        """Return the entry's events. If the entry is for a route or has no events of the stream, return None."""
        is_selected = (
            self.fields[b"kind"] == RecordKind.EVENTS.value.encode()
            and self.fields[b"stream"] == event_filter.stream.encode()
            and not self.fields.get(b"route")
        )
        return EventBatch.from_bytes(self.fields[b"body"]) if is_selected else None


@dataclass(slots=True)
class _Budget:
    """The numbers of entries and bytes that may still be read from the log for a page."""

    entries: int = _MOST_ENTRIES
    size_bytes: int = _MOST_BYTES

    def take(self, entry: _Entry) -> None:
        self.entries -= 1
        self.size_bytes -= len(entry.fields[b"body"])

    @property
    def is_spent(self) -> bool:
        return self.entries <= 0 or self.size_bytes <= 0


@dataclass(slots=True)
class _Page:
    """A page that is being read, oldest events first. ``cursor`` follows the last entry or row that was read."""

    places: list[_Place]
    cursor: str
    events: list[dict[str, Any]] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)

    def reach(self, shard: int, place: _Place) -> None:
        self.places[shard] = place
        self.cursor = str(_Cursor(place, shard))

    def take(self, entry: _Entry, event_filter: EventFilter, limit: int) -> None:
        place, batch = self.places[entry.shard], entry.events(event_filter)
        if batch is not None:
            rows = _rows(batch, event_filter, (place.rows or 0) if place.order == entry.order else 0)
            page_rows = rows[: limit - len(self.events)]
            for row, event in zip(page_rows.tolist(), batch.take(page_rows).to_events(), strict=True):
                self.reach(entry.shard, _Place(entry.order, row + 1))
                if event_filter.key in (None, event.key):
                    self.events.append(render_plain(event))
                    self.cursors.append(self.cursor)
            if len(page_rows) < len(rows):
                return
        self.reach(entry.shard, _Place(entry.order))


class LogEventPages:
    """Reads pages of streams whose events are in the log."""

    def __init__(self, client: Client, layout: LayoutStore) -> None:
        self._client = client
        self._layout = layout
        self._kept = register(client, "log/read_kept")

    def __call__(self, event_filter: EventFilter, after: str | None, limit: int) -> Page:
        """Return the events after the cursor ``after``, or the newest events if ``after`` is None.

        The cursor ``0`` is at the beginning of the log. At most 5,000 entries or 16 MB of the log are read for a page.
        Therefore a page can have fewer events than ``limit`` although more events follow.
        """
        shards = self._layout.read().shards
        shard_ranges, newest = self._kept(shards=[log_key(shard) for shard in range(shards)])
        ends = [position_order(last.decode()) for _, last, _ in shard_ranges]
        end = position_order(newest.decode()) if newest else max(ends)
        if after is None:
            return self._newest(event_filter, [min(last, end) for last in ends], end, limit)
        page = _Page([_at_least(place, event_filter.since_ms) for place in _places(after, shards)], after)
        trimmed_us = _trimmed_us(page.places, shard_ranges)
        has_more = self._forward(page, event_filter, [min(last, end) for last in ends], limit)
        following = page.cursor if has_more else None
        return Page(items=page.events, cursors=page.cursors, after=page.cursor, next=following, trimmed_us=trimmed_us)

    def _forward(self, page: _Page, event_filter: EventFilter, ends: Sequence[tuple[int, int]], limit: int) -> bool:
        """Read each shard up to its position in ``ends``, and return whether more events may follow."""
        unfinished = [shard for shard, end in enumerate(ends) if page.places[shard].is_before(end)]
        open_shards = self._shards(event_filter, unfinished)
        at_once = max(2, _ENTRIES_AT_ONCE // max(1, len(open_shards)))
        firsts = self._first_pages(page, open_shards, at_once)
        sources = [
            takewhile(lambda entry: entry.order <= ends[entry.shard], self._after(shard, entries, at_once))
            for shard, entries in zip(open_shards, firsts, strict=True)
        ]
        budget = _Budget()
        for entry in heapq.merge(*sources, key=lambda entry: (entry.order, entry.shard)):
            page.take(entry, event_filter, limit)
            budget.take(entry)
            if len(page.events) == limit or budget.is_spent:
                return True
        return False

    def _newest(
        self, event_filter: EventFilter, ends: Sequence[tuple[int, int]], end: tuple[int, int], limit: int
    ) -> Page:
        """Return a page of the newest events. All its cursors are ``end``, so that clients continue after the page."""
        budget, groups = _Budget(), list[list[dict[str, Any]]]()
        count = 0
        shards = self._shards(event_filter, range(len(ends)))
        at_once = max(2, _ENTRIES_AT_ONCE // max(1, len(shards)))
        sources = [self._before(shard, _Place(ends[shard]), event_filter.since_ms, at_once) for shard in shards]
        for entry in heapq.merge(*sources, key=lambda entry: (entry.order, entry.shard), reverse=True):
            batch = entry.events(event_filter)
            if batch is not None:
                rows = _rows(batch, event_filter, 0)[-limit:]
                events = batch.take(rows).to_events()
                groups.append([render_plain(event) for event in events if event_filter.key in (None, event.key)])
                count += len(groups[-1])
            budget.take(entry)
            if count >= limit or budget.is_spent:
                break
        newest = [event for group in reversed(groups) for event in group][-limit:]
        cursor = str(_Cursor(_Place(end), _LAST_SHARD))
        return Page(items=newest, cursors=[cursor] * len(newest), after=cursor)

    def _shards(self, event_filter: EventFilter, shards: Sequence[int]) -> list[int]:
        if event_filter.key is None:
            return list(shards)
        homes = set(self._layout.known().homes(key_hash(event_filter.key)))
        return [shard for shard in shards if shard in homes]

    def _first_pages(self, page: _Page, shards: Sequence[int], count: int) -> list[_Read]:
        pipe = self._client.pipeline(transaction=False)
        for shard in shards:
            pipe.xrange(log_key(shard), min=page.places[shard].next_id, count=count)
        return cast("list[_Read]", pipe.execute())

    def _after(self, shard: int, entries: _Read, count: int) -> Iterator[_Entry]:
        while entries:
            for position, fields in entries:
                yield _Entry(position_order(position.decode()), shard, fields)
            after = f"({entries[-1][0].decode()}"
            entries = cast("_Read", self._client.xrange(log_key(shard), min=after, count=count))

    def _before(self, shard: int, end: _Place, since_ms: int, count: int) -> Iterator[_Entry]:
        until, oldest = f"{end.order[0]}-{end.order[1]}", str(since_ms)
        while entries := cast("_Read", self._client.xrevrange(log_key(shard), max=until, min=oldest, count=count)):
            for position, fields in entries:
                yield _Entry(position_order(position.decode()), shard, fields)
            until = f"({entries[-1][0].decode()}"


def _places(after: str, shards: int) -> list[_Place]:
    """Parse a cursor. Return for each shard the place from which the shard is read.

    A cursor of an earlier release may be older than some shards. These shards are read from their beginning.
    """
    if _LOG_CURSOR.fullmatch(after):
        cursor = _Cursor.read(after)
        return [cursor.place_of(shard) for shard in range(shards)]
    require_cursor(after, _SHARDS_CURSOR)
    places = [] if after == _BEGINNING else [_Place.read(text) for text in after.split("_")]
    if len(places) > shards:
        raise InvalidCursor("after is a cursor of a log with more shards; leave it out")
    return [*places, *(_Place() for _ in range(shards - len(places)))]


def _at_least(place: _Place, since_ms: int) -> _Place:
    return place if place.order >= (since_ms, 0) or not since_ms else _Place((since_ms - 1, 2**63 - 1))


def _trimmed_us(places: Sequence[_Place], shard_ranges: Sequence[tuple[bytes, bytes, bytes]]) -> int | None:
    """Return the time from which all entries are retained. If no entries after ``places`` were trimmed, return None."""
    positions = [
        position_order((first or last).decode())
        for place, (first, last, is_trimmed) in zip(places, shard_ranges, strict=True)
        if is_trimmed == b"1" and place.order < position_order((first or last).decode())
    ]
    return max(positions)[0] * 1_000 if positions else None


def _rows(batch: EventBatch, event_filter: EventFilter, begin: int) -> NDArray[np.int64]:
    rows = np.arange(begin, len(batch))
    if event_filter.key is not None:
        rows = rows[batch.key_hashes[rows] == key_hash(event_filter.key)]
    if event_filter.event_type is not None:
        is_selected = np.array([name == event_filter.event_type for name in [*batch.type_names, ""]])
        rows = rows[is_selected[batch.type_codes[rows]]]
    return rows

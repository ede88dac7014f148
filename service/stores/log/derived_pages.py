"""Pages of a derived stream's events, which are read from the list of all derived events.

They are not read from the event log, because the log does not contain derived events that have no key of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from service.stores.connection import Client
from service.stores.cursors import ROW_PLACE, Page, require_cursor
from service.stores.log.event_pages import EventFilter, EventPages, LogEventPages
from service.stores.log.layout import LayoutStore
from service.stores.results.recent import RecentList, list_key
from shards import DERIVED
from streams import position_order

_BEGINNING = "0"
_FIRST = "0-0"
_EXAMINED = 5_000
_MEMBERS = ("id", "type", "time", "key", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEvents:
    """The retained events of a derived stream, oldest first, as pairs of a place in the list and an event.

    ``is_whole`` is true if these are all events of the stream, because none was trimmed.
    """

    records: Sequence[tuple[str, dict[str, Any]]]
    is_whole: bool


class DerivedEventPages:
    """Reads pages of derived streams.

    All derived streams share one list, of which at most 5,000 events are read for a page. Therefore a page can have
    fewer events than requested although more events follow.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listed = RecentList(client, list_key(DERIVED), kept=0)

    def __call__(self, event_filter: EventFilter, after: str | None, limit: int) -> Page:
        """Return the events after the cursor ``after``, or the newest events if ``after`` is None.

        The cursor ``0`` is at the beginning of the list.
        """
        if after is None:
            return self._newest(event_filter, limit)
        if after not in (_BEGINNING, _FIRST):
            require_cursor(after, ROW_PLACE)
        items: list[dict[str, Any]] = []
        cursors: list[str] = []
        begin = place = after if after != _BEGINNING else _FIRST
        has_more = False
        for examined, (place, record) in enumerate(self._listed.oldest_first(begin), start=1):
            if _is_selected(place, record, event_filter):
                items.append(_event(record))
                cursors.append(place)
            if len(items) == limit or examined == _EXAMINED:
                has_more = True
                break
        trimmed_us = self._trimmed_us(begin)  # is read after the events, so that it covers trimming meanwhile
        return Page(items=items, cursors=cursors, after=place, next=place if has_more else None, trimmed_us=trimmed_us)

    def of_stream(self, stream: str, since_ms: int) -> ListedEvents:
        """Return all retained events of a stream since its declaration at ``since_ms``, a time of Redis' clock."""
        event_filter = EventFilter(stream=stream, since_ms=since_ms)
        records = [
            (place, record)
            for place, record in self._listed.newest_first()
            if _is_selected(place, record, event_filter)
        ]
        trimmed_us = self._trimmed_us(_FIRST)
        return ListedEvents(records=records[::-1], is_whole=trimmed_us is None or trimmed_us <= since_ms * 1_000)

    def _newest(self, event_filter: EventFilter, limit: int) -> Page:
        records: list[tuple[str, dict[str, Any]]] = []
        end: str | None = None
        for examined, (place, record) in enumerate(self._listed.newest_first(), start=1):
            end = end or place
            if _is_selected(place, record, event_filter):
                records.append((place, _event(record)))
            if len(records) == limit or examined == _EXAMINED:
                break
        records.reverse()
        return Page(items=[event for _, event in records], cursors=[place for place, _ in records], after=end or _FIRST)

    def _trimmed_us(self, begin: str) -> int | None:
        """Return the arrival time of the oldest retained event if events after the cursor ``begin`` were trimmed."""
        first = cast("list[tuple[bytes, Any]]", self._client.xrange(self._listed.key, count=1))
        if not first or position_order(begin.partition(".")[0]) >= position_order(oldest := first[0][0].decode()):
            return None
        facts = cast("Mapping[str, Any]", self._client.xinfo_stream(self._listed.key))
        is_trimmed = int(facts["entries-added"]) > int(facts["length"])
        return _milliseconds(oldest) * 1_000 if is_trimmed else None


def pages_of_any(client: Client, layout: LayoutStore, is_derived: Callable[[str], bool]) -> EventPages:
    """Return a function that reads pages of streams with posted events and of derived streams."""
    posted, derived = LogEventPages(client, layout), DerivedEventPages(client)

    def pages(event_filter: EventFilter, after: str | None, limit: int) -> Page:
        return (derived if is_derived(event_filter.stream) else posted)(event_filter, after, limit)

    return pages


def _is_selected(place: str, record: Mapping[str, Any], event_filter: EventFilter) -> bool:
    return (
        record["into"] == event_filter.stream
        and event_filter.key in (None, record["key"])
        and event_filter.event_type in (None, record["type"])
        and _milliseconds(place) >= event_filter.since_ms
    )


def _event(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in _MEMBERS}


def _milliseconds(place: str) -> int:
    return int(place.partition("-")[0])

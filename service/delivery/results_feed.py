"""The feed of results of several kinds, which has one cursor. Results of one kind are in the order of writing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from service.errors import InvalidCursor
from service.stores import AlertFilter, AlertStore, RecentStore
from service.stores.cursors import OLDEST, Page, require_cursor
from shards import ALERT

_OLDEST_FIRST = "a"  # letter of cursors that read a list oldest first
_PART = "[0-9a-z]{1,14}(?:-[0-9a-z]{1,14}(?:[.][0-9a-z]{1,7})?)?"
_CURSOR = re.compile(f"{_PART}(?:_{_PART}){{0,31}}")

FeedItem: TypeAlias = tuple[str, dict[str, Any]]
"""The kind of a result, and the result."""


class ResultsFeed:
    """The feed of results of the given kinds. It covers one stream, or all streams if ``stream`` is None.

    A cursor of the feed consists of one cursor per kind, in the order of the kinds' names. Therefore only a feed of the
    same kinds accepts the cursor.
    """

    def __init__(
        self, alerts: AlertStore, results: Mapping[str, RecentStore], kinds: Sequence[str], stream: str | None
    ) -> None:
        self._alerts = alerts
        self._results = results
        self._kinds = sorted(kinds)
        self._stream = stream

    def newest(self) -> str:
        """Return the cursor after all current results."""
        ends = [
            self._alerts.newest() if kind == ALERT.name else self._results[kind].page(1).after for kind in self._kinds
        ]
        return _cursor([end.removeprefix(_OLDEST_FIRST) for end in ends])

    def __call__(self, after: str, limit: int) -> Page:
        """Return a page of the results after a cursor, with up to ``limit`` results of each kind.

        The cursor ``0`` is before the oldest result. Raise ``InvalidCursor`` if the cursor is malformed or belongs to
        a feed of other kinds.
        """
        places = self._places(after)
        items: list[FeedItem] = []
        cursors: list[str] = []
        has_more = False
        for index, kind in enumerate(self._kinds):
            results, end, is_cut = self._page(kind, places[index], limit)
            for place, item in results:
                places[index] = place
                items.append((kind, item))
                cursors.append(_cursor(places))
            places[index] = end
            has_more = has_more or is_cut
        end = _cursor(places)
        return Page(items=items, cursors=cursors, after=end, next=end if has_more else None)

    def _places(self, after: str) -> list[str]:
        require_cursor(after, _CURSOR)
        places = [re.sub("[0-9a-z]+", lambda number: str(int(number[0], 36)), place) for place in after.split("_")]
        if after == OLDEST:
            return [OLDEST] * len(self._kinds)
        if len(places) != len(self._kinds):
            raise InvalidCursor("after is a cursor of other kinds of results; leave it out, or ask for the same kinds")
        return places

    def _page(self, kind: str, place: str, limit: int) -> tuple[list[tuple[str, dict[str, Any]]], str, bool]:
        """Return pairs of cursor and result of one kind, the cursor after these, and whether more may follow."""
        if kind == ALERT.name:
            alerts = self._alerts.page(AlertFilter(stream=self._stream), after=place, limit=limit)
            return list(zip(alerts.cursors, alerts.items, strict=True)), alerts.after, alerts.has_more
        after = place if place == OLDEST else _OLDEST_FIRST + place
        page = self._results[kind].page(limit, stream=self._stream, after=after)
        places = [cursor.removeprefix(_OLDEST_FIRST) for cursor in page.cursors]
        return list(zip(places, page.items, strict=True)), page.after.removeprefix(_OLDEST_FIRST), page.has_more


def _cursor(places: Sequence[str]) -> str:
    """Join cursors to one text. Its numbers are in base 36, so that it is short."""
    return re.sub("[0-9]+", lambda number: np.base_repr(int(number[0]), 36).lower(), "_".join(places))

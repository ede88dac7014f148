"""Cursors of paged lists, which are validated before they reach Redis.

A cursor such as ``a1700000000000-0`` has two parts: the letter of an order (``a`` ascending, ``d`` descending), and the
place of an item, which is a number or an entry id. The page starts after this item and has this order. A cursor without
a letter, as the first release wrote it, implies the order that the list had in that release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from service.errors import InvalidCursor

NUMBER = re.compile("[0-9]{1,18}")
PLACE = re.compile("(?!0+-0+$)[0-9]{1,19}-[0-9]{1,19}")  # the id of an entry of a Redis stream, never 0-0
ROW_PLACE = re.compile(rf"{PLACE.pattern}(\.[0-9]{{1,9}})?")  # an entry id, optionally with a row of the entry's block

Order: TypeAlias = Literal["asc", "desc"]
"""The order of a list: oldest first (``asc``) or newest first (``desc``)."""

OLDEST = "0"
"""The cursor before the oldest item of any list."""

_MARKS: dict[Order, str] = {"asc": "a", "desc": "d"}
_ORDERS = {mark: order for order, mark in _MARKS.items()}


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place in a list at which a page starts, and the order in which the page lists the items.

    The page starts after the item whose number or entry id is ``place``. If ``place`` is None, the page starts at the
    first item of the order.
    """

    order: Order
    place: str | None = None

    @classmethod
    def read(cls, after: str | None, order: Order | None, form: re.Pattern[str], unmarked: Order) -> Self:
        """Parse the text ``after`` of a cursor. If it is malformed or has another order, raise ``InvalidCursor``.

        If ``after`` is None, return the start of the list in ``order``, by default newest first. ``form`` matches a
        valid ``place``. A text may begin with a letter for the order. Without a letter, the order is ``unmarked``.
        """
        if after is None:
            return cls(order or "desc")
        if after == OLDEST:
            cursor = cls("asc")
        else:
            place = after[1:] if after[:1] in _ORDERS else after
            require_cursor(after, re.compile(f"[ad]?{form.pattern}"))
            cursor = cls(_ORDERS.get(after[:1], unmarked), place)
        if order not in (None, cursor.order):
            raise InvalidCursor(f"after={after!r} is a cursor of the order {cursor.order}; leave out the order")
        return cursor

    def text(self, unmarked: Order) -> str:
        """Return the text that ``read`` parses. It begins with a letter for the order unless this is ``unmarked``."""
        if self.place is None:
            return OLDEST
        return self.place if self.order == unmarked else _MARKS[self.order] + self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list.

    Attributes:
        items: The items as plain JSON. In a list of several kinds, each item has a member with its kind.
        after: Cursor after the newest item that was read, even if a filter excluded it. A page from this cursor lists
            newer items, oldest first.
        next: Cursor of the next page in this order, or None if no items follow at present.
        cursors: For each item, the cursor of a page that starts after this item. Empty if items have no cursors.
        trimmed_us: Time of the oldest retained event if events after the requested cursor were trimmed, or None.
    """

    items: list[Any]
    after: str
    next: str | None = None
    cursors: list[str] = field(default_factory=list)
    trimmed_us: int | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is a next page, which may turn out to be empty."""
        return self.next is not None


def page_of(
    listed: Iterable[tuple[str, dict[str, Any]]], criteria: Mapping[str, Any], limit: int, begin: Cursor
) -> Page:
    """Return a page of at most ``limit`` records that have the values in ``criteria``.

    ``listed`` yields pairs of a place (number or entry id) and a record. The pairs start after the cursor ``begin`` and
    have its order. In the cursors of the page, only the order ``asc`` is marked with a letter.

    The page's ``after`` follows the newest record that was read. However, if the order is ``desc`` and ``begin`` has a
    place, ``after`` follows the newest record of the page.
    """
    is_upward = begin.order == "asc"
    records: list[tuple[str, dict[str, Any]]] = []
    newest, has_more = begin.place, False
    for place, record in listed:
        is_selected = criteria.items() <= record.items()
        has_more = is_selected and len(records) == limit
        if has_more:
            break
        newest = place if is_upward else newest or place
        if is_selected:
            records.append((place, record))
    if not is_upward and begin.place is not None and records:
        newest = records[0][0]
    after = Cursor("asc", newest).text("desc")
    last = newest if is_upward else records[-1][0] if records else None
    return Page(
        items=[record for _, record in records],
        after=after,
        next=Cursor(begin.order, last).text("desc") if has_more else None,
        cursors=[Cursor("asc", place).text("desc") for place, _ in records] if is_upward else [],
    )


def require_cursor(after: str, form: re.Pattern[str]) -> None:
    """Raise ``InvalidCursor`` unless the text of a cursor matches the regular expression ``form``."""
    if not form.fullmatch(after):
        excerpt = after if len(after) <= 100 else after[:100] + "…"
        raise InvalidCursor(f"after={excerpt!r} is not a cursor; leave it out, or send the cursor of the last page")

"""Windows of aggregates: which events of a group count at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from aggregates.errors import AggregateRefused
from streams import duration_of, duration_text

WindowKind: TypeAlias = Literal["sliding", "last", "tumbling", "hopping", "session", "transaction"]

_MOST_PANES = 10_000
_FORMS = (
    "'1 h' (sliding over event time), {last: 100}, {tumbling: 1 h}, {hopping: 1 h, every: 5 min}, {session: 30 min} "
    "or transaction; with 'for_each_row_of' also {row: COLUMN, most: 1 h}"
)


@dataclass(frozen=True, slots=True)
class Window:
    """The window of an aggregate: which events of a group count at a time.

    Attributes:
        kind: ``sliding``: events younger than ``size``. ``last``: the newest ``size`` events. ``tumbling`` and
            ``hopping``: events between two fixed times. ``session``: events with gaps shorter than ``size``.
            ``transaction``: all events of a transaction.
        size: Microseconds, or the number of events of ``last``. 0 for ``transaction``.
        every_us: The distance between the beginnings of fixed windows. Otherwise 0.
        column: The table column with the length of each row's window, at most ``size``. Empty if groups are not rows of
            a table, or if rows have no windows of their own.
    """

    kind: WindowKind
    size: int = 0
    every_us: int = 0
    column: str = ""

    @property
    def is_fixed(self) -> bool:
        """Whether the window begins and ends at times that do not depend on events."""
        return self.kind in ("tumbling", "hopping")

    @property
    def ends(self) -> bool:
        """Whether a window ends as a whole, so that the next window begins empty."""
        return self.is_fixed or self.kind in ("session", "transaction")

    def of_row(self, duration: object) -> Window:
        """Return the window of a table row whose ``column`` has the value ``duration``.

        Null means the longest window.
        """
        return replace(self, size=min(self.size, duration_of(duration) or self.size), column="")

    @property
    def text(self) -> str:
        if self.kind == "transaction":
            return "all events of the transaction"
        if self.kind == "last":
            return f"the last {self.size:,} events"
        size = duration_text(self.size)
        if self.column:
            return f"the events younger than the row's {self.column}, at most {size}"
        words = {
            "sliding": f"the events of less than {size} ago",
            "tumbling": f"the events of each {size}",
            "hopping": f"the events of {size}, every {duration_text(self.every_us)}" if self.every_us else "",
            "session": f"events with pauses of less than {size} between them",
        }
        return words[self.kind]


def read_window(value: object) -> Window:
    """Read the member ``window`` of an aggregate's document.

    Raises:
        AggregateRefused: The value describes no window.
    """
    if isinstance(value, str):
        return Window("transaction") if value.strip() == "transaction" else Window("sliding", read_duration(value))
    if isinstance(value, Mapping):
        return _of_members(value)
    raise _refused(value)


def read_duration(value: object, field: str = "window") -> int:
    """Return the microseconds of a duration such as ``90 s``.

    Raises:
        AggregateRefused: The value is no duration of at least a microsecond.
    """
    size_us = duration_of(value)
    if size_us is None and field == "window":
        raise _refused(value)
    if size_us is None:
        raise AggregateRefused(f"{field}: {value!r} is not a duration such as '7 d' or '90 s'", field=field)
    if not size_us:
        raise AggregateRefused(f"{field}: {value!r} is not a whole number of microseconds, or too long", field=field)
    return size_us


def _of_members(value: Mapping[Any, Any]) -> Window:
    match dict(value):
        case {"last": int() as size, **others} if not others and not isinstance(size, bool) and size >= 1:
            return Window("last", size)
        case {"tumbling": size, **others} if not others:
            size_us = read_duration(size)
            return Window("tumbling", size_us, size_us)
        case {"session": size, **others} if not others:
            return Window("session", read_duration(size))
        case {"row": str() as column, "most": size, **others} if not others and column:
            return Window("sliding", read_duration(size), column=column)
        case {"hopping": size, "every": every, **others} if not others:
            size_us, every_us = read_duration(size), read_duration(every)
            if size_us % every_us or size_us // every_us > _MOST_PANES:
                raise AggregateRefused(
                    f"window: a hopping window of {size} every {every} is not made of up to {_MOST_PANES:,} equal "
                    "parts; choose an 'every' that divides it",
                    field="window",
                )
            return Window("hopping", size_us, every_us)
    raise _refused(value)


def _refused(value: object) -> AggregateRefused:
    return AggregateRefused(f"window: {value!r} is not a window; write {_FORMS}", field="window")

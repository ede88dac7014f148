"""What an aggregate emits, by definition: every window is computed anew from all events, at every time that matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, NamedTuple

from aggregates import AggregateBody, AggregateValue, Holds, Scalar, group_text

Emitted = tuple[int, str, str, Mapping[str, Any]]
"""Time, change, group and values."""


class Row(NamedTuple):
    """One event.

    Attributes:
        group: The values of ``by``.
        key: Correlation key of the event, and its hash.
        arguments: The argument of each value; True for ``count()``.
        retracts: The id of the event that this one takes out of the window; empty: it counts itself.
        ends: Whether the transaction of the key ends after the event, or here (a row without an event has no id).
    """

    time_us: int
    group: tuple[Scalar, ...]
    key: str
    key_hash: int
    id: str
    arguments: tuple[Scalar, ...]
    retracts: str = ""
    ends: bool = False


@dataclass(frozen=True)
class Moment:
    """A time at which a window of a group has changed, or ends; ``of_all``: the events of the window of all groups."""

    at_us: int
    inside: Sequence[Row]
    of_all: Sequence[Row] = ()
    is_by_event: bool = False
    ends: bool = False


class Naive:
    """The reference of an aggregate, for events, retractions and ends in the order of the log, one at a time.

    An event that is older than the newest one counts from the time of that one on.
    """

    def __init__(
        self, body: AggregateBody, holds: Holds | None, rows: Sequence[Row], is_simultaneous: bool = False
    ) -> None:
        self.body, self.holds, self.rows, self.is_simultaneous = body, holds, rows, is_simultaneous
        self.at_us = [max(one.time_us for one in rows[: place + 1]) for place in range(len(rows))]
        self.newest_us = self.at_us[-1]

    def emitted(self) -> list[Emitted]:
        """What is emitted; at the end of the input, windows that end as a whole end at the newest time."""
        groups = {group_text(row.group): row.group for row in self.rows if row.id and not row.retracts}
        found = [one for text, group in groups.items() for one in self._of_group(text, group)]
        return sorted(found, key=lambda one: (one[0], one[2], one[1], repr(one[3])))

    def _of_group(self, text: str, group: tuple[Scalar, ...]) -> list[Emitted]:
        key = next(row.key for row in self.rows if group_text(row.group) == text and row.id and not row.retracts)
        places = [
            place
            for place, row in enumerate(self.rows)
            if (row.key == key and (row.retracts or not row.id)) or group_text(row.group) == text
        ]
        if self.body.window.is_fixed:
            return self._fixed(text, group, places)
        moments = list(self._moments(places))
        if not self.body.window.ends or self.holds is not None:
            return self._changes(text, group, moments)
        return [(one.at_us, "window", text, self._values(one.inside)) for one in moments if one.ends]

    def _live(self, places: Sequence[int]) -> list[Row]:
        """The events of some rows that the rows behind them do not retract, in the order of time."""
        found: list[Row] = []
        for row in (self.rows[place] for place in places):
            if row.retracts:
                gone = [one for one in found if one.id == row.retracts and one.key == row.key]
                found = [one for one in found if one not in gone[-1:]]
            elif row.id:
                found.append(row)
        return sorted(found, key=lambda one: one.time_us)

    def _fixed(self, text: str, group: tuple[Scalar, ...], places: Sequence[int]) -> list[Emitted]:
        size, every = self.body.window.size, self.body.window.every_us
        times_us = [row.time_us for row in self.rows]
        found: list[Emitted] = []
        first, last = min(times_us) // every * every + every, max(times_us) + size + every
        for end in range(first, last, every):
            inside, of_all = self._window(places, end), self._window(range(len(self.rows)), end)
            if inside and self._is_true(places, group, Moment(end, inside, of_all)):
                found.append((min(end, self.newest_us), "window", text, self._values(inside)))
        return found

    def _window(self, places: Sequence[int], end_us: int) -> list[Row]:
        """The events of a fixed window."""
        live = self._live([place for place in places if self.at_us[place] < end_us])
        return [row for row in live if end_us - self.body.window.size <= row.time_us < end_us]

    def _moments(self, places: Sequence[int]) -> Iterator[Moment]:
        """The changes of a window that is not fixed, event by event."""
        window, held = self.body.window, list[Row]()
        for place in places:
            row, at_us = self.rows[place], self.at_us[place]
            yield from self._passed(held, at_us)
            before = list(held)
            if row.retracts:
                held[:] = [one for one in held if one.id != row.retracts or one.key != row.key]
            elif row.id and self._counts(row, held, at_us):
                held.append(row)
                held.sort(key=lambda one: one.time_us)
                del held[: len(held) - window.size if window.kind == "last" and len(held) > window.size else 0]
            if held != before:
                of_all = self._young(self._live(range(place + 1)), at_us)
                yield Moment(at_us, list(held), of_all, is_by_event=True)
            if row.ends and window.kind in ("transaction", "last") and held:
                yield Moment(at_us, list(held), ends=True)
                held.clear()
        if window.kind == "sliding":
            yield from self._passed(held, self.newest_us)
        else:
            yield from self._passed(held, self.newest_us)
            if held:
                yield Moment(self.newest_us, list(held), ends=True)

    def _passed(self, held: list[Row], now_us: int) -> Iterator[Moment]:
        """Events that leave, and sessions that end, up to a time."""
        window = self.body.window
        while held and window.kind == "sliding" and held[0].time_us + window.size <= now_us:
            due_us = held[0].time_us + window.size
            held[:] = [row for row in held if row.time_us + window.size > due_us]
            before = [place for place in range(len(self.rows)) if self.at_us[place] < due_us]
            yield Moment(due_us, list(held), self._young(self._live(before), due_us))
        if held and window.kind == "session" and held[-1].time_us + window.size <= now_us:
            yield Moment(held[-1].time_us + window.size, list(held), ends=True)
            held.clear()

    def _counts(self, row: Row, held: Sequence[Row], at_us: int) -> bool:
        size = self.body.window.size
        match self.body.window.kind:
            case "sliding":
                return at_us - row.time_us < size
            case "last":
                return len(held) < size or held[0].time_us <= row.time_us
            case "session":
                return at_us - row.time_us < size or (bool(held) and held[0].time_us - row.time_us < size)
        return True

    def _young(self, rows: Sequence[Row], at_us: int) -> Sequence[Row]:
        return [row for row in rows if at_us - row.time_us < self.body.window.size]

    def _settled(self, moments: Sequence[Moment]) -> list[Moment]:
        """With simultaneous ties the last change of each time, unless the window ends."""
        found: list[Moment] = []
        for one in moments:
            if found and found[-1].at_us == one.at_us and not found[-1].ends and not one.ends:
                before = found.pop()
                one = replace(one, is_by_event=one.is_by_event or before.is_by_event)  # noqa: PLW2901 - merged
            if self.is_simultaneous and self.body.having is not None and self.body.having.overall:
                until = [place for place in range(len(self.rows)) if self.at_us[place] <= one.at_us]
                one = replace(one, of_all=self._young(self._live(until), one.at_us))  # noqa: PLW2901 - as above
            found.append(one)
        return found

    def _changes(self, text: str, group: tuple[Scalar, ...], moments: Sequence[Moment]) -> list[Emitted]:
        found: list[Emitted] = []
        was_true, places = False, [n for n, row in enumerate(self.rows) if group_text(row.group) == text]
        for one in self._settled(moments) if self.is_simultaneous else moments:
            if self.holds is None:
                if one.is_by_event and one.inside:
                    found.append((one.at_us, "each", text, self._values(one.inside)))
                continue
            is_true = bool(one.inside) and not one.ends and self._is_true(places, group, one)
            if is_true != was_true and (is_true or self.body.clear):
                found.append((one.at_us, "met" if is_true else "cleared", text, self._values(one.inside)))
            was_true = is_true
        return found

    def _is_true(self, places: Sequence[int], group: tuple[Scalar, ...], moment: Moment) -> bool:
        having = self.body.having
        if having is None or self.holds is None:
            return True
        known = {**dict(zip(self.body.by, group, strict=True)), **self._values(moment.inside)}
        for one in having.earlier:
            then = moment.at_us - one.ago_us
            if self.body.window.is_fixed:
                before = self._window(places, then)
            else:
                before = list(self._young([self.rows[n] for n in places if self.at_us[n] <= then], then))
            known[one.name] = self._values(before)[one.of] if before else None
        known.update((name, self._values(moment.of_all)[of]) for name, of in having.overall)
        return bool(self.holds({name: [value] for name, value in known.items()}, 1)[0])

    def _values(self, rows: Sequence[Row]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place, one in enumerate(self.body.values):
            found[one.name] = value_of(one, [row.arguments[place] for row in rows])
        if self.body.events:
            found["events"] = [{"id": row.id} for row in rows[-self.body.events :]]
        return found


def value_of(value: AggregateValue, arguments: Sequence[Scalar]) -> Scalar:
    """A value over some arguments, in the order of time."""
    known = [one for one in arguments if one is not None]
    numbers = [one for one in known if isinstance(one, int | float) and not isinstance(one, bool)]
    match value.function:
        case "count":
            return len(known)
        case "count_if":
            return sum(one is True for one in known)
        case "distinct":
            return len({(isinstance(one, bool), one) for one in known})
        case "first" | "last":
            return (arguments[0] if value.function == "first" else arguments[-1]) if arguments else None
        case "min" | "max":
            ordered = sorted(
                (one for one in known if not isinstance(one, bool)), key=lambda one: (isinstance(one, str), one)
            )
            return None if not ordered else ordered[0 if value.function == "min" else -1]
    total = sum(map(Fraction, numbers), Fraction(0))
    if not numbers or (value.function == "stddev" and len(numbers) < 2):
        return None
    match value.function:
        case "sum":
            is_whole = all(isinstance(one, int) for one in numbers) and -(2**63) <= total < 2**63
            return int(total) if is_whole else float(total)
        case "avg":
            return float(total / len(numbers))
        case "stddev":
            mean = total / len(numbers)
            return sqrt(sum((Fraction(one) - mean) ** 2 for one in numbers) / (len(numbers) - 1))
        case _:
            ordered_numbers = sorted(numbers)
            return next(one for n, one in enumerate(ordered_numbers, 1) if Fraction(n, len(numbers)) >= value.share)

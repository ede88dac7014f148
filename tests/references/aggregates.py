"""What an aggregate emits, by definition: every window is computed anew from all events, at every time that matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

from aggregates import AggregateBody, AggregateValue, Holds, Row, Scalar, group_text

Emitted = tuple[int, str, str, Mapping[str, Any]]
"""Time, change, group and values."""

Moment = tuple[int, Sequence[Row], Sequence[Row]]
"""Time, the events of the window of a group, and those of the window over all groups."""


@dataclass(frozen=True)
class Naive:
    """The reference of an aggregate, for events in the order of time and, where times are equal, of the log."""

    body: AggregateBody
    holds: Holds | None
    rows: Sequence[Row]
    is_simultaneous: bool = False

    def emitted(self) -> list[Emitted]:
        """What is emitted; at the end of the input, windows that end as a whole end at the newest time."""
        newest_us = max(row.time_us for row in self.rows)
        every = [one for group in {row.group for row in self.rows} for one in self._of_group(group)]
        is_kept = self.body.window.ends
        found = [(min(one[0], newest_us), *one[1:]) for one in every if is_kept or one[0] <= newest_us]
        return sorted(found, key=lambda one: (one[0], one[2], one[1], repr(one[3])))

    def _of_group(self, group: tuple[Scalar, ...]) -> list[Emitted]:
        rows = [row for row in self.rows if row.group == group]
        match self.body.window.kind:
            case "tumbling" | "hopping":
                return self._fixed(rows)
            case "session":
                return [
                    one
                    for part in self._sessions(rows)
                    for one in self._part(part, part[-1].time_us + self.body.window.size)
                ]
            case _:
                return self._continuous(rows)

    def _fixed(self, rows: Sequence[Row]) -> list[Emitted]:
        size, every = self.body.window.size, self.body.window.every_us
        ends = {
            t for row in rows for t in range(row.time_us // every * every + every, row.time_us + size + every, every)
        }
        found: list[Emitted] = []
        for end in sorted(ends):
            inside = [row for row in rows if end - size <= row.time_us < end]
            of_all = [row for row in self.rows if end - size <= row.time_us < end]
            if inside and self._is_true(rows, inside, end, of_all):
                found.append((end, "window", group_text(rows[0].group), self._values(inside)))
        return found

    def _sessions(self, rows: Sequence[Row]) -> list[list[Row]]:
        parts: list[list[Row]] = []
        for row in rows:
            if not parts or row.time_us - parts[-1][-1].time_us >= self.body.window.size:
                parts.append([])
            parts[-1].append(row)
        return parts

    def _part(self, rows: Sequence[Row], end_us: int) -> list[Emitted]:
        """The events of a window that ends as a whole."""
        text = group_text(rows[0].group)
        if self.holds is None:
            return [(end_us, "window", text, self._values(rows))]
        found = self._changes(rows, [(row.time_us, rows[: number + 1], ()) for number, row in enumerate(rows)])
        if found and found[-1][1] == "met" and self.body.clear:
            found.append((end_us, "cleared", text, self._values(rows)))
        return found

    def _continuous(self, rows: Sequence[Row]) -> list[Emitted]:
        window, steps = self.body.window, list[Moment]()
        if window.kind == "last":
            steps = [(row.time_us, rows[max(0, n + 1 - window.size) : n + 1], ()) for n, row in enumerate(rows)]
        else:
            outs = sorted({row.time_us + window.size for row in rows})
            for number, row in enumerate(rows):
                while outs and outs[0] <= row.time_us:
                    steps.append(self._moment(rows[:number], outs.pop(0)))
                steps.append(self._moment(rows[: number + 1], row.time_us, row))
            steps += [self._moment(rows, out) for out in outs]
        if self.holds is None:
            events = {row.time_us for row in rows}
            chosen = self._settled(steps) if self.is_simultaneous else steps
            kept = [one for one in chosen if one[0] in events and one[1] and one[1][-1].time_us == one[0]]
            return [(at, "each", group_text(rows[0].group), self._values(inside)) for at, inside, _ in kept]
        found = self._changes(rows, steps)
        if window.kind == "last" and self.body.clear and found and found[-1][1] == "met":  # the end of the input
            end_us = max(row.time_us for row in self.rows)
            found.append((end_us, "cleared", group_text(rows[0].group), self._values(steps[-1][1])))
        return found

    def _moment(self, rows: Sequence[Row], at_us: int, event: Row | None = None) -> Moment:
        """The window of a group, and that over all groups, when an event comes or events leave."""
        if self.is_simultaneous:
            of_all = [row for row in self.rows if row.time_us <= at_us]
        elif event is None:
            of_all = [row for row in self.rows if row.time_us < at_us]
        else:
            of_all = list(self.rows[: self.rows.index(event) + 1])
        return at_us, self._young(rows, at_us), self._young(of_all, at_us)

    def _young(self, rows: Sequence[Row], at_us: int) -> Sequence[Row]:
        return [row for row in rows if at_us - row.time_us < self.body.window.size]

    def _settled(self, steps: Sequence[Moment]) -> list[Moment]:
        return list({one[0]: one for one in steps}.values())  # the last of each time

    def _changes(self, rows: Sequence[Row], steps: Sequence[Moment]) -> list[Emitted]:
        found: list[Emitted] = []
        was_true = False
        for at, inside, of_all in self._settled(steps) if self.is_simultaneous else steps:
            is_true = bool(inside) and self._is_true(rows, inside, at, of_all)
            if is_true != was_true and (is_true or self.body.clear):
                text = group_text(rows[0].group)
                found.append((at, "met" if is_true else "cleared", text, self._values(inside)))
            was_true = is_true
        return found

    def _is_true(self, rows: Sequence[Row], inside: Sequence[Row], at_us: int, of_all: Sequence[Row]) -> bool:
        having = self.body.having
        if having is None or self.holds is None:
            return True
        known = {**dict(zip(self.body.by, rows[0].group, strict=True)), **self._values(inside)}
        size = self.body.window.size
        for one in having.earlier:
            then = at_us - one.ago_us
            if self.body.window.is_fixed:
                before = [row for row in rows if then - size <= row.time_us < then]
            else:
                before = [row for row in rows if row.time_us <= then and then - row.time_us < size]
            known[one.name] = self._values(before)[one.of] if before else None
        known.update((name, self._values(of_all)[of]) for name, of in having.overall)
        return bool(self.holds({name: [value] for name, value in known.items()}, 1)[0])

    def _values(self, rows: Sequence[Row]) -> dict[str, Scalar]:
        found = {}
        for place, one in enumerate(self.body.values):
            found[one.name] = value_of(one, [row.arguments[place] for row in rows])
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
            return (
                int(total) if total.denominator == 1 and all(isinstance(one, int) for one in numbers) else float(total)
            )
        case "avg":
            return float(total / len(numbers))
        case "stddev":
            mean = total / len(numbers)
            return sqrt(sum((Fraction(one) - mean) ** 2 for one in numbers) / (len(numbers) - 1))
        case _:
            ordered_numbers = sorted(numbers)
            return next(one for n, one in enumerate(ordered_numbers, 1) if Fraction(n, len(numbers)) >= value.share)

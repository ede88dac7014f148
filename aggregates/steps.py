"""Changes of groups, and the derived events that follow once the condition is evaluated.

The condition is evaluated for many changes (*steps*) at once, on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aggregates.document import AggregateBody
from aggregates.emitting import WAITED, Change, Emission
from aggregates.kernels import tables as kernel
from aggregates.kernels.groups import note_truths, note_within
from aggregates.kernels.tables import Steps
from aggregates.known_groups import KnownGroups
from aggregates.objects import GroupDetails
from aggregates.past import Past, Values
from aggregates.scalars import Scalar
from aggregates.window_tables import WindowTables
from streams import shown_time

Holds: TypeAlias = Callable[[Mapping[str, Any], int], NDArray[np.bool_]]
"""Evaluates the condition for each row of named columns, which are plain values or a ``ScalarColumn``."""

_NO_DETAILS = GroupDetails()


@dataclass(frozen=True, slots=True)
class InBounds:
    """A condition that is exactly its bounds: true if every value that has bounds is a number within them."""

    holds: Holds

    def __call__(self, columns: Mapping[str, Any], size: int) -> NDArray[np.bool_]:
        return self.holds(columns, size)


Causes: TypeAlias = Callable[[NDArray[np.int64]], Sequence[str]]
"""The ids of the events with given numbers; an id is empty where passing time is the cause."""


class StepReader:
    """Evaluates the condition of an aggregate after each change of a group (step), and makes the derived events.

    Args:
        holds: Evaluates ``having``. None if the aggregate has no condition. The bounds of an ``InBounds`` condition are
            in ``tables``.

    Attributes:
        details: For the number of a step, the estimates and the listed events of the step's group.
    """

    def __init__(
        self,
        body: AggregateBody,
        holds: Holds | None,
        groups: KnownGroups,
        tables: WindowTables,
        *,
        is_simultaneous: bool,
    ) -> None:
        self._body, self._holds, self._groups, self._tables = body, holds, groups, tables
        self._is_simultaneous = is_simultaneous
        self._names = () if body.having is None else body.having.names
        self.details: dict[int, GroupDetails] = {}
        self.past = Past(0 if body.having is None else body.having.longest_us, is_exact=body.window.is_fixed)
        self.overall: dict[int, Values] = {}  # values over all groups, by beginning of the fixed window (otherwise 0)

    def emissions(self, is_taken: NDArray[np.bool_], causes: Causes) -> list[Emission]:
        """Return the derived events of the steps that ``is_taken`` selects, and forget these steps."""
        chosen = np.flatnonzero(is_taken)
        if not len(chosen):
            if len(is_taken) == len(self._tables.steps.codes):
                self._tables.take_steps(is_taken)  # frees the room of these steps
            return []
        base, size = int(self._tables.state[kernel.BASE]), len(chosen)
        part = slice(0, size) if chosen[-1] + 1 == size else chosen
        columns: Sequence[NDArray[Any]] = self._tables.steps
        steps = Steps(*(column[..., part] for column in columns))
        details = [self.details.pop(base + number, _NO_DETAILS) for number in chosen.tolist()] if self.details else []
        rows, is_true = self._changes(steps, details)
        emitted = [*self._emitted(steps, rows, is_true, details, causes)] if len(rows) else []
        self._tables.take_steps(is_taken)
        if self.details:
            begin, rest = int(self._tables.state[kernel.BASE]), np.flatnonzero(~is_taken)
            numbers = ((begin + new, base + old) for new, old in enumerate(rest.tolist()))
            self.details = {new: self.details[old] for new, old in numbers if old in self.details}
        return emitted

    def forget_overall_until(self, now_us: int) -> None:
        """Forget the values over all groups for fixed windows that have ended."""
        window = self._body.window
        if window.is_fixed and self.overall:
            self.overall = {start: total for start, total in self.overall.items() if start + window.size > now_us}

    def _changes(self, steps: Steps, details: Sequence[GroupDetails]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the indexes of the steps to emit, and for each of them whether the condition is true."""
        body, size = self._body, len(steps.codes)
        if self._holds is None:
            is_ended = steps.ended & body.window.ends
            rows = np.flatnonzero((steps.sizes > 0) & (is_ended | (~steps.ended & (steps.places != -1))))
            return rows, np.ones(len(rows), np.bool_)
        if isinstance(self._holds, InBounds):
            holds = np.empty(size, np.bool_)
            values = (np.ascontiguousarray(steps.kinds), np.ascontiguousarray(steps.floats))
            note_within(*values, self._tables.bounds, holds)
        else:
            objects = None if self._are_numbers(steps, details) else self._values(steps, details, None)
            columns, is_of_all = _Columns(body, self._groups, steps, objects), np.zeros(size, np.bool_)
            if self._names:
                columns.update(zip(self._names, self._more(steps, details, is_of_all), strict=True))
            holds = self._holds(columns, size) & ~is_of_all
        if body.window.is_fixed:
            rows = np.flatnonzero(holds & (steps.sizes > 0))
            return rows, np.ones(len(rows), np.bool_)
        changes, words = np.empty(size, np.int64), self._tables.groups.words
        rows = changes[: note_truths(steps.codes, steps.sizes, steps.ended, holds, words, changes, body.clear)]
        return rows, holds[rows]

    def _values(
        self, steps: Steps, details: Sequence[GroupDetails], rows: NDArray[np.int64] | None
    ) -> Sequence[Sequence[Scalar]]:
        """Return one column for each value of the aggregate, with the values after the steps in ``rows``.

        None means all steps.
        """
        part: Any = slice(None) if rows is None else rows
        values = zip(*(column[:, part] for column in (steps.kinds, steps.integers, steps.floats)), strict=True)
        columns = [self._tables.scalars(*parts) for parts in values]
        numbers = range(len(steps.codes)) if rows is None else rows.tolist()
        for row, number in enumerate(numbers if details else ()):
            for place, value in details[number].estimates.items():
                columns[place][row] = value
        return columns

    @staticmethod
    def _are_numbers(steps: Steps, details: Sequence[GroupDetails]) -> bool:
        kinds = steps.kinds.tobytes()
        return not details and not any(kind in kinds for kind in (kernel.TEXT, kernel.BOOLEAN, kernel.FALSE))

    def _more(
        self, steps: Steps, details: Sequence[GroupDetails], is_of_all: NDArray[np.bool_]
    ) -> Sequence[Sequence[Scalar]]:
        """Return a column over the steps for each of ``Having.names``: earlier values, then values over all groups.

        The values of the steps are remembered as earlier values. ``is_of_all`` becomes true for steps of the group of
        all events.
        """
        body, groups, more = self._body, self._groups, list[list[Scalar]]()
        having, window = body.having, body.window
        if having is None:
            return ()
        places = {value.name: place for place, value in enumerate(body.values)}
        values = zip(*self._values(steps, details, None), strict=True)
        columns = zip(
            *(column.tolist() for column in (steps.codes, steps.at_us, steps.sizes, steps.ended)), strict=True
        )
        texts = [text for _, text, _ in groups.described(steps.codes)]
        for number, ((code, time_us, size, is_ended), some) in enumerate(zip(columns, values, strict=True)):
            start = int(groups.starts[code]) if window.is_fixed else 0
            at_us = start + window.size if window.is_fixed else time_us
            if groups.is_of_all(code):
                is_of_all[number], self.overall[start] = True, some
                more.append([None] * len(self._names))
                continue
            text = texts[number]
            earlier = [(self.past.at(text, at_us - value.ago_us), places[value.of]) for value in having.earlier]
            over = self.overall.get(start)
            more.append([None if past is None else past[place] for past, place in earlier])
            more[-1] += [None if over is None else over[places[of]] for _, of in having.overall]
            if having.earlier and is_ended and window.kind in ("transaction", "last"):
                self.past.forget(text)
            elif having.earlier:
                is_over = not size or (is_ended and not window.is_fixed)
                self.past.remember(text, at_us, None if is_over else some)
        return list(map(list, zip(*more, strict=True)))

    def _emitted(
        self,
        steps: Steps,
        rows: NDArray[np.int64],
        is_true: NDArray[np.bool_],
        details: Sequence[GroupDetails],
        causes: Causes,
    ) -> Iterator[Emission]:
        body, is_fixed, codes, places = self._body, self._body.window.is_fixed, steps.codes[rows], steps.places[rows]
        names, time_text = (*body.by, *(value.name for value in body.values)), cache(shown_time)
        begins_us = self._groups.starts[codes] if is_fixed else steps.firsts[rows]
        ranks = _ranks(steps, is_simultaneous=self._is_simultaneous)[rows]
        numbers = (steps.at_us[rows], *ranks.T, steps.ended[rows], begins_us, rows, is_true)
        columns = zip(
            self._groups.described(codes),
            self._groups.key_hashes_of(codes).tolist(),
            causes(places),
            zip(*self._values(steps, details, rows), strict=True),
            *(value.tolist() for value in numbers),
            strict=True,
        )
        for (group, text, key), key_hash, cause, some, at_us, rank, place, is_ended, begin_us, row, holds in columns:
            data: dict[str, Any] = dict(zip(names, (*group, *some), strict=True))
            change: Change = "met" if holds else "cleared"
            if is_fixed or self._holds is None:
                change = "window" if is_ended else "each"
            if change == "window":
                end_us = begin_us + body.window.size if is_fixed else at_us
                data |= {"from": time_text(begin_us), "to": time_text(end_us)}
            if details:
                data |= {f"{name}_error": error for name, error in details[row].errors.items()}
            if body.events:
                data["events"] = details[row].events
            named = str(begin_us) if is_ended else cause
            yield Emission(at_us, rank, place, text, change, named, key, key_hash, data)


def _ranks(steps: Steps, *, is_simultaneous: bool) -> NDArray[np.int64]:
    """Return the rank and place of each step (see ``Emission``), as an array (steps, 2).

    If events may be simultaneous, a step waits for all events of its time. But if the group's window ends at this time,
    the step has the rank and place of the window's end.
    """
    is_by_event = steps.places >= 0
    ranks = np.stack([is_by_event.astype(np.int64), np.where(is_by_event, steps.places + 1, 0)], axis=1)
    if not is_simultaneous:
        return ranks
    ranks[~steps.ended] = WAITED, 0
    ends: dict[tuple[int, int], int] = {}  # by group and time: the step of the next end
    columns = (steps.codes.tolist(), steps.at_us.tolist(), steps.ended.tolist())
    numbered = enumerate(zip(*columns, strict=True)) if steps.ended.any() else ()
    for step, (code, at_us, is_ended) in reversed([*numbered]):
        if is_ended:
            ends[code, at_us] = step
        elif (end := ends.get((code, at_us))) is not None:
            ranks[step] = ranks[end]
    return ranks


class _Columns(dict[str, Any]):
    """The columns that a condition reads, by name: values of steps, and attributes of groups.

    A column of an attribute is made when it is first read.
    """

    def __init__(
        self, body: AggregateBody, groups: KnownGroups, steps: Steps, objects: Sequence[Sequence[Scalar]] | None
    ) -> None:
        if objects is None:
            values = zip(body.values, steps.kinds, steps.integers, steps.floats, strict=True)
            super().__init__((name.name, tuple(parts)) for name, *parts in values)
        else:
            super().__init__((value.name, column) for value, column in zip(body.values, objects, strict=True))
        self._by, self._groups, self._codes = body.by, groups, steps.codes

    def __missing__(self, name: str) -> list[Scalar]:
        place = self._by.index(name)
        return [values[place] for values, _, _ in self._groups.described(self._codes)]

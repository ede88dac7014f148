"""The tables of a sliding window, which grow as its kernel needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import ScalarColumn, scalar_of
from aggregates.document import AggregateBody
from aggregates.kernels import sliding as kernel
from aggregates.kernels.sliding import Events, Groups, Steps, note_waiting, slide
from aggregates.rows import Scalar
from aggregates.values import Function

FUNCTIONS: Mapping[Function, int] = {
    "count": kernel.KNOWN,
    "count_if": kernel.TRUE,
    "sum": kernel.SUM,
    "avg": kernel.AVERAGE,
    "min": kernel.LEAST,
    "max": kernel.GREATEST,
}
"""The functions of values that the kernel computes."""

COLUMNS = ("times_us", "codes", "kinds", "numbers")
"""The columns of events that are saved."""

_LEAST = 1_024
_SPARE = 16  # tables grow by one place for this number
_STEPS = 32_768
_MOST_EXACT = 2**53
_MOST_FLOAT = 2.0**52
_FINEST = 2.0**kernel.UNIT
_SUM_WORDS = 3
_OWN: tuple[Literal["C"], Literal["W"]] = ("C", "W")


class WindowTables:
    """The events of a sliding window, the totals of its groups, and steps that are not emitted yet."""

    def __init__(self, body: AggregateBody, bounds: NDArray[np.float64]) -> None:
        self._bounds = bounds
        self.arguments = body.arguments
        self._functions = [kernel.ROWS if not one.argument else FUNCTIONS[one.function] for one in body.values]
        self._columns = [self.arguments.index(one.argument) if one.argument else 0 for one in body.values]
        pairs = list(zip(self._functions, self._columns, strict=True))
        self._numeric = sorted({column for function, column in pairs if function >= kernel.SUM})
        self._summed = sorted({column for function, column in pairs if function in (kernel.SUM, kernel.AVERAGE)})
        self._extremes = {column for function, column in pairs if function >= kernel.LEAST}
        self.plan, words = self._planned(0)
        self.state = np.zeros(kernel.PLACES, np.int64)
        self.state[[kernel.BASE, kernel.FREE]] = 1, -1
        self.ring = self._events(_LEAST)
        empty = np.zeros(0, np.int32)
        self.groups = Groups(
            np.zeros((_LEAST, words), np.int64),
            np.zeros(0, np.int64),
            np.zeros(0),
            empty,
            empty,
            np.zeros(kernel.SCRATCH, np.int64),
        )
        self.steps = self._new_steps(_STEPS)

    @property
    def held(self) -> int:
        """The number of events in the window."""
        return int(self.state[kernel.HELD])

    @property
    def waiting(self) -> int:
        """The number of steps that are not taken."""
        return int(self.state[kernel.STEPS])

    def fits(self, columns: Sequence[ScalarColumn]) -> bool:
        """Whether the kernel computes with some arguments exactly; not with texts in extremes, and extreme numbers."""
        for place, (kinds, integers, floats) in enumerate(columns):
            if place in self._summed and (some := floats[kinds == kernel.FLOAT]).size:
                if not (np.abs(some) < _MOST_FLOAT).all():
                    return False
                units = some * _FINEST
                if not (units == np.floor(units)).all():
                    return False
            if place in self._extremes:
                some_integers = integers[kinds == kernel.INTEGER]
                is_exact = (some_integers > -_MOST_EXACT) & (some_integers < _MOST_EXACT)
                if not is_exact.all() or (kinds == kernel.TEXT).any():
                    return False
        return True

    def batch(
        self,
        times_us: NDArray[np.int64],
        at_us: NDArray[np.int64],
        codes: NDArray[np.int32],
        columns: Sequence[ScalarColumn],
    ) -> Events:
        """Events that fit, as the kernel takes them in."""
        size = len(times_us)
        kinds = np.zeros((len(columns), size), np.uint8)
        numbers = np.zeros((len(self._numeric), size), np.int64)
        for place, column in enumerate(columns):
            is_false = (column.kinds == kernel.BOOLEAN) & (column.integers == 0)
            kinds[place] = np.where(is_false, kernel.FALSE, column.kinds)
        for place, source in enumerate(self._numeric):
            column = columns[source]
            bits = np.ascontiguousarray(column.floats, np.float64).view(np.int64)
            numbers[place] = np.where(column.kinds == kernel.INTEGER, column.integers, bits)
        places = np.arange(size)
        times_us, at_us = np.require(times_us, np.int64, _OWN), np.require(at_us, np.int64, _OWN)
        return Events(times_us, codes, kinds, numbers, numbers.view(np.float64), at_us, places)

    def slide(self, batch: Events, groups: int, limits: tuple[int, int, int, int]) -> Iterator[int]:
        """Pass time with a batch; yields when steps up to ``BEGUN`` are to be taken, and after the last row.

        ``limits``: modes, the most events, the size of the window, and the time until which it passes. Yields ``FULL``,
        ``TOO_MANY`` or at last ``DONE``.
        """
        state = self.state
        state[kernel.ROW] = state[kernel.AHEAD] = 0
        if self._summed and (batch.kinds[self._summed] == kernel.FLOAT).any():
            self._widen()
        if groups > len(self.groups.words):
            self._set_words(_grown(self.groups.words, groups + groups // _SPARE))
        while True:
            match status := slide(self.ring, batch, self.groups, self.steps, self.plan, self._bounds, state, *limits):
                case kernel.NO_ROOM:
                    self._resize(self.held + max(_LEAST, self.held // _SPARE))
                case kernel.NO_NODES:
                    self._add_nodes()
                case _:
                    yield status
            if status in (kernel.DONE, kernel.TOO_MANY):
                return

    def take_steps(self, count: int) -> None:
        """Forget the first steps, which are emitted."""
        state = self.state
        columns: Sequence[NDArray[Any]] = self.steps
        for column in columns:
            rest = column[..., count : state[kernel.STEPS]].copy()
            column[..., : rest.shape[-1]] = rest
        state[kernel.STEPS] -= count
        state[kernel.BEGUN] = max(0, state[kernel.BEGUN] - count)
        state[kernel.BASE] += count
        if state[kernel.STEPS] == len(self.steps.codes):
            self.steps = self._new_steps(2 * len(self.steps.codes))
            _copy(columns, self.steps)

    def wait(self, codes: Sequence[int], instant_us: int) -> None:
        """Note steps of groups, which wait for further events of a time."""
        while len(self.steps.codes) < len(codes):
            self.steps = self._new_steps(2 * len(self.steps.codes))
        some = np.array(codes, np.int32)
        note_waiting(self.groups, self.steps, self.plan, self._bounds, self.state, some, instant_us)

    def values_at(self, rows: NDArray[np.int64]) -> list[tuple[Scalar, ...]]:
        """The values of some steps."""
        columns = zip(self.steps.kinds, self.steps.integers, self.steps.floats, strict=True)
        found = (map(scalar_of, *(part[rows].tolist() for part in parts)) for parts in columns)
        return list(zip(*found, strict=True))

    def scalars(self, held: Events) -> list[list[Scalar]]:
        """The arguments of events; of one that is not computed with only its kind matters."""
        found = []
        for place, kinds in enumerate(held.kinds):
            numbers = (
                held.numbers[self._numeric.index(place)] if place in self._numeric else np.zeros(len(kinds), np.int64)
            )
            rows = zip(kinds.tolist(), numbers.tolist(), numbers.view(np.float64).tolist(), strict=True)
            found.append([scalar_of(*row) for row in rows])
        return found

    def read_columns(self, count: int, sections: Mapping[str, bytes]) -> Events:
        """The saved columns of ``held_columns``.

        Raises:
            ValueError: They do not have the length of that number of events.
        """
        columns: Sequence[NDArray[Any]] = self._events(count)[:4]
        times_us, codes, kinds, numbers = (
            np.frombuffer(sections[name], column.dtype).reshape(column.shape).copy()
            for name, column in zip(COLUMNS, columns, strict=True)
        )
        return Events(times_us, codes, kinds, numbers, numbers.view(np.float64), times_us, np.arange(count))

    def chosen(self, held: Events, rows: NDArray[np.intp], codes: NDArray[np.int32]) -> Events:
        """Some events, with other codes of groups by the present ones."""
        times_us, numbers = held.times_us[rows], np.ascontiguousarray(held.numbers[:, rows])
        kinds = np.ascontiguousarray(held.kinds[:, rows])
        some = codes[held.codes[rows]]
        return Events(times_us, some, kinds, numbers, numbers.view(np.float64), times_us, np.arange(len(rows)))

    @property
    def no_events(self) -> Events:
        """A batch without events."""
        none = np.zeros(0, np.int64)
        return self.batch(none, none, none.astype(np.int32), [ScalarColumn.of([])] * len(self.arguments))

    def held_columns(self) -> Events:
        """A copy of the events in the window, oldest first."""
        begin, count = int(self.state[kernel.FIRST]), self.held
        ring = self.ring
        times_us, codes, kinds, numbers = (_from(column, begin, count) for column in ring[:4])
        return Events(times_us, codes, kinds, numbers, numbers.view(np.float64), times_us, np.arange(count))

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget groups, none of which has an event in the window; codes close up."""
        renumbered = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        begin, end = int(self.state[kernel.FIRST]), int(self.state[kernel.FIRST]) + self.held
        for part in (slice(begin, end), slice(0, max(0, end - len(self.ring.codes)))):
            self.ring.codes[part] = renumbered[self.ring.codes[part]]
        steps = self.steps.codes[: self.state[kernel.STEPS]]
        steps[:] = renumbered[steps]
        self._set_words(_grown(self.groups.words[: len(is_kept)][is_kept], _LEAST))

    def shrink(self) -> None:
        """Give room back of which little is used."""
        if len(self.ring.codes) > 4 * self.held + 4 * _LEAST:
            self._resize(self.held + max(_LEAST, self.held // _SPARE))

    def _planned(self, digits: int) -> tuple[NDArray[np.int64], int]:
        """The plan of the values, and the words of a group."""
        plan, offset = np.zeros((len(self._functions), kernel.DIGITS + 1), np.int64), kernel.HEADER
        for row, function, column in zip(plan, self._functions, self._columns, strict=True):
            numbers = self._numeric.index(column) if function >= kernel.SUM else 0
            row[:] = function, column, numbers, offset, digits
            width = {kernel.ROWS: 0, kernel.KNOWN: 1, kernel.TRUE: 1, kernel.LEAST: 2, kernel.GREATEST: 2}
            offset += width.get(function, _SUM_WORDS + digits)
        return plan, offset

    def _widen(self) -> None:
        """Give sums the digits of floats."""
        if self.plan[:, kernel.DIGITS].any():
            return
        before, (self.plan, words) = self.plan, self._planned(kernel.FLOAT_DIGITS)
        wide = np.zeros((len(self.groups.words), words), np.int64)
        wide[:, : kernel.HEADER] = self.groups.words[:, : kernel.HEADER]
        ends = [*before[1:, kernel.OFFSET].tolist(), self.groups.words.shape[1]]
        for old, end, new in zip(
            before[:, kernel.OFFSET].tolist(), ends, self.plan[:, kernel.OFFSET].tolist(), strict=True
        ):
            wide[:, new : new + end - old] = self.groups.words[:, old:end]
        self._set_words(wide)

    def _set_words(self, words: NDArray[np.int64]) -> None:
        self.groups = self.groups._replace(words=np.ascontiguousarray(words))

    def _events(self, room: int) -> Events:
        numbers = np.zeros((len(self._numeric), room), np.int64)
        kinds = np.zeros((len(self.arguments), room), np.uint8)
        none = np.zeros(0, np.int64)
        times_us, codes = np.zeros(room, np.int64), np.zeros(room, np.int32)
        return Events(times_us, codes, kinds, numbers, numbers.view(np.float64), none, none)

    def _resize(self, room: int) -> None:
        """Give the ring another number of slots."""
        held = self.held_columns()
        self.ring = self._events(room)
        _copy(held[:4], self.ring[:4])
        self.state[kernel.FIRST] = 0

    def _add_nodes(self) -> None:
        """Add free nodes, of which the first is the next free one."""
        groups, count = self.groups, len(self.groups.values)
        room = count + max(_LEAST, count // 4)
        newer = _grown(groups.newer, room)
        newer[count:] = np.arange(count + 1, room + 1)
        newer[-1] = self.state[kernel.FREE]
        self.groups = groups._replace(
            times_us=_grown(groups.times_us, room),
            values=_grown(groups.values, room),
            older=_grown(groups.older, room),
            newer=newer,
        )
        self.state[kernel.FREE] = count
        self.state[kernel.SPARE] += room - count

    def _new_steps(self, room: int) -> Steps:
        values = len(self._functions)
        return Steps(
            np.zeros(room, np.int32),
            np.zeros(room, np.int64),
            np.zeros(room, np.int64),
            np.zeros(room, np.int64),
            np.zeros((values, room), np.uint8),
            np.zeros((values, room), np.int64),
            np.zeros((values, room)),
        )


def _copy(columns: Iterable[NDArray[Any]], into: Iterable[NDArray[Any]]) -> None:
    """Write columns to the beginnings of longer ones."""
    for before, after in zip(columns, into, strict=True):
        after[..., : before.shape[-1]] = before


def _grown(rows: NDArray[Any], room: int) -> NDArray[Any]:
    grown = np.zeros((max(room, len(rows)), *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    return grown


def _from(column: NDArray[Any], begin: int, count: int) -> NDArray[Any]:
    """A copy of the part of a ring's column."""
    rest = max(0, begin + count - column.shape[-1])
    return np.concatenate([column[..., begin : begin + count], column[..., :rest]], axis=-1)

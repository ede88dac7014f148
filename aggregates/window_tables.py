"""The tables of windows, which grow when their kernel needs room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggregates.columns import ScalarColumn, scalar_of
from aggregates.document import AggregateBody
from aggregates.kernels import sums
from aggregates.kernels import tables as kernel
from aggregates.kernels.groups import forget_values, note_waiting
from aggregates.kernels.tables import Events, Groups, Steps
from aggregates.kernels.windows import slide
from aggregates.objects import EXACT
from aggregates.scalars import Scalar
from aggregates.texts import KnownTexts, TextPool
from aggregates.values import AggregateValue, Function

_FUNCTIONS: Mapping[Function, int] = {
    "count": kernel.KNOWN,
    "count_if": kernel.TRUE,
    "sum": kernel.SUM,
    "avg": kernel.AVERAGE,
    "stddev": kernel.DEVIATION,
    "distinct": kernel.DISTINCT,
    "quantile": kernel.QUANTILE,
    "first": kernel.OLDEST_OF,
    "last": kernel.NEWEST_OF,
    "min": kernel.LEAST,
    "max": kernel.GREATEST,
}
_SEEN = {
    kernel.OLDEST_OF: kernel.FIRST_SEEN,
    kernel.NEWEST_OF: kernel.LAST_SEEN,
    kernel.LEAST: kernel.LOWEST_SEEN,
    kernel.GREATEST: kernel.GREATEST_SEEN,
}  # where no events are held
_ORDERED = {kernel.LEAST: kernel.LOWEST_OF, kernel.GREATEST: kernel.GREATEST_OF}
_OF_TEXTS = ("distinct", "first", "last", "min", "max")
_TREES = (kernel.QUANTILE, kernel.DISTINCT, kernel.LOWEST_OF, kernel.GREATEST_OF)
_SUMMED = (kernel.SUM, kernel.AVERAGE, kernel.DEVIATION, kernel.SQUARES)

_COLUMNS = ("times_us", "codes", "kinds", "lows", "highs")  # saved columns of events
_NODES = ("integers", "reals", "older", "newer", "counts", "sizes")  # saved columns of nodes, if no events are held
_LEAST = 1_024
_SPARE = 16  # growing tables get one spare place per this number
_SPARE_LINKED = 8  # as above, where more has to be moved or windows end as a whole
_MOST_SPARE = 8_192  # spare places for the rest of a batch
_STEPS = 8_192
_LOG = 8_192
_MOST_EXACT = 2**53
_MOST_FLOAT = 2.0**52
_FINEST = 2.0**sums.UNIT
_WIDTHS = {
    **dict.fromkeys((kernel.ROWS, kernel.OLDEST_OF, kernel.NEWEST_OF), 0),
    **dict.fromkeys((kernel.KNOWN, kernel.TRUE), 1),
    **dict.fromkeys((kernel.LEAST, kernel.GREATEST, *_TREES), 2),
    **dict.fromkeys(_SEEN.values(), 3),
}
_SHARED = {
    kernel.AVERAGE: kernel.SUM,
    kernel.DEVIATION: kernel.SUM,
    kernel.GREATEST_OF: kernel.LOWEST_OF,
}  # functions that share a group's words
_STEPPED = kernel.EACH | kernel.EXPIRIES
_ROOM = 4  # entries of the log for a row
_UNITS = {sums.SHORT: 0, 0: 0, sums.FLOAT_DIGITS: sums.UNIT_DIGITS, sums.ALL_DIGITS: sums.ALL_UNIT_DIGITS}
_OWN: tuple[Literal["C"], Literal["W"]] = ("C", "W")


class BatchRows(NamedTuple):
    """Rows of events for the kernel, sorted by ``at_us``, the time at which an event takes effect.

    Attributes:
        sources: The index of each row's event in the columns of events.
        places: The number by which a step refers to each row.
        serials: The number by which a log entry refers to each row.
        ops: The kind of each row: an event, a retraction or the end of a window.
    """

    sources: NDArray[np.int64]
    times_us: NDArray[np.int64]
    at_us: NDArray[np.int64]
    places: NDArray[np.int64]
    serials: NDArray[np.int64]
    ops: NDArray[np.uint8] | NDArray[np.int64]

    def at(self, some: slice | NDArray[np.intp]) -> BatchRows:
        sources, times_us, at_us, places, serials = (column[some] for column in self[:5])
        return BatchRows(sources, times_us, at_us, places, serials, self.ops[some])

    def is_whole(self, size: int) -> bool:
        """Check whether the rows are exactly the ``size`` events of a batch, in its order."""
        return len(self.sources) == size and bool((self.sources[1:] > self.sources[:-1]).all())


class WindowTables:
    """The tables of the kernel ``slide``: events in windows, values of groups, and steps that are not emitted yet.

    A step is a change of a group, with its values afterwards.

    Args:
        body: The aggregate.
        bounds: The ranges of values. If a value is outside its range, the condition cannot be true.
        modes: The modes of the kernel ``slide``.
        ordered: The indexes of minima and maxima that need all values in sorted order.
        digits: The number of digits in sums, by numeric argument. If empty, all have the fewest.
        texts: The texts that occur as arguments.
    """

    def __init__(
        self,
        body: AggregateBody,
        bounds: NDArray[np.float64],
        modes: int,
        ordered: Collection[int],
        digits: Sequence[int] = (),
        texts: Sequence[str] = (),
    ) -> None:
        self.bounds, self._modes, self._body = bounds, modes, body
        self.arguments, self.texts = body.arguments, KnownTexts(texts)
        self._texts_kept = len(texts)
        self._functions = [self._function_of(place, value, ordered) for place, value in enumerate(body.values)]
        self._columns = [self.arguments.index(value.argument) if value.argument else 0 for value in body.values]
        pairs = list(zip(self._functions, self._columns, strict=True))
        self._numeric = sorted({column for function, column in pairs if function >= kernel.OLDEST_OF})
        self._summed = {column for function, column in pairs if function in _SUMMED}
        self.digits = [*digits] or [sums.SHORT] * len(self._numeric)
        self._extremes = {column for function, column in pairs if function in _ORDERED}
        some = zip(body.values, self._columns, strict=True)
        self._of_texts = {column for value, column in some if value.function in _OF_TEXTS}
        self._are_ordered = any(value.function in ("min", "max") for value in body.values)
        self._spare = _SPARE if modes & kernel.SLIDING and not modes & kernel.LINKED else _SPARE_LINKED
        self._trees = not modes & kernel.HOLDS or not {*self._functions}.isdisjoint(_TREES)
        self.plan, words = self._planned()
        self.state = np.zeros(kernel.PLACES, np.int64)
        self.state[[kernel.BASE, kernel.FREE]] = 1, -1
        self.state[kernel.NODES] = np.isin(self.plan[:, kernel.CHANGE], (*_TREES, *_ORDERED)).sum()
        self.state[kernel.ROOM] = _ROOM + (self.plan[:, kernel.MOST] + 2).sum()
        self.ring = self._events(_LEAST if modes & kernel.HOLDS else 0)
        empty, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
        no_words, scratch = np.zeros((0, words), np.int64), np.zeros(sums.SCRATCH, np.int64)
        of_nodes, no_texts = (none, np.zeros(0), none, empty, empty, empty, empty), TextPool()
        of_texts = (no_texts.bytes[:0], no_texts.ends[:0])
        self.groups = Groups(no_words, no_words.view(np.float64), *of_nodes, *of_texts, scratch)
        self.reserve(_LEAST)
        self.steps = self._new_steps(min(_LEAST, _STEPS))
        is_logged = bool(modes & kernel.LOGGED) or self.plan[:, kernel.MOST].any()
        entries = max(_LOG, 2 * int(self.state[kernel.ROOM])) if is_logged else 0
        self.log = np.zeros((entries, kernel.BITS + 1), np.int64)

    def _function_of(self, place: int, value: AggregateValue, ordered: Collection[int]) -> int:
        if not value.argument:
            return kernel.ROWS
        function = _FUNCTIONS[value.function]
        if not self._modes & kernel.HOLDS:
            return _SEEN.get(function, function)
        return _ORDERED.get(function, function) if place in ordered else function

    @property
    def held(self) -> int:
        """The number of events in windows, or the number of windows if events are not stored."""
        return int(self.state[kernel.HELD])

    @property
    def waiting(self) -> int:
        """The number of steps that have not been emitted yet."""
        return int(self.state[kernel.STEPS])

    def unfit(self, columns: Sequence[ScalarColumn]) -> set[int]:
        """Return the indexes of arguments of minima or maxima that the kernel cannot compute without sorted values.

        These arguments have texts or great whole numbers.
        """
        unfit_columns = set()
        for place in self._extremes:
            kinds, integers, *_ = columns[place]
            some = integers[kinds == kernel.INTEGER]
            is_exact = (some > -_MOST_EXACT) & (some < _MOST_EXACT)
            if not is_exact.all() or (kinds == kernel.TEXT).any():
                unfit_columns.add(place)
        return unfit_columns

    def widen(self, columns: Sequence[ScalarColumn]) -> None:
        """Widen the columns of events and the sums, where the new arguments in ``columns`` need more bits."""
        known = zip(self.digits, self._numeric, strict=True)
        digits = [self._digits_for(columns[source], before, source in self._summed) for before, source in known]
        if digits == self.digits:
            return
        before, wide, ring, self.digits = self.plan, self._wide, self.ring, digits
        self.plan, words = self._planned()
        self._set_words(_replanned(self.groups.words, before, self.plan, words))
        highs = [ring.highs[wide.index(column)] if column in wide else ring.lows[column] >> 31 for column in self._wide]
        self.ring = ring._replace(highs=np.array(highs, np.int32).reshape(len(highs), len(ring.codes)))

    @staticmethod
    def _digits_for(column: ScalarColumn, digits: int, is_summed: bool) -> int:
        if digits == (sums.ALL_DIGITS if is_summed else 0):
            return digits
        floats = column.floats[column.kinds == kernel.FLOAT]
        if not floats.size or not is_summed:
            is_short = not floats.size and (column.integers == column.integers.astype(np.int32)).all()
            return max(digits, sums.SHORT if is_short else 0)
        is_fine = (np.abs(floats) < _MOST_FLOAT).all()
        if is_fine:
            units = floats * _FINEST
            is_fine = (units == np.floor(units)).all()
        return max(digits, sums.FLOAT_DIGITS if is_fine else sums.ALL_DIGITS)

    @property
    def _wide(self) -> list[int]:
        """The indexes of numeric arguments that need more than 32 bits."""
        return [place for place, digits in enumerate(self.digits) if digits != sums.SHORT]

    def batch(self, rows: BatchRows, codes: NDArray[np.int32], columns: Sequence[ScalarColumn]) -> Events:
        """Return rows as a batch for the kernel. ``codes`` are their groups, and ``columns`` their arguments.

        Arguments are ignored in rows that end windows.
        """
        size, wide = len(codes), self._wide
        kinds = np.zeros((len(columns), size), np.uint8)
        lows = np.zeros((len(self._numeric), size), np.int32)
        highs = np.zeros((len(wide), size), np.int32)
        for place, column in enumerate(columns):
            kinds[place] = column.kinds
        for place, source in enumerate(self._numeric):
            column = columns[source]
            numbers = column.integers
            if place in wide:
                bits = np.ascontiguousarray(column.floats, np.float64).view(np.int64)
                numbers = np.where(column.kinds == kernel.FLOAT, bits, numbers)
                highs[wide.index(place)] = numbers >> 32
            lows[place] = numbers.astype(np.int32)
            if source in self._of_texts and column.objects is not None:
                rows_of_texts = np.flatnonzero(column.kinds == kernel.TEXT)
                texts = [column.objects[row] for row in rows_of_texts.tolist()]
                lows[place, rows_of_texts] = self.texts.codes(texts)  # type: ignore[arg-type] # by their kind
        self._give_texts()
        times_us, at_us, places, serials = (np.require(column_of_rows, np.int64, _OWN) for column_of_rows in rows[1:5])
        ops, links = np.require(rows.ops, np.uint8, _OWN), np.zeros((0, 2), np.int32)
        return Events(times_us, codes, kinds, lows, highs, at_us, places, ops, serials, links)

    def _give_texts(self) -> None:
        if self._are_ordered and len(self.texts):
            self.groups = self.groups._replace(texts=self.texts.bytes, text_ends=self.texts.ends)

    def ends(self, codes: NDArray[np.int64], at_us: NDArray[np.int64]) -> Events:
        """Return a batch of rows that end the windows of the groups ``codes`` at the times ``at_us``."""
        size, none = len(codes), np.zeros(0, np.int64)
        rows = BatchRows(none, at_us, at_us, np.full(size, -1), np.zeros(size, np.int64), np.full(size, kernel.END))
        column = ScalarColumn(np.zeros(size, np.uint8), np.zeros(size, np.int64), np.zeros(size))
        return self.batch(rows, codes.astype(np.int32), [column] * len(self.arguments))

    def reserve(self, groups: int) -> None:
        """Make room for at least this number of groups."""
        known = len(self.groups.words)
        if groups > known:
            self._set_words(_grown(self.groups.words, groups + groups // self._spare))

    def slide(self, batch: Events, limits: Sequence[int], loading: int = 0) -> Iterator[int]:
        """Process a batch and advance time. Yield a status whenever the caller must take steps and the log.

        The last status is ``DONE``, others are ``FULL`` or ``TOO_MANY``. If the caller leaves too many events after
        ``TOO_MANY``, the iteration ends. ``limits`` has the most events (the caller may change this limit), the size of
        the window, and the time to reach.
        """
        state = self.state
        before = state[[kernel.ROW, kernel.AHEAD]]
        state[[kernel.ROW, kernel.AHEAD]] = 0
        modes = self._modes if not loading else (self._modes & ~_STEPPED) | loading
        while True:
            tables = (self.ring, batch, self.groups, self.steps, self.log, self.plan, self.bounds, state)
            match status := slide(*tables, modes, *limits):
                case kernel.NO_ROOM:
                    self._resize(len(batch.codes) - int(state[kernel.ROW]))
                case kernel.NO_NODES:
                    self._add_nodes()
                case kernel.FULL if self.waiting == len(self.steps.codes) < _STEPS:
                    self._add_steps()
                case _:
                    yield status
            if status == kernel.DONE or (status == kernel.TOO_MANY and self.held > limits[0]):
                state[[kernel.ROW, kernel.AHEAD]] = before
                return

    def take_steps(self, is_taken: NDArray[np.bool_]) -> None:
        """Remove the steps in the mask ``is_taken``, and renumber the other steps."""
        state, rest = self.state, np.flatnonzero(~is_taken)
        state[kernel.BASE] += len(is_taken)
        if len(rest) == len(self.steps.codes):
            self._add_steps()
        elif len(rest):
            columns: Sequence[NDArray[Any]] = self.steps
            for column in columns:
                column[..., : len(rest)] = column[..., rest]
        if len(rest):
            codes, words = self.steps.codes[: len(rest)], self.groups.words
            numbers = state[kernel.BASE] + np.arange(len(rest))
            words[codes, kernel.MARK] = numbers << kernel.TRUTH_BITS | words[codes, kernel.MARK] & kernel.TRUTH
        state[kernel.STEPS] = len(rest)
        state[kernel.BEGUN] = max(0, state[kernel.BEGUN] - np.count_nonzero(is_taken))

    def reopen_steps(self, codes: Sequence[int], instant_us: int) -> None:
        """Write a step with the values of each group in ``codes`` again, after the tables were loaded.

        These steps were unfinished when the tables were saved, because events of the time ``instant_us`` may change
        them.
        """
        while len(self.steps.codes) < len(codes):
            self._add_steps()
        some = np.array(codes, np.int32)
        tables = (self.groups, self.ring, self.steps, self.log, self.plan, self.bounds, self.state)
        note_waiting(*tables, some, instant_us, self._modes | kernel.SIMULTANEOUS | kernel.LOADING)

    def scalars(
        self, kinds: NDArray[np.uint8], integers: NDArray[np.int64], reals: NDArray[np.float64]
    ) -> list[Scalar]:
        """Return values as plain JSON. The integer of a text is the text's code."""
        for kind, column in ((kernel.INTEGER, integers), (kernel.FLOAT, reals)):
            if kinds.tobytes().count(kind) == len(kinds):
                return list(column.tolist())
        return list(map(self.scalar, kinds.tolist(), integers.tolist(), reals.tolist()))

    def scalar(self, kind: int, integer: int, real: float) -> Scalar:
        return scalar_of(kind, integer, real, self.texts.text(integer) if kind == kernel.TEXT else None)

    def are_texts_many(self, groups: int) -> bool:
        """Check whether most of the known texts are unused, and it pays to rebuild the tables without them."""
        return len(self.texts) > 2 * self._texts_kept + _LEAST + groups + self.held

    def _texts_in(
        self, words: NDArray[np.int64], held: Events, nodes: Groups
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Yield each array that has codes of texts, with a mask of the rows whose value is a text.

        The arrays are columns of ``held`` and of ``nodes``, and words of groups.
        """
        for place, source in enumerate(self._numeric):
            if source in self._of_texts:
                yield held.lows[place], held.kinds[source] == kernel.TEXT
        if self._modes & kernel.HOLDS:
            return
        for value in self.plan:
            offset = value[kernel.OFFSET]
            if value[kernel.CHANGE] in (kernel.LOWEST_SEEN, kernel.GREATEST_SEEN):
                reals = words.view(np.float64)[:, offset + 2]
                yield words[:, offset + 1], (words[:, offset] == 1) & (reals == np.inf)
            elif value[kernel.CHANGE] in (kernel.FIRST_SEEN, kernel.LAST_SEEN):
                yield words[:, offset + 2], words[:, offset + 1] == kernel.TEXT
        yield nodes.integers, nodes.reals == np.inf

    def dump(self, count: int) -> tuple[list[str], dict[str, bytes]]:
        """Return the state to save: the texts in use, and the columns of events in windows.

        If events are not stored, the words and nodes of ``count`` groups are saved instead.
        """
        held, nodes, words = self._moved(self._slots(), self.held), self.groups, self.groups.words[:count].copy()
        nodes = nodes._replace(integers=nodes.integers.copy())
        is_used = np.zeros(len(self.texts), np.bool_)
        places = [*self._texts_in(words, held, nodes)]
        for column, rows in places:
            is_used[column[rows]] = True
        renumbered = np.cumsum(is_used) - 1
        for column, rows in places:
            column[rows] = renumbered[column[rows]]
        texts = [*compress(self.texts, is_used.tolist())]
        if self._modes & kernel.HOLDS:
            names = (*_COLUMNS, "serials") if self._modes & kernel.LOGGED else _COLUMNS
            return texts, {name: getattr(held, name).tobytes() for name in names}
        free = self.state[[kernel.FREE, kernel.SPARE]]
        of_nodes = {name: getattr(nodes, name).tobytes() for name in _NODES}
        return texts, {"words": words.tobytes(), "free": free.tobytes(), **of_nodes}

    def load(self, sections: Mapping[str, bytes], is_kept: NDArray[np.bool_]) -> None:
        """Restore the words and nodes of the groups in the mask ``is_kept``, for tables that do not store events.

        Raises:
            ValueError: The columns do not have the same length.
        """
        count = len(is_kept)
        words = np.frombuffer(sections["words"], np.int64).reshape(count, self.groups.words.shape[1])
        self._set_words(_grown(words, count))
        columns = {name: np.frombuffer(sections[name], getattr(self.groups, name).dtype).copy() for name in _NODES}
        self.groups = self.groups._replace(**columns, real_bits=columns["reals"].view(np.int64))
        self.state[[kernel.FREE, kernel.SPARE]] = np.frombuffer(sections["free"], np.int64)
        forget_values(self.groups, self.plan, self.state, self.log, np.flatnonzero(~is_kept))
        self._set_words(_grown(words[is_kept], 0))
        self.state[[kernel.LIVE, kernel.HELD]] = np.count_nonzero(words[is_kept, kernel.HELD_ROWS])

    def read_columns(self, sections: Mapping[str, bytes]) -> Events:
        """Return the saved columns of events as a batch, which the caller adds to the windows again.

        Raises:
            ValueError: The columns do not have the same length.
        """
        events = self._events(len(sections["codes"]) // 4)
        for name in (*_COLUMNS, "serials") if self._modes & kernel.LOGGED else _COLUMNS:
            column: NDArray[Any] = getattr(events, name)
            column[:] = np.frombuffer(sections[name], column.dtype).reshape(column.shape)
        size = len(events.codes)
        serials = events.serials if len(events.serials) else np.zeros(size, np.int64)
        return events._replace(
            at_us=events.times_us, places=np.arange(size), ops=np.zeros(size, np.uint8), serials=serials
        )

    def _slots(self) -> list[Any]:
        """Return the slots of the events in windows, oldest first, as slices of the ring or as one array of slots."""
        first, room = int(self.state[kernel.FIRST]), len(self.ring.codes)
        end = first + int(self.state[kernel.SPAN])
        parts = [slice(first, min(end, room)), slice(max(0, end - room))]
        if self.state[kernel.SPAN] == self.held:
            return parts
        slots = np.concatenate([np.arange(room)[part] for part in parts])
        return [slots[self.ring.codes[slots] >= 0]]

    def _moved(self, parts: Sequence[Any], room: int) -> Events:
        """Return a new ring with the given ``room`` that begins with the events in the slots ``parts``.

        Links are not copied.
        """
        ring, fresh = self.ring, self._events(room)
        columns: Iterable[tuple[NDArray[Any], NDArray[Any]]]
        columns = zip((*ring[:5], ring.serials), (*fresh[:5], fresh.serials), strict=True)
        for column, into in columns:
            if column.size:
                end = 0
                for part in parts:
                    slots = column[..., part]
                    begin, end = end, end + slots.shape[-1]
                    into[..., begin:end] = slots
        return fresh

    @staticmethod
    def chosen(held: Events, rows: NDArray[np.intp], codes: NDArray[np.int32]) -> Events:
        """Return the events in ``rows``, with groups renumbered: ``codes`` has the new code of each present code."""
        names = (*_COLUMNS, "at_us", "places", "ops", "serials")
        columns = {name: np.ascontiguousarray(getattr(held, name)[..., rows]) for name in names}
        return held._replace(**columns | {"codes": codes[held.codes[rows]]})

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Forget the groups outside the mask ``is_kept``, and renumber the other groups without gaps."""
        renumbered = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        is_live = self.ring.codes >= 0
        self.ring.codes[is_live] = renumbered[self.ring.codes[is_live]]
        steps = self.steps.codes[: self.state[kernel.STEPS]]
        steps[:] = renumbered[steps]
        self._set_words(_grown(self.groups.words[: len(is_kept)][is_kept], _LEAST))

    def shrink(self) -> None:
        """Shrink tables that are mostly unused."""
        if len(self.ring.codes) > 4 * self.held + 4 * _LEAST and self._modes & kernel.HOLDS:
            self._resize()
        room, is_held = len(self.groups.reals), self._modes & kernel.HOLDS
        if not is_held and room > 4 * (room - self.state[kernel.SPARE]) + 4 * _LEAST:
            self._close_up()

    def _close_up(self) -> None:
        """Remove free nodes and number the others without gaps. The trees of the nodes keep their shapes."""
        used = np.flatnonzero(self.groups.counts)
        numbers = np.full(len(self.groups.counts) + 1, -1, np.int32)  # the last entry is for -1 (no node)
        numbers[used] = np.arange(len(used))
        nodes = {name: getattr(self.groups, name)[used] for name in _NODES}
        nodes |= {name: numbers[nodes[name]] for name in ("older", "newer")}
        self.groups = self.groups._replace(**nodes, real_bits=nodes["reals"].view(np.int64))
        for value in self.plan[np.isin(self.plan[:, kernel.CHANGE], _TREES)]:
            roots = self.groups.words[:, value[kernel.OFFSET]]
            roots[roots > 0] = numbers[roots[roots > 0] - 1] + 1
        self.state[[kernel.FREE, kernel.SPARE]] = -1, 0

    def _planned(self) -> tuple[NDArray[np.int64], int]:
        """Return the plan of the values for the kernel, and the number of words that a group needs.

        The plan has a row per value: the function, its columns, and the offset of its words.
        """
        is_short = self._modes & kernel.SLIDING and not self._modes & kernel.LINKED
        offset, wide = kernel.HEADER if is_short else kernel.LONG_HEADER, self._wide
        squared = [place for place, code in enumerate(self._functions) if code == kernel.DEVIATION]
        functions = [*self._functions, *[kernel.SQUARES] * len(squared)]
        columns = [*self._columns, *[self._columns[place] for place in squared]]
        plan = np.zeros((len(functions), kernel.MOST + 1), np.int64)
        for row, value in zip(plan, self._body.values, strict=False):
            if value.function == "quantile":
                row[[kernel.PART, kernel.WHOLE]] = value.share.numerator, value.share.denominator
            if value.function in ("quantile", "distinct") and not self._modes & kernel.HOLDS:
                row[kernel.MOST] = EXACT
        known = dict[tuple[int, int], int]()
        for row, function, column in zip(plan, functions, columns, strict=True):
            numbers = self._numeric.index(column) if function >= kernel.OLDEST_OF else 0
            digits = self.digits[numbers] if function >= kernel.OLDEST_OF else 0
            high = wide.index(numbers) if numbers in wide else -1
            row[[kernel.FUNCTION, kernel.COLUMN, kernel.NUMBERS, kernel.HIGHS]] = function, column, numbers, high
            same = _SHARED.get(function, function), column
            row[[kernel.OFFSET, kernel.DIGITS]] = known.get(same, offset), digits
            if same not in known or row[kernel.MOST]:
                known[same] = row[kernel.OFFSET] = offset
                row[kernel.CHANGE] = function
                offset += _width(function, digits)
        plan[squared, kernel.PART] = plan[len(self._functions) :, kernel.OFFSET]
        return plan, offset

    def _set_words(self, words: NDArray[np.int64]) -> None:
        words = np.ascontiguousarray(words)
        self.groups = self.groups._replace(words=words, floats=words.view(np.float64))

    def _events(self, room: int) -> Events:
        lows, highs = (np.zeros((count, room), np.int32) for count in (len(self._numeric), len(self._wide)))
        kinds = np.zeros((len(self.arguments), room), np.uint8)
        none, codes = np.zeros(0, np.int64), np.full(room, -1, np.int32)
        serials = np.zeros(room if self._modes & kernel.LOGGED else 0, np.int64)
        links = np.full((room if self._modes & kernel.LINKED else 0, 2), -1, np.int32)
        times_us, ops = np.zeros(room, np.int64), np.zeros(0, np.uint8)
        return Events(times_us, codes, kinds, lows, highs, none, none, ops, serials, links)

    def _resize(self, more: int = 0) -> None:
        """Give the ring room for the events in windows, and for ``more`` events as far as a limit permits."""
        parts, before = self._slots(), self.ring
        spare = max(_LEAST, self.held // self._spare, min(more, self.held // 2, _MOST_SPARE))
        self.ring = ring = self._moved(parts, self.held + spare)
        self.state[[kernel.FIRST, kernel.SPAN]] = 0, self.held
        if self._modes & kernel.LINKED:
            where = np.full(len(before.codes) + 1, -1, np.int32)  # the last entry is for -1 (no slot)
            slots = np.concatenate([np.arange(len(before.codes))[part] for part in parts])
            where[slots] = np.arange(len(slots))
            ring.links[: len(slots)] = where[before.links[slots]]
            ends = self.groups.words[:, kernel.HEAD : kernel.TAIL + 1]
            ends[:] = where[ends - 1] + 1

    def _add_nodes(self) -> None:
        groups, count = self.groups, len(self.groups.reals)
        room = count + max(_LEAST, count // _SPARE)
        newer, reals = _grown(groups.newer, room), _grown(groups.reals, room)
        newer[count:] = np.arange(count + 1, room + 1)
        newer[-1] = self.state[kernel.FREE]
        of_trees = [_grown(column, room if self._trees else 0) for column in (groups.counts, groups.sizes)]
        self.groups = groups._replace(
            integers=_grown(groups.integers, room),
            reals=reals,
            real_bits=reals.view(np.int64),
            older=_grown(groups.older, room),
            newer=newer,
            counts=of_trees[0],
            sizes=of_trees[1],
        )
        self.state[kernel.FREE] = count
        self.state[kernel.SPARE] += room - count

    def _add_steps(self) -> None:
        before, self.steps = self.steps, self._new_steps(2 * len(self.steps.codes))
        columns: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(before, self.steps, strict=True)
        for column, into in columns:
            into[..., : column.shape[-1]] = column

    def _new_steps(self, room: int) -> Steps:
        of_steps = (np.int32, np.int64, np.int64, np.int64, np.bool_, np.int64)
        columns: list[Any] = [np.zeros(room, kind) for kind in of_steps]
        values = [np.zeros((len(self._functions), room), kind) for kind in (np.uint8, np.int64, np.float64)]
        return Steps(*columns, *values)


def _grown(rows: NDArray[Any], room: int) -> NDArray[Any]:
    grown = np.zeros((max(room, len(rows)), *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    return grown


def _width(function: int, digits: int) -> int:
    if function == kernel.SQUARES:
        return 2 * digits if digits > 0 else sums.SQUARE_DIGITS
    if function in _SUMMED:
        return sums.SHORT_WORDS if digits == sums.SHORT else sums.SUM_WORDS + digits
    return _WIDTHS[function]


def _replanned(
    words: NDArray[np.int64], before: NDArray[np.int64], plan: NDArray[np.int64], width: int
) -> NDArray[np.int64]:
    """Return the words of groups, moved from their places in the plan ``before`` to their places in ``plan``."""
    replanned = np.zeros((len(words), width), np.int64)
    header = before[0, kernel.OFFSET]
    replanned[:, :header] = words[:, :header]
    for old, new in zip(before, plan, strict=True):
        function, digits = int(old[kernel.CHANGE]), int(old[kernel.DIGITS])
        size = _width(function, digits)
        source, into = words[:, old[kernel.OFFSET] :][:, :size], replanned[:, new[kernel.OFFSET] :]
        if function in _SUMMED and digits != new[kernel.DIGITS]:
            scale = 2 if function == kernel.SQUARES else 1  # units of squares are squared
            size = 0 if scale == 2 else min(size, sums.SUM_WORDS)
            at = size + scale * (_UNITS[int(new[kernel.DIGITS])] - _UNITS[digits])
            into[:, at : at + source.shape[1] - size] = source[:, size:]
        into[:, :size] = source[:, :size]
        if function in _SUMMED and function != kernel.SQUARES and digits == sums.SHORT != new[kernel.DIGITS]:
            into[:, 1], into[:, 2] = source[:, 1] & sums.LOW, source[:, 1] >> 32
    return replanned

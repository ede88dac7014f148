"""An index over the constants of filters. It finds the filters that hold for an event without testing each of them.

The constants of one event type and dimension have consecutive numbers, their *cells*. In each dimension, an event gets
one cell. This is the cell of the constant that equals its value, or of the last bound that its value exceeds. Bounds
are sorted, so the value also exceeds all earlier bounds. If no filter of the dimension holds, the cell is 0.

Source: predicate indexes of content-based publish/subscribe (Fabret et al., SIGMOD 2001, section 3; Yan and
Garcia-Molina, TODS 1994). Esper calls them filter indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.conditions.filters import Constant, Dimension
from nfa.conditions.predicates import BatchColumns
from nfa.conditions.values import TEXT, Values
from streams import EventBatch, column_of

NO_CELL = 0


@dataclass(frozen=True, slots=True)
class _Cells:
    """The constants of an event type in one dimension, which divide its events into numbered cells.

    The cells are in ascending order of the constants. Texts come before numbers.
    """

    dimension: Dimension
    first: int
    texts: Mapping[str, int]
    text_set: pa.Array
    numbers: NDArray[np.float64]
    included: NDArray[np.float64]
    excluded: NDArray[np.float64]

    @classmethod
    def of(cls, dimension: Dimension, first: int, constants: Sequence[Constant]) -> _Cells:
        texts = [constant for constant in constants if isinstance(constant, str)]
        bounds = [constant for constant in constants if isinstance(constant, tuple)]
        return cls(
            dimension=dimension,
            first=first,
            texts={text: first + place for place, text in enumerate(texts)},
            text_set=pa.array(texts, pa.string()),
            numbers=np.array([constant for constant in constants if isinstance(constant, float)]),
            included=np.array([value for value, is_excluded in bounds if not is_excluded]),
            excluded=np.array([value for value, is_excluded in bounds if is_excluded]),
        )

    def of_texts(self, column: pa.Array) -> NDArray[np.int32]:
        if not self.texts:
            return np.zeros(len(column), np.int32)
        places = pc.index_in(column, value_set=self.text_set).fill_null(NO_CELL - self.first)
        cells: NDArray[np.int32] = places.to_numpy(zero_copy_only=False).astype(np.int32) + np.int32(self.first)
        return cells

    def of_values(self, values: Values) -> NDArray[np.int32]:
        if self.dimension.relation != "=":
            return self._of_bounds(values)
        cells = np.zeros(len(values), np.int32)
        if len(self.numbers):
            places = np.searchsorted(self.numbers, values.floats)
            is_known = values.is_number & (self.numbers[places % len(self.numbers)] == values.floats)
            cells[is_known] = self.first + len(self.texts) + places[is_known]
        if self.texts:
            rows = np.flatnonzero(values.kinds == TEXT)
            cells[rows] = [self.texts.get(text, NO_CELL) for text in values.texts[rows].tolist()]
        return cells

    def _of_bounds(self, values: Values) -> NDArray[np.int32]:
        numbers = values.floats * self.dimension.sign
        beyond = np.searchsorted(self.included, numbers, side="right")
        beyond += np.searchsorted(self.excluded, numbers, side="left")
        beyond[~values.is_number] = 0
        cells: NDArray[np.int32] = np.where(beyond == 0, NO_CELL, self.first + beyond - 1).astype(np.int32)
        return cells


class FilterIndex:
    """An index of filters (type code, dimension, constants), which finds the cell of an event in each dimension.

    A cell is the number of a constant: the constant that equals the event's value, or the last bound that the value
    exceeds. It is ``NO_CELL`` if no filter of the dimension holds.
    """

    def __init__(self, filters: Iterable[tuple[int, Dimension, Iterable[Constant]]] = ()) -> None:
        gathered: dict[int, dict[Dimension, set[Constant]]] = {}
        for code, dimension, constants in filters:
            gathered.setdefault(code, {}).setdefault(dimension, set()).update(constants)
        self._cells: dict[int, list[_Cells]] = {}
        self._numbers: dict[tuple[int, Dimension, Constant], int] = {}
        starts = [NO_CELL]  # for each cell, the first cell whose filters hold for its events
        for code, dimensions in sorted(gathered.items()):
            for dimension, distinct_constants in sorted(dimensions.items(), key=repr):
                first = len(starts)
                constants = sorted(distinct_constants, key=_rank)
                self._cells.setdefault(code, []).append(_Cells.of(dimension, first, constants))
                for cell, constant in enumerate(constants, first):
                    self._numbers[code, dimension, constant] = cell
                    starts.append(cell if dimension.relation == "=" else first)
        self._starts = np.array(starts, np.int32)

    @property
    def slots(self) -> int:
        """The largest number of dimensions of a type: the number of rows in the result of ``place``."""
        return max(map(len, self._cells.values()), default=0)

    @property
    def size(self) -> int:
        """The number of cells in all dimensions of all types, including ``NO_CELL``."""
        return len(self._starts)

    def slot(self, code: int, dimension: Dimension) -> int:
        """Return the row of the result of ``place`` that has the cells of a type in a dimension."""
        return [cells.dimension for cells in self._cells[code]].index(dimension)

    def cell(self, code: int, dimension: Dimension, constant: Constant) -> int:
        return self._numbers[code, dimension, constant]

    def ranges(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return two arrays: for each cell, the begin and the end of a range in ``cells``.

        ``cells`` has the cell of each row of a kernel's table, and is sorted. The rows in the range are those whose
        filters hold for an event in the cell. Rows with ``NO_CELL`` are in no range.
        """
        numbers = np.arange(len(self._starts), dtype=np.int32)
        begin = np.searchsorted(cells, self._starts, side="left").astype(np.int32)
        end = np.searchsorted(cells, numbers, side="right").astype(np.int32)
        end[NO_CELL] = begin[NO_CELL] = 0
        return begin, end

    def place(self, batch: EventBatch, types: NDArray[np.int32], reader: BatchColumns) -> NDArray[np.int32]:
        """Return the cells of events as an int32 array (``slots``, rows), one row for each dimension.

        The dimensions are those of the event's type. ``types`` has the type code of each event.
        """
        event_cells = np.zeros((self.slots, len(types)), np.int32)
        for code, dimensions in self._cells.items():
            rows = np.flatnonzero(types == code)
            for slot, cells in enumerate(dimensions if len(rows) else ()):
                leaf = cells.dimension.leaf
                column = batch.attributes.get(leaf) if isinstance(leaf, tuple) else None
                if cells.dimension.relation == "=" and column is not None and pa.types.is_string(column.type):
                    event_cells[slot, rows] = cells.of_texts(column.take(column_of(rows)))
                else:
                    event_cells[slot, rows] = cells.of_values(reader.read(rows, [leaf])[leaf])
        return event_cells


def _rank(constant: Constant) -> tuple[bool, Constant]:
    return not isinstance(constant, str), constant

"""Events as columns: the input of an aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aggregates.kernels.tables import BOOLEAN, FALSE, FLOAT, INTEGER, INTEGRAL, TEXT
from aggregates.kernels.values import mark_kinds
from aggregates.scalars import Scalar, group_text
from aggregates.texts import texts_between
from streams import borders_of, column_of, key_hash, shown_texts

COUNTS, ENDS, RETRACTS = 1, 2, 4
"""The meaning of a row, as flags: an event that counts; the end of a transaction (after its event); a retraction."""

_FEW = 256  # up to this number of texts, reading each text is faster than a call of Arrow
_OTHERS = 0x9E3779B97F4A7C15  # makes the hash of a group of several values differ from that of a text


class ScalarColumn(NamedTuple):
    """The values of one attribute or argument for many events, as arrays.

    Each value has a kind. Numbers are in ``floats``, and whole numbers also in ``integers``. Texts are in ``objects``.
    """

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]
    objects: Sequence[Scalar] | None = None

    @classmethod
    def of_kinds(cls, kinds: NDArray[np.uint8], integers: NDArray[np.int64], floats: NDArray[np.float64]) -> Self:
        """Create a column from copies of kinds and numbers, in which special values get a kind of their own.

        False booleans get the kind ``FALSE``, and small whole floats the kind ``INTEGRAL``.
        """
        kinds, integers, floats = np.array(kinds), np.array(integers), np.array(floats)
        mark_kinds(kinds, integers, floats)
        return cls(kinds, integers, floats)

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> ScalarColumn:
        size = len(values)
        column = cls(np.zeros(size, np.uint8), np.zeros(size, np.int64), np.zeros(size))
        for row, value in enumerate(values):
            match value:
                case bool():
                    column.kinds[row], column.integers[row] = BOOLEAN, value
                case int() if -(2**63) <= value < 2**63:
                    column.kinds[row], column.integers[row], column.floats[row] = INTEGER, value, value
                case int() | float():
                    column.kinds[row], column.floats[row] = FLOAT, value
                case str():
                    column.kinds[row] = TEXT
        return cls.of_kinds(*column[:3])._replace(objects=values)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Return the values as floats, with NaN for values that are no numbers."""
        return np.where(np.isin(self.kinds, (INTEGER, FLOAT, INTEGRAL)), self.floats, np.nan)

    def to_list(self) -> list[Scalar]:
        """Return the values as a list. If the column has no ``objects``, every text is returned as an empty text."""
        texts = [""] * len(self.kinds) if self.objects is None else self.objects
        columns = (self.kinds.tolist(), self.integers.tolist(), self.floats.tolist(), texts)
        return [scalar_of(*parts) for parts in zip(*columns, strict=True)]

    def at(self, rows: NDArray[np.intp]) -> ScalarColumn:
        objects = None if self.objects is None else [self.objects[row] for row in rows.tolist()]
        return ScalarColumn(self.kinds[rows], self.integers[rows], self.floats[rows], objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventColumns:
    """A batch of events as columns, in the order in which an aggregate processes them.

    Attributes:
        times_us: Times of the events.
        hashes: The hash of each event's group, by ``group_hash``.
        by: One column for each attribute in ``by``.
        keys: Correlation keys.
        key_hashes: Hashes of the correlation keys.
        ids: Ids of the events.
        arguments: One column for each of ``AggregateBody.arguments``.
        clocks_us: For each event, the newest time in the batch so far, including events that the aggregate ignores.
        newest_us: The newest time of the batch, including events that the aggregate ignores.
        ops: The meaning of each row, as flags. None if all rows are events.
        retracted: For a retraction, the id of the retracted event. Empty without retractions.
        shown: If the aggregate has ``events``: the members of each event, as derived events list it.
        asked: One column for each attribute in ``ask``.
        arrivals: Arrival numbers of the events, if known.
    """

    times_us: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    by: Sequence[Sequence[Any]]
    keys: Sequence[Any]
    key_hashes: NDArray[np.uint64]
    ids: Sequence[Any]
    arguments: Sequence[ScalarColumn]
    clocks_us: NDArray[np.int64]
    newest_us: int
    ops: NDArray[np.uint8] | None = None
    retracted: Sequence[str] = ()
    shown: Sequence[Mapping[str, Any] | None] = ()
    asked: Sequence[Sequence[Scalar]] = ()
    arrivals: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.times_us)

    def at(self, rows: NDArray[np.int64]) -> EventColumns:
        """Return the events in ``rows`` as a batch. Its ``newest_us`` is that of the whole batch."""
        return replace(
            self,
            times_us=self.times_us[rows],
            hashes=self.hashes[rows],
            by=[values_at(column, rows) for column in self.by],
            keys=values_at(self.keys, rows),
            key_hashes=self.key_hashes[rows],
            ids=values_at(self.ids, rows),
            arguments=[column.at(rows) for column in self.arguments],
            clocks_us=self.clocks_us[rows],
            ops=None if self.ops is None else self.ops[rows],
            retracted=values_at(self.retracted, rows) if self.retracted else (),
            shown=values_at(self.shown, rows) if self.shown else (),
            asked=[values_at(column, rows) for column in self.asked],
            arrivals=None if self.arrivals is None else self.arrivals[rows],
        )

    @property
    def counting(self) -> EventColumns:
        """Return only the rows that are events. Retractions and ends of transactions are left out."""
        return self if self.ops is None else self.at(np.flatnonzero(self.ops & COUNTS))

    def groups_at(self, rows: NDArray[np.int64]) -> list[tuple[Scalar, ...]]:
        """Return the ``by`` values of the events in ``rows``, one tuple per event."""
        return tuples_of([values_at(column, rows) for column in self.by], len(rows))


def group_hash(group: Sequence[Scalar]) -> int:
    """Return the hash that identifies a group, which is given by its ``by`` values.

    If the group is a single text, its hash is that of a correlation key. Otherwise, the hash of ``group_text`` is used.
    """
    if len(group) == 1 and isinstance(group[0], str):
        return key_hash(group[0])
    return key_hash(group_text(group)) ^ _OTHERS


def scalar_of(kind: int, integer: int, real: float, text: Scalar = None) -> Scalar:
    """Return the value of a column's entry: ``integer``, ``real`` or ``text``, as its kind says."""
    if kind == INTEGRAL:
        return float(integer)
    return {INTEGER: integer, FLOAT: real, TEXT: text, BOOLEAN: True, FALSE: False}.get(kind)


def tuples_of(columns: Sequence[Sequence[Any]], size: int) -> list[tuple[Any, ...]]:
    """Return the rows of columns as ``size`` tuples. Without columns, all tuples are empty."""
    return list(zip(*columns, strict=True)) if columns else [()] * size


def values_at(column: Sequence[Any], rows: NDArray[np.int64]) -> list[Any]:
    """Return the values in ``rows`` of a list or an Arrow array."""
    if not isinstance(column, pa.Array):
        return [column[row] for row in rows.tolist()]
    if len(rows) > _FEW or not pa.types.is_string(column.type):
        return list(column.take(column_of(rows)).to_pylist())
    borders, data = borders_of(column), memoryview(column.buffers()[2] or b"")
    return texts_between(data, borders[rows], borders[rows + 1])


def texts_at(column: Any, rows: NDArray[np.int64]) -> pa.Array | list[str]:
    """Return the texts in ``rows``: a list for a list, an Arrow array for an Arrow array."""
    return shown_texts(column.take(column_of(rows))) if isinstance(column, pa.Array) else values_at(column, rows)

"""Events as columns: how a sliding window takes them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aggregates.document import AggregateBody
from aggregates.kernels.sliding import BOOLEAN, FALSE, FLOAT, INTEGER, NULL, TEXT
from aggregates.rows import EventRows, Row, Scalar, group_text, normal_group
from streams import key_hash

_OTHERS = 0x9E3779B97F4A7C15  # keeps the hash of a group of several values apart from that of a text


class ScalarColumn(NamedTuple):
    """Values by kind: integers (booleans as 0 and 1), numbers of both kinds as floats."""

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> ScalarColumn:
        """The column of some values; of texts only that they are texts."""
        size = len(values)
        found = cls(np.zeros(size, np.uint8), np.zeros(size, np.int64), np.zeros(size))
        for row, value in enumerate(values):
            match value:
                case bool():
                    found.kinds[row], found.integers[row] = BOOLEAN, value
                case int() if -(2**63) <= value < 2**63:
                    found.kinds[row], found.integers[row], found.floats[row] = INTEGER, value, value
                case int() | float():
                    found.kinds[row], found.floats[row] = FLOAT, value
                case str():
                    found.kinds[row] = TEXT
        return found

    def at(self, rows: NDArray[np.intp]) -> ScalarColumn:
        """Some of the values."""
        return ScalarColumn(self.kinds[rows], self.integers[rows], self.floats[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class EventColumns:
    """Events in the order in which they are taken in.

    Attributes:
        times_us: Their times.
        hashes: The groups, by ``group_hash``.
        by: The values of each attribute of ``by``.
        keys: Correlation keys.
        key_hashes: Their hashes.
        ids: Their ids.
        arguments: The column of each of ``AggregateBody.arguments``.
        newest_us: The newest time of the batch, also of events that do not count.
    """

    times_us: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    by: Sequence[Sequence[Any]]
    keys: Sequence[Any]
    key_hashes: NDArray[np.uint64]
    ids: Sequence[Any]
    arguments: Sequence[ScalarColumn]
    newest_us: int

    def __len__(self) -> int:
        return len(self.times_us)

    @classmethod
    def of(cls, body: AggregateBody, events: EventRows) -> EventColumns | None:
        """The events of some rows; None: one of them is a retraction, or may be retracted."""
        rows: list[Row] = [row for row in events if row.id]
        if any(row.is_revocable or row.retracts for row in rows):
            return None
        places = {one.argument: place for place, one in enumerate(body.values)}
        return cls(
            times_us=np.array([row.time_us for row in rows], np.int64),
            hashes=np.array([group_hash(row.group) for row in rows], np.uint64),
            by=[[row.group[place] for row in rows] for place in range(len(body.by))],
            keys=[row.key for row in rows],
            key_hashes=np.array([row.key_hash for row in rows], np.uint64),
            ids=[row.id for row in rows],
            arguments=[ScalarColumn.of([row.arguments[places[one]] for row in rows]) for one in body.arguments],
            newest_us=events.newest_us,
        )

    def groups_at(self, rows: NDArray[np.int64]) -> tuple[list[tuple[Scalar, ...]], list[str]]:
        """The groups of some events, and their keys."""
        columns = [values_at(column, rows) for column in self.by]
        groups = map(normal_group, zip(*columns, strict=True)) if columns else [()] * len(rows)
        return list(groups), values_at(self.keys, rows)


def group_hash(group: Sequence[Scalar]) -> int:
    """The hash by which groups are found: of one text the hash of a correlation key, otherwise that of its form."""
    if len(group) == 1 and isinstance(group[0], str):
        return key_hash(group[0])
    return key_hash(group_text(group)) ^ _OTHERS


def scalar_of(kind: int, integer: int, number: float) -> Scalar:
    """A value that a kernel has, as plain JSON; of a text only that it is one."""
    if kind == NULL:
        return None
    found: dict[int, Scalar] = {BOOLEAN: True, FALSE: False, INTEGER: integer, FLOAT: number, TEXT: ""}
    return found[kind]


def values_at(column: Sequence[Any], rows: NDArray[np.int64]) -> list[Any]:
    """Some values of a list or an Arrow array."""
    if isinstance(column, pa.Array):
        return list(column.take(pa.array(rows)).to_pylist())
    return [column[row] for row in rows.tolist()]

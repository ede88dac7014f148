"""Events as columns: how an aggregate takes them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aggregates.document import AggregateBody
from aggregates.kernels.tables import BOOLEAN, FLOAT, INTEGER, TEXT
from aggregates.rows import EventRows, Scalar, group_text, normal_group
from streams import key_hash

COUNTS, ENDS, RETRACTS = 1, 2, 4
"""What a row is: an event that counts; the end of a transaction, after the event if it counts; a retraction."""

_OTHERS = 0x9E3779B97F4A7C15  # keeps the hash of a group of several values apart from that of a text


class ScalarColumn(NamedTuple):
    """Values by kind: integers (booleans as 0 and 1), numbers of both kinds as floats; objects where texts matter."""

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]
    objects: Sequence[Scalar] | None = None

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> ScalarColumn:
        """The column of some values."""
        size = len(values)
        found = cls(np.zeros(size, np.uint8), np.zeros(size, np.int64), np.zeros(size), values)
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
        objects = None if self.objects is None else [self.objects[row] for row in rows.tolist()]
        return ScalarColumn(self.kinds[rows], self.integers[rows], self.floats[rows], objects)


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
        newest_us: The newest time of the batch, including events that do not count.
        ops: What the rows are; None: all count.
        retracted: The ids that retractions name.
        shown: What derived events show of each event, if the aggregate has ``events``.
    """

    times_us: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    by: Sequence[Sequence[Any]]
    keys: Sequence[Any]
    key_hashes: NDArray[np.uint64]
    ids: Sequence[Any]
    arguments: Sequence[ScalarColumn]
    newest_us: int
    ops: NDArray[np.uint8] | None = None
    retracted: Sequence[str] = ()
    shown: Sequence[Mapping[str, Any] | None] = ()

    def __len__(self) -> int:
        return len(self.times_us)

    @classmethod
    def of(cls, body: AggregateBody, events: EventRows) -> EventColumns:
        """The events of some rows."""
        rows = events.rows
        ops = [(RETRACTS if row.retracts else COUNTS if row.id else 0) | (ENDS if row.ends else 0) for row in rows]
        places = {one.argument: place for place, one in enumerate(body.values)}
        return cls(
            times_us=np.array([row.time_us for row in rows], np.int64),
            hashes=np.array([group_hash(row.group) for row in rows], np.uint64),
            by=[[row.group[place] if row.group else None for row in rows] for place in range(len(body.by))],
            keys=[row.key for row in rows],
            key_hashes=np.array([row.key_hash for row in rows], np.uint64),
            ids=[row.id for row in rows],
            arguments=[
                ScalarColumn.of([row.arguments[places[one]] if row.arguments else None for row in rows])
                for one in body.arguments
            ],
            newest_us=events.newest_us,
            ops=np.array(ops, np.uint8) if any(op != COUNTS for op in ops) else None,
            retracted=[row.retracts for row in rows],
            shown=[row.event for row in rows] if body.events else (),
        )

    def at(self, rows: NDArray[np.int64]) -> EventColumns:
        """Some of the events, up to the same newest time."""
        return replace(
            self,
            times_us=self.times_us[rows],
            hashes=self.hashes[rows],
            by=[values_at(column, rows) for column in self.by],
            keys=values_at(self.keys, rows),
            key_hashes=self.key_hashes[rows],
            ids=values_at(self.ids, rows),
            arguments=[column.at(rows) for column in self.arguments],
            ops=None if self.ops is None else self.ops[rows],
            retracted=values_at(self.retracted, rows) if self.retracted else (),
            shown=values_at(self.shown, rows) if self.shown else (),
        )

    def groups_at(self, rows: NDArray[np.int64]) -> list[tuple[Scalar, ...]]:
        """The groups of some events."""
        columns = [values_at(column, rows) for column in self.by]
        return list(map(normal_group, zip(*columns, strict=True))) if columns else [()] * len(rows)


def group_hash(group: Sequence[Scalar]) -> int:
    """The hash by which groups are found: of one text the hash of a correlation key, otherwise that of its form."""
    if len(group) == 1 and isinstance(group[0], str):
        return key_hash(group[0])
    return key_hash(group_text(group)) ^ _OTHERS


def values_at(column: Sequence[Any], rows: NDArray[np.int64]) -> list[Any]:
    """Some values of a list or an Arrow array."""
    if isinstance(column, pa.Array):
        return list(column.take(pa.array(rows)).to_pylist())
    return [column[row] for row in rows.tolist()]

"""Events of aggregates as columns, from the rows of the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregates import COUNTS, ENDS, RETRACTS, AggregateBody, EventColumns, ScalarColumn, group_hash
from tests.references.aggregates import Row


def columns_of(body: AggregateBody, rows: Sequence[Row]) -> EventColumns:
    """The events of some rows, of which derived events show the id; a retraction or an end has null arguments."""
    ops = [(RETRACTS if row.retracts else COUNTS if row.id else 0) | (ENDS if row.ends else 0) for row in rows]
    places = {one.argument: place for place, one in enumerate(body.values)}
    return EventColumns(
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
        clocks_us=np.maximum.accumulate(np.array([row.time_us for row in rows], np.int64)),
        newest_us=max(row.time_us for row in rows),
        ops=np.array(ops, np.uint8) if any(op != COUNTS for op in ops) else None,
        retracted=[row.retracts for row in rows],
        shown=[{"id": row.id} for row in rows] if body.events else (),
    )

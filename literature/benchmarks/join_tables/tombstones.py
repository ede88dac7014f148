"""Forgotten keys: one input finishes each key at once, the other never, so most finished keys are forgotten.

Each key has an event of the first input, which closes it, an event of the second input within the window, and an event
so late that the key is forgotten; the late event is stored until it leaves its window.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins import Item, ItemColumns, Window, WindowJoin
from literature.benchmarks.join_tables.runs import Shown

_CALL = 50_000
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_INSIDE, _OUTSIDE, _WINDOW = 500, 4_000, 1_000
_REMEMBERED = 1_500


def _part(first: int, keys: int) -> ItemColumns:
    """Items of ``keys`` keys, a microsecond apart."""
    now = np.arange(first, first + keys, dtype=np.int64)
    each = np.column_stack([now, now, now - _INSIDE, now - _OUTSIDE]).ravel()
    kinds = np.tile(np.array([Item.EVENT, Item.CLOSING, Item.EVENT, Item.EVENT], np.uint8), keys)
    inputs = np.tile(np.array([0, 0, 1, 1], np.uint8), keys)
    exists = each >= 0
    return ItemColumns(
        kinds=kinds[exists],
        inputs=inputs[exists],
        keys=each[exists].astype(np.uint64) * _SPREAD,
        times_us=np.repeat(now, 4)[exists],
    )


def tables(keys: int) -> Iterator[Shown]:
    """The number of results, and the greatest numbers of remembered and known keys."""
    join = WindowJoin([Window("time", _WINDOW)] * 2, most_remembered=_REMEMBERED)
    results = most = known = 0
    for first in range(0, keys, _CALL):
        found = join.push(_part(first, min(_CALL, keys - first)))
        results += int(np.count_nonzero(found.members[:, 1] > found.members[:, 0]))
        results -= 2 * int(np.count_nonzero(found.members[:, 1] < found.members[:, 0]))  # none is expected
        most, known = max(most, join.stats.remembered), max(known, join.stats.keys)
    yield "7", f"most keys remembered of {keys:,}", f"{most:,}", f"at most {_REMEMBERED:,}"
    yield "7", "most keys known", f"{known:,}", "bounded by the window"
    yield "7", "results", f"{results:,}", f"{keys - _INSIDE:,}"

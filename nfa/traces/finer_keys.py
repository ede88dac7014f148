"""Finer traces. A finer trace has the events of one correlation key that agree in further attributes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.predicates import BatchColumns
from nfa.conditions.values import BOOLEAN, FLOAT, NULL, TEXT, Values
from nfa.syntax import Path
from nfa.traces.idle_traces import EndedTraces
from streams import EventBatch, column_of, ragged_places

_LEAST_SWEEP = 4_096


class FinerTraces:
    """Stores the finer keys of each correlation key. A finer trace has the events of both keys.

    All finer traces of a correlation key end when the trace of this key ends.
    """

    def __init__(self) -> None:
        self._pairs: NDArray[np.uint64] = np.zeros((0, 2), np.uint64)
        self._known: NDArray[np.uint64] = self._pairs[:, 1]
        self._sweep_at = _LEAST_SWEEP

    @property
    def pairs(self) -> NDArray[np.uint64]:
        """An array (n, 2) of hashed correlation keys and hashed finer keys. Pairs of ended traces are included."""
        return self._pairs

    @property
    def is_worth_sweeping(self) -> bool:
        """Whether enough keys were added since the last sweep to make another worthwhile.

        A sweep removes keys of ended traces.
        """
        return len(self._pairs) >= self._sweep_at

    def note(self, homes: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
        """Register the finer keys of events, each under the event's correlation key in ``homes``."""
        places = np.searchsorted(self._known, keys)
        is_new = np.equal(places, len(self._known))
        is_new[~is_new] = self._known[places[~is_new]] != keys[~is_new]
        if is_new.any():
            fresh = np.unique(np.column_stack([homes[is_new], keys[is_new]]), axis=0)
            self._pairs = np.concatenate([self._pairs, fresh])
            self._known = np.sort(self._pairs[:, 1], kind="stable")

    def of(self, homes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the sorted hashes of the finer keys that belong to the correlation keys ``homes``."""
        return np.sort(self._pairs[np.isin(self._pairs[:, 0], homes), 1])

    def ended(self, rows: NDArray[np.intp], homes: NDArray[np.uint64], times_us: NDArray[np.int64]) -> EndedTraces:
        """Return the finer traces that end with the traces of their correlation keys ``homes``.

        ``rows`` has, for each correlation key, the row before which its trace ends. The rows are ascending.
        """
        pairs = self._sorted_pairs()
        first = np.searchsorted(pairs[:, 0], homes, "left")
        sizes = np.searchsorted(pairs[:, 0], homes, "right") - first
        keys = pairs[ragged_places(first, sizes), 1]
        return EndedTraces(rows=np.repeat(rows, sizes), keys=keys, times_us=np.repeat(times_us, sizes))

    def keep(self, keys: NDArray[np.uint64]) -> None:
        """Remove all finer keys except ``keys``."""
        self.load(self._pairs[np.isin(self._pairs[:, 1], keys)])

    def dump(self) -> NDArray[np.uint64]:
        """Return the pairs as a flat array, sorted: the order of ``pairs`` depends on the cut into batches."""
        return self._sorted_pairs().reshape(-1)

    def _sorted_pairs(self) -> NDArray[np.uint64]:
        return self._pairs[np.lexsort((self._pairs[:, 1], self._pairs[:, 0]))]

    def load(self, pairs: NDArray[np.uint64]) -> None:
        """Replace all pairs of hashed correlation key and hashed finer key."""
        self._pairs, self._known = pairs, np.sort(pairs[:, 1])
        self._sweep_at = max(_LEAST_SWEEP, 2 * len(pairs))


def rows_with_keys(batch: EventBatch, keys: Sequence[Path]) -> tuple[EventBatch, NDArray[np.uint64], NDArray[np.intp]]:
    """Return the rows of a batch in which no key attribute is null, with the hash of their finer key.

    The result is the batch of these rows in order, the hash of each row's correlation key, and each row's index in
    ``batch``. The new hash of a row covers the correlation key and all of ``keys``. Equal numbers are equal keys,
    whatever their types. Numbers, texts and booleans are always different keys.
    """
    every = np.arange(len(batch))
    values_by_path = BatchColumns(batch).read(every, list(keys))
    columns = [values_by_path[path] for path in keys]
    has_all = np.ones(len(batch), np.bool_)
    for column in columns:
        has_all &= np.not_equal(column.kinds, NULL)
    rows = np.flatnonzero(has_all)
    hashes = [
        _hash_of(int(home), [_plain(column, row) for column in columns])
        for home, row in zip(batch.key_hashes[rows].tolist(), rows.tolist(), strict=True)
    ]
    event_columns = batch.columns.take(column_of(rows))
    place = event_columns.schema.get_field_index("key_hash")
    field = event_columns.schema.field(place)
    attributes = {path: column.take(column_of(rows)) for path, column in batch.attributes.items()}
    finer = EventBatch(
        event_columns.set_column(place, field, pa.array(hashes, pa.uint64())), attributes, tables=batch.tables
    )
    return finer, batch.key_hashes[rows], rows


def _plain(column: Values, row: int) -> object:
    kind = column.kinds[row]
    if kind == TEXT:
        return str(column.texts[row])
    if kind == BOOLEAN:
        return bool(column.integers[row])
    if kind == FLOAT and not float(column.floats[row]).is_integer():
        return float(column.floats[row])
    return int(column.floats[row]) if kind == FLOAT else int(column.integers[row])


def _hash_of(home: int, values: Sequence[object]) -> int:
    texts = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    kinds = [type(value).__name__ for value in values]
    body = orjson.dumps([str(home), kinds, texts])
    return int.from_bytes(blake2b(body, digest_size=8).digest(), "little")

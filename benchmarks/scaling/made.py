"""Generated streams of the size that a point needs, from fixed seeds, as columns."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streams import EventBatch, key_hash
from streams.batch import SCHEMA

START_US = 1_700_000_000_000_000


def batch_of(types: NDArray[np.integer], keys: NDArray[np.integer], *, names: int, first: int = 0) -> EventBatch:
    """Return a batch with one event a millisecond.

    Args:
        types: The number of each event's type, ``T{number}``.
        keys: The number of each event's key, ``k{number}``.
        names: The number of types.
        first: The number of the first event, which determines its id and time.
    """
    numbers = np.arange(first, first + len(types), dtype=np.int64)
    names_of_keys, hashes = _keys(int(keys.max()) + 1)
    columns = [
        pa.array(numbers).cast(pa.string()),
        pa.DictionaryArray.from_arrays(pa.array(types.astype(np.int32)), pa.array([f"T{n}" for n in range(names)])),
        pa.array(numbers * 1_000 + START_US).cast(pa.timestamp("us", tz="UTC")),
        names_of_keys.take(pa.array(keys)),
        pa.array(hashes[keys]),
        pa.array([b"{}"], pa.binary()).take(pa.array(np.zeros(len(types), np.int64))),
    ]
    return EventBatch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


@cache
def _keys(count: int) -> tuple[pa.Array, NDArray[np.uint64]]:
    """Return names and hashes of ``count`` keys."""
    names = [f"k{number}" for number in range(count)]
    return pa.array(names), np.array([key_hash(name) for name in names], np.uint64)


def uniform(events: int, *, types: int, keys: int, seed: int, first: int = 0) -> EventBatch:
    """Return events of uniformly random types and keys."""
    rng = np.random.default_rng(seed)
    return batch_of(rng.integers(0, types, events), rng.integers(0, keys, events), names=types, first=first)

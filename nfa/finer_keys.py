"""Traces finer than the correlation key: events of one key that agree in further attributes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import orjson
import pyarrow as pa

from nfa.conditions.predicates import BatchColumns
from nfa.conditions.values import BOOLEAN, FLOAT, NULL, TEXT, Values
from nfa.syntax import Path
from streams import EventBatch


def rows_with_keys(batch: EventBatch, keys: Sequence[Path]) -> EventBatch:
    """The rows in which no key is null, in their order; their hashes are those of all keys together.

    Numbers are equal keys when they are equal as numbers; a number, a text and a boolean are always different.
    """
    every = np.arange(len(batch))
    found = BatchColumns(batch).read(every, list(keys))
    columns = [found[path] for path in keys]
    has_all = np.ones(len(batch), np.bool_)
    for column in columns:
        has_all &= np.not_equal(column.kinds, NULL)
    rows = np.flatnonzero(has_all)
    hashes = [
        _hash_of(int(home), [_plain(column, row) for column in columns])
        for home, row in zip(batch.key_hashes[rows].tolist(), rows.tolist(), strict=True)
    ]
    taken = batch.columns.take(pa.array(rows))
    place = taken.schema.get_field_index("key_hash")
    field = taken.schema.field(place)
    attributes = {path: column.take(pa.array(rows)) for path, column in batch.attributes.items()}
    return EventBatch(taken.set_column(place, field, pa.array(hashes, pa.uint64())), attributes)


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

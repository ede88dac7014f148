"""``forestall.read``, which reads an event file as a table."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa

from forestall.match_columns import free_name
from forestall.reading import ColumnNames
from forestall.row_columns import value_column
from streams import KeyForm, StreamDeclaration
from streams.readers import read_batch


def read(
    path: str | Path,
    *,
    key: KeyForm | None = None,
    time: str | None = None,
    type: str | None = None,
    zone: str | None = None,
) -> pa.Table:
    """Read an event file as an Arrow table: id, type, time, key, and a column for each attribute.

    If an attribute has the name of another column, its column gets an underscore: ``time_``.

    Args:
        path: The file: ``.jsonl``, ``.csv`` or ``.xes``, each also ``.gz``.
        key: Column or member of the correlation key (default: the usual column or member in this kind of file).
        time: Column of the time (default: ``time``).
        type: Column of the event type (default: ``type``).
        zone: Time zone of times that name no zone.

    Raises:
        EventFileError: The file cannot be read, or contains an event that is not accepted.
    """
    names = ColumnNames(key=key, time=time, type=type, zone=zone)
    batch = read_batch(path, names.options(StreamDeclaration(name="file", key="key")))
    columns = {name: batch.columns.column(name) for name in ("id", "type", "time", "key")}
    columns["type"] = columns["type"].dictionary_decode()
    data = [orjson.loads(text) for text in batch.columns.column("data").to_pylist()]
    for name in dict.fromkeys(name for attributes in data for name in attributes):
        columns[free_name(name, list(columns))] = value_column([attributes.get(name) for attributes in data])
    return pa.table(columns)

"""Tables of events in every form that ``forestall.match`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("v", pa.int64()),
        ("w", pa.string()),
        ("x", pa.float64()),
        ("is", pa.bool_()),
        ("n", pa.struct([("v", pa.int64()), ("w", pa.string())])),
        ("l", pa.list_(pa.int64())),
    ]
)

Rows = Sequence[Mapping[str, Any]]


def table(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def pandas(rows: Rows) -> Any:
    return table(rows).to_pandas(integer_object_nulls=True)  # otherwise whole numbers become floats beside nulls


def categories(rows: Rows) -> Any:
    frame = pandas(rows)
    return frame.assign(**{name: frame[name].astype("category") for name in ("type", "key", "w")})


def arrow_in_pandas(rows: Rows) -> Any:
    return table(rows).to_pandas(types_mapper=pd.ArrowDtype)


def time_as_index(rows: Rows) -> Any:
    return pandas(rows).set_index("time")


def polars(rows: Rows) -> Any:
    return pl.from_arrow(table(rows))


def lazy(rows: Rows) -> Any:
    return polars(rows).lazy()


def chunked(rows: Rows) -> pa.Table:
    return pa.concat_tables([table(rows[:1]), table([]), table(rows[1:])])


def views(rows: Rows) -> pa.Table:
    """Texts of other types, and times of nanoseconds in another zone."""
    types = {"id": pa.large_string(), "key": pa.string_view(), "type": pa.dictionary(pa.int8(), pa.string())}
    types["time"] = pa.timestamp("ns", "Europe/Berlin")
    return table(rows).cast(pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in SCHEMA]))


def without_zone(rows: Rows) -> pa.Table:
    kept = table(rows)
    return kept.set_column(2, "time", kept.column("time").cast(pa.timestamp("us")))


def numbers(rows: Rows) -> pa.Table:
    """Times as numbers of microseconds, from times after 1973 on."""
    kept = table(rows)
    return kept.set_column(2, "time", kept.column("time").cast(pa.int64()))


def written_times(rows: Rows) -> pa.Table:
    kept = table(rows)
    texts = [one.astimezone(UTC).isoformat() for one in kept.column("time").to_pylist()]
    return kept.set_column(2, "time", pa.array(texts, pa.string()))


def dataset(rows: Rows) -> ds.Dataset:
    return ds.dataset(table(rows))


def relation(rows: Rows) -> duckdb.DuckDBPyRelation:
    """A relation of a connection of its own."""
    return duckdb.connect().from_arrow(table(rows))


KINDS: Mapping[str, Callable[[Rows], Any]] = {
    "list": list,
    "pandas": pandas,
    "categories": categories,
    "Arrow in pandas": arrow_in_pandas,
    "time as index": time_as_index,
    "polars": polars,
    "lazy polars": lazy,
    "table": table,
    "chunked table": chunked,
    "other types": views,
    "without zone": without_zone,
    "numbers": numbers,
    "written times": written_times,
    "dataset": dataset,
    "DuckDB": relation,
}
"""Frames of every kind, from rows that have the members of ``SCHEMA``."""


def moment(seconds: float) -> datetime:
    """A time in 2026."""
    return datetime.fromtimestamp(1_767_225_600 + seconds, UTC)

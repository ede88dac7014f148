"""Conversion of tables of events between all supported forms and Arrow columns.

This module imports only Arrow, because the caller has imported the library of a frame already. Frames hand over columns
by Arrow's C stream, mostly without a copy.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forestall.errors import FrameRefused
from streams import column_of, numbers_of

FrameT = TypeVar("FrameT")
Back: TypeAlias = Callable[[pa.Table], FrameT]
"""Makes a frame of one kind from an Arrow table; dictionary columns become plain text."""
Chosen: TypeAlias = Callable[[Sequence[str]], list[str]]
"""Picks the columns to read from the names of all columns."""

_KNOWN = (
    "a list of dictionaries, a DataFrame of pandas, polars or Spark, a table or dataset of Arrow, or a relation of "
    "DuckDB"
)


_OF_TABLES = ("columns", "schema", "to_table")  # every table has one of these members; a single column has none
_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


@dataclass(frozen=True, slots=True)
class Frame:
    """A table of events.

    Attributes:
        table: The events as an Arrow table.
        back: Converts an Arrow table to a frame of the original kind.
    """

    table: pa.Table
    back: Back[Any]


def read_frame(events: Any, chosen: Chosen = list, time: str | None = None) -> Frame:
    """Read the columns of a table of events.

    Args:
        events: The table.
        chosen: Returns the needed columns, given all columns. Other columns may be left unread.
        time: The column of the events' times. If only some times have a zone, the column is converted to texts.

    Raises:
        FrameRefused: The value is not a table, or a column has values of several types.
    """
    library = type(events).__module__.partition(".")[0]
    read = _READERS.get(library, _of_arrow if hasattr(events, "__arrow_c_stream__") else _of_rows)
    if library in _READERS and not any(hasattr(type(events), member) for member in _OF_TABLES):
        raise _no_table(events)
    try:
        frame = read(events, chosen, time)
    except _REFUSALS as error:
        raise FrameRefused(
            f"the table cannot be read as columns: {error}; give each column values of one type, or leave it out"
        ) from error
    names = chosen(frame.table.schema.names)
    if len(set(names)) < len(names):
        ((twice, _),) = Counter(names).most_common(1)
        raise FrameRefused(f"several columns are called {twice!r}; rename them, or leave all but one out", column=twice)
    return frame


def is_spark(events: object) -> bool:
    """Return whether a value is a Spark DataFrame."""
    return type(events).__module__.startswith("pyspark.sql") and hasattr(events, "mapInArrow")


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with its dictionary columns decoded."""
    kinds = [
        (field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds))


def _no_table(events: object) -> FrameRefused:
    return FrameRefused(f"{type(events).__name__} is not a table of events; give {_KNOWN}")


def _of_rows(events: Any, _: Chosen, time: str | None) -> Frame:
    if not isinstance(events, Iterable) or isinstance(events, str | bytes | Mapping):
        raise _no_table(events)
    rows = list(events)
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise FrameRefused(f"row {number} is {type(row).__name__}, not a dictionary; give {_KNOWN}")
    names = dict.fromkeys(str(name) for row in rows for name in row)
    columns = {name: _column(name, [row.get(name) for row in rows], is_time=name == time) for name in names}
    return Frame(pa.table(columns), lambda table: table.to_pylist())


def _column(name: str, values: Any, *, is_time: bool = False, from_pandas: bool = False) -> pa.Array:
    try:
        array = pa.array(values, from_pandas=from_pandas)
        return _time_texts(values) if is_time and pa.types.is_timestamp(array.type) and _is_mixed(values) else array
    except (*_REFUSALS, OverflowError) as error:
        raise FrameRefused(
            f"column {name!r} cannot be read: {error}; give it values of one type, or leave it out",
            column=name,
        ) from error


def _is_mixed(values: Any) -> bool:
    """Check whether only some of the times have a zone. Arrow would read all of them as times of one zone."""
    if getattr(getattr(values, "dtype", None), "kind", "O") != "O":  # a column of one type
        return False
    return len({value.tzinfo is None for value in values if _is_datetime(value)}) > 1


def _is_datetime(value: object) -> bool:
    return isinstance(value, datetime) and value == value  # noqa: PLR0124 - NaT of pandas is not


def _time_texts(values: Any) -> pa.Array:
    """Return times as ISO texts: in UTC if they have a zone, otherwise unchanged. Other values become null."""
    times = (value if _is_datetime(value) else None for value in values)
    return pa.array(
        [time and (time if time.tzinfo is None else time.astimezone(UTC)).isoformat() for time in times], pa.string()
    )


def _of_pandas(events: Any, chosen: Chosen, time: str | None) -> Frame:
    """Return the columns of a pandas DataFrame. Named levels of its index are columns too."""
    pandas, index = sys.modules["pandas"], events.index
    levels = [(name, index.get_level_values(level)) for level, name in enumerate(index.names)]
    columns = [(str(name), level) for name, level in levels if name is not None and name not in events.columns]
    columns += [(str(name), series) for name, series in events.items()]
    names = chosen([name for name, _ in columns])

    def back(table: pa.Table) -> Any:
        coded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        plain_frame = table.drop_columns(coded).to_pandas(
            types_mapper=lambda kind: pandas.ArrowDtype(kind) if pa.types.is_list(kind) else None
        )
        frame_columns = {
            name: _texts(table.column(name)) if name in coded else plain_frame[name] for name in table.schema.names
        }
        return pandas.DataFrame(frame_columns, plain_frame.index, copy=False)

    arrays = [_of_series(name, values, is_time=name == time) for name, values in columns if name in names]
    return Frame(pa.Table.from_arrays(arrays, names=names), back)


def _of_series(name: str, series: Any, *, is_time: bool) -> pa.Array:
    """Return the values of a pandas series.

    Categories and times share the memory of the series, because Arrow would copy and check them.
    """
    values, kind = series.array, series.dtype
    if hasattr(kind, "categories"):
        is_null = values.codes < 0
        indices = pa.array(values.codes, mask=is_null) if is_null.any() else pa.array(values.codes)
        return pa.DictionaryArray.from_arrays(indices, _column(name, values.categories, is_time=is_time))
    if getattr(kind, "kind", "") == "M" and hasattr(values, "asi8") and not values.isna().any():
        return column_of(values.asi8, pa.array(series.take([]), from_pandas=True).type)
    return _column(name, series, is_time=is_time, from_pandas=True)


def _texts(coded: pa.ChunkedArray) -> NDArray[np.object_]:
    """Return the values of a dictionary column, with None for null. Equal values are one object."""
    column = coded.unify_dictionaries().combine_chunks()
    places = pc.fill_null(column.indices.cast(pa.int64()), -1)
    texts: NDArray[np.object_] = np.array([*column.dictionary.to_pylist(), None], object)[numbers_of(places)]
    return texts


def _of_polars(events: Any, chosen: Chosen, _: str | None) -> Frame:
    polars = sys.modules["polars"]
    frame = events.collect() if hasattr(events, "collect") else events
    return Frame(frame.select(chosen(frame.columns)).to_arrow(), lambda table: polars.from_arrow(_plain(table)))


def _of_arrow(events: Any, chosen: Chosen, _: str | None) -> Frame:
    """Return the columns of an Arrow table, record batch, reader or dataset. Of a dataset, read only chosen columns."""
    if hasattr(events, "scanner"):
        return Frame(events.to_table(columns=chosen(events.schema.names)), _plain)
    return Frame(events.to_table() if hasattr(events, "to_table") else pa.table(events), _plain)


def _of_duckdb(events: Any, _: Chosen, _time: str | None) -> Frame:
    """Return the columns of a DuckDB relation. Results are converted to relations of the same connection."""

    def back(table: pa.Table) -> Any:
        converted = _plain(table)  # DuckDB reads the local variable by its name
        return events.query("_", "SELECT * FROM converted") if converted is not None else None

    return Frame(pa.table(events), back)


_READERS: Mapping[str, Callable[[Any, Chosen, str | None], Frame]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
    "duckdb": _of_duckdb,
    "_duckdb": _of_duckdb,  # module name before DuckDB 1.4
}

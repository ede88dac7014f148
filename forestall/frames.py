"""Tables of events in any form that is known here, as Arrow columns and back.

Only Arrow is imported; a library that a frame comes from is imported already. Frames hand their columns over by
Arrow's C stream, most of them without a copy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from forestall.errors import FrameRefused

Back: TypeAlias = Callable[[pa.Table], Any]
"""Makes a frame of a certain kind from Arrow columns."""
Chosen: TypeAlias = Callable[[Sequence[str]], list[str]]
"""Picks from the names of columns those that are read."""

_KNOWN = (
    "a list of dictionaries, a DataFrame of pandas, polars or Spark, a table or dataset of Arrow, or a relation of "
    "DuckDB"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A table of events.

    Attributes:
        table: Its columns.
        back: Makes a frame of the same kind.
    """

    table: pa.Table
    back: Back


def read_frame(events: Any, chosen: Chosen = list) -> Frame:
    """The columns of a table of events.

    Args:
        events: The table.
        chosen: Picks the columns that are needed from the known ones; others may be left unread.

    Raises:
        FrameRefused: The value is not a table, or a column has values of several types.
    """
    library = type(events).__module__.partition(".")[0]
    try:
        if (read := _READERS.get(library)) is not None:
            return read(events, chosen)
        if hasattr(events, "__arrow_c_stream__"):
            return Frame(pa.table(events), _as_it_is)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise FrameRefused(
            f"the table cannot be read as columns: {error}; give each column values of one type, or leave it out"
        ) from error
    if isinstance(events, Iterable) and not isinstance(events, str | bytes | Mapping):
        return _of_rows(list(events))
    raise FrameRefused(f"{type(events).__name__} is not a table of events; give {_KNOWN}")


def is_spark(events: object) -> bool:
    """Whether a value is a DataFrame of Spark."""
    return type(events).__module__.startswith("pyspark.sql") and hasattr(events, "mapInArrow")


def _as_it_is(table: pa.Table) -> pa.Table:
    return table


def _of_rows(rows: Sequence[Any]) -> Frame:
    """The columns of dictionaries; a name that a row lacks is null there."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise FrameRefused(f"row {number} is {type(row).__name__}, not a dictionary; give {_KNOWN}")
    names = dict.fromkeys(str(name) for row in rows for name in row)
    columns = {name: _column(name, [row.get(name) for row in rows]) for name in names}
    return Frame(pa.table(columns), lambda table: table.to_pylist())


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise FrameRefused(
            f"column {name!r} has values of several types: {error}; give it values of one type, or leave it out",
            column=name,
        ) from error


def _of_pandas(events: Any, chosen: Chosen) -> Frame:
    """The columns of a pandas DataFrame, and the levels of its index that have names."""
    pandas = sys.modules["pandas"]
    levels = [name for name in events.index.names if name is not None and name not in events.columns]
    frame = events.reset_index(level=levels) if levels else events

    def back(table: pa.Table) -> Any:
        return table.to_pandas(types_mapper=lambda kind: pandas.ArrowDtype(kind) if pa.types.is_list(kind) else None)

    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise FrameRefused(f"several columns are called {twice!r}; rename them, or leave all but one out", column=twice)
    names = chosen(list(frame.columns))
    coded = {
        name: _of_codes(frame[name].array) for name in names if isinstance(frame[name].dtype, pandas.CategoricalDtype)
    }
    others = [name for name in names if name not in coded]
    table = pa.Table.from_pandas(frame, columns=others, preserve_index=False)
    for place, name in enumerate(names):
        if name in coded:
            table = table.add_column(place, str(name), coded[name])
    return Frame(table, back)


def _of_codes(values: Any) -> pa.Array:
    """The codes of categories, which Arrow copies to check them."""
    codes = values.codes
    is_null = codes < 0
    indices = pa.array(codes, mask=is_null) if is_null.any() else pa.array(codes)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values.categories))


def _of_polars(events: Any, chosen: Chosen) -> Frame:
    polars = sys.modules["polars"]
    frame = events.collect() if hasattr(events, "collect") else events
    return Frame(frame.select(chosen(frame.columns)).to_arrow(), polars.from_arrow)


def _of_arrow(events: Any, chosen: Chosen) -> Frame:
    """A table of Arrow, or what becomes one: a record batch, a reader, or a dataset, of which few columns are read."""
    if isinstance(events, pa.Table):
        return Frame(events, _as_it_is)
    if hasattr(events, "to_table"):
        return Frame(events.to_table(columns=chosen(events.schema.names)), _as_it_is)
    return Frame(pa.table(events), _as_it_is)


def _of_duckdb(events: Any, _: Chosen) -> Frame:
    """The columns of a relation of DuckDB; results are relations of the same connection."""

    def back(table: pa.Table) -> Any:
        found = table  # DuckDB finds it by this name
        return events.query("_", "SELECT * FROM found") if found is table else None

    return Frame(pa.table(events), back)


_READERS: Mapping[str, Callable[[Any, Chosen], Frame]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
    "duckdb": _of_duckdb,
    "_duckdb": _of_duckdb,  # releases before 1.4
}

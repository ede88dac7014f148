"""``forestall match --sql``: run a query with MATCH_RECOGNIZE over a file, in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from nfa import run_query
from service.cli.inputs import read_text
from service.cli.output import echo_table
from streams import EventFileError, json_value


def answers_query(query: Path | None, patterns: Collection[Path], events: Path, *, is_json: bool) -> bool:
    """Run an SQL query over the event file, and print the result's rows.

    Returns False if patterns are given instead of a query.
    """
    if query is None and not patterns:
        raise typer.BadParameter("give a file with patterns, or one with a query (--sql)", param_hint="--pattern")
    if query is None:
        return False
    if patterns:
        raise typer.BadParameter("give patterns or a query, not both", param_hint="--sql")
    table = run_query(read_text(query), lambda _: read_table(events))
    rows = table.to_pylist()
    if is_json:
        typer.echo(json_value(rows))
    else:
        echo_table(table.column_names, ([_cell(value) for value in row.values()] for row in rows))
    return True


def read_table(path: Path) -> pa.Table:
    """Read a file's columns: CSV, JSON lines or Parquet. Members of ``data`` become separate columns."""
    kind = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if kind not in _READERS:
        raise EventFileError(f"{path}: a query reads .csv, .jsonl and .parquet files, the first two also .gz")
    try:
        return _with_data_flat(_READERS[kind](path))
    except (OSError, pa.ArrowException) as error:
        raise EventFileError(f"{path}: {str(error).partition(chr(10))[0]}") from error


def _read_csv(path: Path) -> pa.Table:
    import pyarrow.csv  # noqa: PLC0415

    return pyarrow.csv.read_csv(path)


def _read_json(path: Path) -> pa.Table:
    import pyarrow.json  # noqa: PLC0415

    with pa.input_stream(str(path), compression="detect") as stream:
        return pyarrow.json.read_json(stream)


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet  # noqa: PLC0415

    return pyarrow.parquet.read_table(path)


_READERS: Mapping[str, Callable[[Path], pa.Table]] = {
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".parquet": _read_parquet,
}


def _with_data_flat(table: pa.Table) -> pa.Table:
    if "data" not in table.column_names or not pa.types.is_struct(table.schema.field("data").type):
        return table
    other_columns = [name for name in table.column_names if name != "data"]
    flat = table.select(["data"]).flatten()
    members = [name.removeprefix("data.") for name in flat.column_names]
    columns = {
        **dict(zip(members, flat.columns, strict=True)),
        **{name: table.column(name) for name in other_columns},
    }
    return pa.table({name: columns[name] for name in dict.fromkeys([*other_columns, *members])})


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json_value(value).decode().strip('"')

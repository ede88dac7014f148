"""``forestall match --sql``: run a query with MATCH_RECOGNIZE over a file, in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from nfa import run_query
from service.cli.inputs import read_text
from service.cli.output import echo_table, standard_error
from streams import EventFileError, json_value, shown

_FIRST = 10_000  # number of values of a column that decide what most of them are
_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"
_TIMES = (_TIME, f"{_TIME}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)")
_NUMBERS = ("-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?", "[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?")


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
        table = _with_data_flat(_READERS[kind](path))
    except (OSError, pa.ArrowException) as error:
        raise EventFileError(f"{path}: {str(error).partition(chr(10))[0]}") from error
    if kind != ".parquet":  # whose columns have declared types
        _notice_texts(path, table, {"times": _TIMES, **({"numbers": _NUMBERS} if kind == ".csv" else {})})
    return table


def _notice_texts(path: Path, table: pa.Table, forms: Mapping[str, Sequence[str]]) -> None:
    """Print a notice for each column of text if most of its first values have one of ``forms``, such as those of times.

    Values of one form and length are sorted correctly as text, so they need no notice.
    """
    for field in table.schema:
        if not pa.types.is_string(field.type):
            continue
        texts = table.column(field.name)
        texts = texts.filter(pc.not_equal(texts, ""))  # without null
        first = texts[:_FIRST]
        for name, regexes in forms.items():
            masks = [_have_form(first, regex) for regex in regexes]
            counts = [pc.sum(mask).as_py() or 0 for mask in masks]
            if 2 * (pc.sum(reduce(pc.or_, masks)).as_py() or 0) <= len(first):
                continue
            usual = counts.index(max(counts))
            example = first.filter(masks[usual])[0].as_py()
            others = texts.filter(pc.invert(_have_form(texts, regexes[usual])))
            others = others or texts.filter(pc.not_equal(pc.utf8_length(texts), len(example)))
            if others:
                standard_error.notice(
                    f"{path}: column {field.name} is read and sorted as text, as its values are not all {name} written "
                    f"in one way: {shown(example)} and {shown(others[0].as_py())}"
                )


def _have_form(texts: pa.ChunkedArray, regex: str) -> pa.ChunkedArray:
    return pc.match_substring_regex(texts, f"^({regex})$")


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

"""Reads the rows of a table from CSV, JSON lines or Parquet into its file, in portions of Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams.showing import shown
from streams.tables.errors import TableRefused
from streams.tables.files import draft_file, keep_draft
from streams.tables.form import TableDeclaration, TableForm, TableVersion
from streams.tables.mapped import key_texts, keys_in, rows_of, schema_of
from streams.tables.portions import Portion, csv_portions, json_portions, parquet_portions, refused_at
from streams.tables.values import Unfit, of_texts, of_values

TableFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]

_READERS: Mapping[TableFormat, Callable[[Path, TableDeclaration], Iterator[Portion]]] = {
    "csv": csv_portions,
    "jsonl": json_portions,
    "parquet": parquet_portions,
}
MEDIA_TYPES: Mapping[str, TableFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/vnd.apache.parquet": "parquet",
}
"""The formats of tables by media type."""

_FIRST: Mapping[TableFormat, tuple[str, int]] = {"csv": ("line", 2), "jsonl": ("line", 1), "parquet": ("row", 1)}


class TableLimits(NamedTuple):
    """The most rows and bytes of a table."""

    rows: int = 10_000_000
    size_bytes: int = 1 << 30


USUAL_LIMITS = TableLimits()


def format_of(name: str) -> TableFormat:
    """Return the format of a file by its name. Raises ``TableRefused`` if no table format has this ending."""
    ending = Path(name).suffix.lower().removeprefix(".").replace("ndjson", "jsonl")
    for kind in get_args(TableFormat):
        if kind == ending:
            return cast("TableFormat", kind)
    raise TableRefused(f"{name}: the file of a table ends in .csv, .jsonl or .parquet", field="file")


def media_type_of(kind: TableFormat) -> str:
    """Return the media type of a format, for HTTP."""
    return next(name for name, format_name in MEDIA_TYPES.items() if format_name == kind)


def keep_table(
    path: Path, kind: TableFormat, declaration: TableDeclaration, limits: TableLimits = USUAL_LIMITS
) -> TableVersion:
    """Read the rows of a table from a file, and store them in the cache folder. Return version 0, without a name.

    Raises ``TableRefused`` if the rows are faulty or too many.
    """
    with draft_file() as parts, draft_file() as draft:
        form = _write_parts(path, kind, declaration, limits, parts)
        rows = _write_whole(parts, draft, form)
        digest, repeated = keep_draft(draft)
        if repeated >= 0:
            raise _repeats(draft, form, repeated, _FIRST[kind])
    return TableVersion(name="", version=0, form=form, digest=digest, rows=rows)


def keep_named(name: str, path: Path, declaration: TableDeclaration) -> TableVersion:
    """Read a table from a file and store it in the cache folder. Return version 1 with a name.

    Errors name the table.
    """
    try:
        version = keep_table(path, format_of(path.name), declaration)
    except TableRefused as error:
        raise TableRefused(f"the table {name!r}: {error.message}", **error.details) from error
    except OSError as error:
        raise TableRefused(f"the table {name!r}: {path} cannot be read: {error.strerror or error}") from error
    return replace(version, name=name, version=1)


def keep_rows(form: TableForm, rows: pa.RecordBatch) -> TableVersion:
    """Store rows with distinct keys in the cache folder. Return version 0 of a table, without a name."""
    with draft_file() as draft:
        _write(rows_of(form, rows.columns), draft)
        digest, _ = keep_draft(draft)
    return TableVersion(name="", version=0, form=form, digest=digest, rows=len(rows))


def read_row(
    form: TableForm, parts: Sequence[str], row: Mapping[str, Any] | None
) -> tuple[str, tuple[Any, ...] | None]:
    """Check one row of a table. Return its key as text, and its values by column order, or None if ``row`` is None.

    ``parts`` are the values of the key's columns, in their order. Raises ``TableRefused`` if parts are missing, or a
    value does not have the type of its column.
    """
    if len(parts) != len(form.key) or not all(parts):
        key_names = ", ".join(form.key)
        raise TableRefused(f"the key {shown(list(parts))} has not the parts {key_names}, each once and not empty")
    key_values = dict(zip(form.key, parts, strict=True))
    if unknown := [name for name in row or () if name not in form.columns]:
        names = ", ".join(form.columns)
        raise TableRefused(f"the table has no column {shown(unknown[0])}; it has {names}", column=unknown[0])
    values = {**key_values, **(row or {})}
    columns = {name: _value(name, values.get(name), form) for name in form.columns}
    for name, part in key_values.items():
        if (value := columns[name][0].as_py()) is None or str(value) != part:
            raise TableRefused(
                f"the row has the {name} {shown(value)}, and not that of its key {shown(part)}", column=name
            )
    (text,) = key_texts([columns[name] for name in form.key]).to_pylist()
    return text, None if row is None else tuple(column[0].as_py() for column in columns.values())


def _value(name: str, value: Any, form: TableForm) -> pa.Array:
    kind, is_key = form.columns[name], name in form.key
    try:
        if is_key and isinstance(value, str):
            return of_texts(pa.array([value]), kind)
        return of_values([value], kind, takes_numbers=is_key)
    except Unfit as error:
        raise TableRefused(f"column {name!r}: {error}", column=name) from error


def _write_parts(
    path: Path, kind: TableFormat, declaration: TableDeclaration, limits: TableLimits, parts: Path
) -> TableForm:
    portions = _READERS[kind](path, declaration)
    portion = next(portions, None)
    if portion is None:
        raise TableRefused("the file is empty; a table has at least one row, or a first line of CSV with its columns")
    form, rows, size_bytes = portion.form, 0, 0
    with closing(pa.ipc.new_stream(str(parts), schema_of(form))) as writer:
        while portion is not None:
            batch = rows_of(form, portion.columns)
            _require_keys(form, keys_in(form, batch), portion)
            rows, size_bytes = rows + len(batch), size_bytes + batch.nbytes
            if rows > limits.rows:
                raise TableRefused(f"the table has more than {limits.rows:,} rows, the most that are taken")
            if size_bytes > limits.size_bytes:
                raise TableRefused(f"the table needs more than {limits.size_bytes:,} bytes, the most that are taken")
            writer.write_batch(batch)
            portion = next(portions, None)
    return form


def _write_whole(parts: Path, draft: Path, form: TableForm) -> int:
    """Copy the batches of ``parts`` to ``draft`` as a single batch, so that each column is contiguous.

    Return the number of rows.
    """
    with pa.memory_map(str(parts)) as source, pa.ipc.open_stream(source) as reader:
        (batch,) = reader.read_all().combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=schema_of(form))
        ]
        _write(batch, draft)
        return len(batch)


def _write(rows: pa.RecordBatch, draft: Path) -> None:
    with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_batch(rows)


def _require_keys(form: TableForm, keys: pa.Array, portion: Portion) -> None:
    is_bad = np.asarray(pc.equal(pc.binary_length(keys.fill_null("")), 0))
    if is_bad.any():
        raise portion.refusal(int(is_bad.argmax()), "the key is null or empty; every row has a key", form.key[0])


def _repeats(draft: Path, form: TableForm, row: int, place: tuple[str, int]) -> TableRefused:
    unit, first = place
    with pa.memory_map(str(draft)) as source, pa.ipc.open_file(source) as reader:
        keys = keys_in(form, reader.get_batch(0))
        key = keys[row].as_py()
        earlier = pc.index(keys, pa.scalar(key, pa.string())).as_py()
    reason = f"the key {shown(key)} is in {unit} {first + earlier} already; every row has a key of its own"
    return refused_at(unit, first + row, reason, form.key[0])

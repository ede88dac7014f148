"""The rows of a file in portions. Each has columns in the types of the table, and the line of its first row."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streams.showing import shown
from streams.tables.errors import TableRefused
from streams.tables.form import VALUE_TYPES, TableDeclaration, TableForm, ValueType, names_fault
from streams.tables.values import Unfit, of_arrow, of_texts, of_values, type_in_arrow, type_of_texts, type_of_values

_BLOCK_BYTES = 1 << 22
_MOST_LINE = 1 << 20
_BATCH_ROWS = 1 << 16
_ROW = re.compile(r"Row #(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Consecutive rows of a file, as columns in the types of the table.

    Attributes:
        first: Number of the portion's first row in the file.
        unit: What ``first`` counts: lines, or rows of Parquet.
    """

    form: TableForm
    columns: Sequence[pa.Array]
    first: int
    unit: str = "line"

    def refusal(self, row: int, reason: str, column: str = "") -> TableRefused:
        """Return the error about a row of the portion, for the caller to raise."""
        return refused_at(self.unit, self.first + row, reason, column)


Portions: TypeAlias = Iterator[Portion]


def refused_at(unit: str, number: int, reason: str, column: str = "") -> TableRefused:
    """Return the error about a line or row of a file, for the caller to raise. ``unit`` is ``line`` or ``row``."""
    place = f"{unit} {number}, column {column!r}" if column else f"{unit} {number}"
    details = {"column": column} if column else {}
    return TableRefused(f"{place}: {reason}", line=number, **details)


def csv_portions(path: Path, declaration: TableDeclaration) -> Portions:
    """Yield the rows of a CSV file in UTF-8, in portions. Its first line names the columns. An empty field is null."""
    names, is_alone = _header(path)
    if is_alone:
        form = declaration.form(names, lambda _: "text")
        yield Portion(form=form, columns=_no_rows(form), first=2)
        return
    yield from _csv_rows(path, declaration, names)


def _csv_rows(path: Path, declaration: TableDeclaration, names: Sequence[str]) -> Portions:
    from pyarrow import csv as arrow_csv  # noqa: PLC0415 - needed for tables only

    form: TableForm | None = None
    first = 2
    try:
        reader = arrow_csv.open_csv(
            str(path),
            arrow_csv.ReadOptions(column_names=names, skip_rows=1, block_size=_BLOCK_BYTES, use_threads=False),
            arrow_csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
        for batch in reader:
            if form is None:
                form = declaration.form(names, _texts_in(batch))
            with _lines("line", first):
                columns = [_placed(name, of_texts, batch.column(name), kind) for name, kind in form.columns.items()]
            yield Portion(form=form, columns=columns, first=first)
            first += len(batch)
    except pa.ArrowInvalid as error:
        raise _unreadable("CSV", error) from error


def _texts_in(batch: pa.RecordBatch) -> Callable[[str], ValueType]:
    return lambda name: type_of_texts(batch.column(name))


def _no_rows(form: TableForm) -> list[pa.Array]:
    return [pa.array([], VALUE_TYPES[kind]) for kind in form.columns.values()]


def json_portions(path: Path, declaration: TableDeclaration) -> Portions:
    """Yield the rows of a file with a JSON object in each line, in portions. The first portion decides the columns."""
    form: TableForm | None = None
    first = 1
    for block in _blocks(path):
        lines = block.splitlines()
        columns = None if form is None else _fast_columns(block, len(lines), form)
        with _lines("line", first):
            if form is None or columns is None:
                objects = [_object(row, line) for row, line in enumerate(lines)]
                if form is None:
                    form = _form_of(objects, declaration)
                columns = _slow_columns(objects, form)
        yield Portion(form=form, columns=columns, first=first)
        first += len(lines)


def parquet_portions(path: Path, declaration: TableDeclaration) -> Portions:
    """Yield the rows of a Parquet file, in portions."""
    from pyarrow import parquet  # noqa: PLC0415 - needed for tables only

    try:
        with parquet.ParquetFile(str(path)) as file:
            kinds = {field.name: type_in_arrow(field.type) for field in file.schema_arrow}
            if nested := [name for name, kind in kinds.items() if kind is None]:
                raise TableRefused(
                    f"the column {nested[0]!r} has the type {file.schema_arrow.field(nested[0]).type}; columns are "
                    "texts, numbers, booleans and times",
                    column=nested[0],
                )
            form = declaration.form(file.schema_arrow.names, lambda name: kinds[name] or "text")
            first = 1
            for batch in file.iter_batches(_BATCH_ROWS):
                with _lines("row", first):
                    columns = [
                        _placed(name, of_arrow, column, kind)
                        for (name, kind), column in zip(form.columns.items(), batch.columns, strict=True)
                    ]
                yield Portion(form=form, columns=columns, first=first, unit="row")
                first += len(batch)
            if first == 1:
                yield Portion(form=form, columns=_no_rows(form), first=1, unit="row")
    except (pa.ArrowException, OSError) as error:
        raise _unreadable("Parquet file", error) from error


class _Unplaced(Exception):
    """A row of a portion has a fault.

    ``row`` counts from the portion's first row, whose number in the file is unknown.
    """

    def __init__(self, row: int, reason: str, column: str = "") -> None:
        self.row, self.reason, self.column = row, reason, column


@contextmanager
def _lines(unit: str, first: int) -> Iterator[None]:
    try:
        yield
    except _Unplaced as fault:
        raise refused_at(unit, first + fault.row, fault.reason, fault.column) from fault


def _placed(name: str, convert: Any, values: Any, kind: ValueType) -> pa.Array:
    try:
        return convert(values, kind)
    except Unfit as fault:
        raise _Unplaced(fault.row, str(fault), name) from fault
    except pa.ArrowInvalid as error:
        raise TableRefused(f"column {name!r}: {error}", column=name) from error


def _header(path: Path) -> tuple[list[str], bool]:
    with path.open("rb") as file:
        line = file.readline(_MOST_LINE)
        is_alone = not file.read(1)
    try:
        names = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise refused_at("line", 1, f"the names of the columns cannot be read: {error}") from error
    if not names:
        raise refused_at("line", 1, "it names no columns")
    if fault := names_fault(names):
        raise refused_at("line", 1, fault)
    return names, is_alone


def _blocks(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while part := file.read(_BLOCK_BYTES):
            end = part.rfind(b"\n") + 1
            if end:
                yield rest + part[:end]
                rest = part[end:]
            else:
                rest += part
            if len(rest) > _BLOCK_BYTES:
                raise TableRefused(f"a line has more than {_BLOCK_BYTES:,} bytes")
    if rest:
        yield rest


def _object(row: int, line: bytes) -> dict[str, Any]:
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        reason = "it is empty" if not line.strip() else f"not JSON: {error.msg}, at character {error.colno}"
        raise _Unplaced(row, reason) from error
    if not isinstance(members, dict):
        raise _Unplaced(row, "it is not a JSON object; a row is an object with the columns as members")
    return members


def _form_of(objects: Sequence[dict[str, Any]], declaration: TableDeclaration) -> TableForm:
    names = list(dict.fromkeys(name for row in objects for name in row))
    names += [name for name in declaration.types if name not in names]
    return declaration.form(names, lambda name: type_of_values([row.get(name) for row in objects]))


def _slow_columns(objects: Sequence[dict[str, Any]], form: TableForm) -> list[pa.Array]:
    for row, members in enumerate(objects):
        if unknown := [name for name in members if name not in form.columns]:
            reason = f"the column {shown(unknown[0])} is in no earlier row; the columns are {', '.join(form.columns)}"
            raise _Unplaced(row, reason, unknown[0])
    return [
        _placed(
            name, partial(of_values, takes_numbers=name in form.key), [members.get(name) for members in objects], kind
        )
        for name, kind in form.columns.items()
    ]


def _fast_columns(block: bytes, lines: int, form: TableForm) -> list[pa.Array] | None:
    """Return the columns of a block of JSON lines. Return None if lines may be faulty and must be read singly."""
    from pyarrow import json as arrow_json  # noqa: PLC0415 - needed for tables only

    kinds = {name: pa.string() if kind == "time" else VALUE_TYPES[kind] for name, kind in form.columns.items()}
    options = arrow_json.ParseOptions(explicit_schema=pa.schema(list(kinds.items())), unexpected_field_behavior="error")
    try:
        table = arrow_json.read_json(
            pa.BufferReader(block), arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1), options
        )
        if len(table) != lines:
            return None
        table.validate(full=True)  # Arrow does not check texts
        columns = [table.column(name).combine_chunks() for name in form.columns]
        if not all(_is_finite(column) for column in columns):
            return None
        return [
            of_texts(column, kind) if kind == "time" else column
            for column, kind in zip(columns, form.columns.values(), strict=True)
        ]
    except (pa.ArrowInvalid, Unfit):
        return None


def _is_finite(column: pa.Array) -> bool:
    return not pa.types.is_floating(column.type) or pc.all(pc.is_finite(column)).as_py() is not False


def _unreadable(what: str, error: Exception) -> TableRefused:
    reason = str(error).partition("\n")[0].removeprefix("CSV parse error: ")
    if (row_match := _ROW.match(reason)) is not None:
        return refused_at("line", int(row_match[1]), reason.partition(": ")[2])
    return TableRefused(f"the {what} cannot be read: {reason}")

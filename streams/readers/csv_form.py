"""The form of a CSV file: its delimiter, the types of its columns, and the order of its dates.

All cells are examined before the first event is read, because a single cell can decide the type of its column. A column
contains numbers only if no two different texts would be equal numbers. For example, ``1.10`` beside ``1.1`` is text.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streams.declaration import ColumnType
from streams.errors import EventFileError, EventRejected
from streams.nearest import listed
from streams.readers.opening import open_events
from streams.readers.options import ReaderOptions
from streams.showing import shown
from streams.time_forms import DATE_ORDERS, date_order, slashed_date

Scalar = str | int | float | bool | None

DELIMITERS: Mapping[str, str] = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_POINT = re.compile(r"-?(?:0|[1-9][0-9]*)\.([0-9]+)")
_LOOSE = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?")
_EXACT_DIGITS = 15  # different decimals of up to 15 digits are different doubles
_SPELLINGS = ({"true": True, "false": False}, {"TRUE": True, "FALSE": False}, {"True": True, "False": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """The form of a CSV file.

    Attributes:
        has_mark: Whether the first line is ``sep=...``, as spreadsheets write it.
        types: Types of the columns that are not texts.
        options: The options of the reader, with the detected order of dates.
    """

    delimiter: str
    has_mark: bool
    types: Mapping[str, ColumnType]
    options: ReaderOptions

    def value(self, name: str, text: str) -> Scalar:
        """Return the value of a cell. Raises ``EventRejected`` if it does not have the type of its column."""
        if not text:
            return None
        kind = self.types.get(name, "text")
        if kind == "text":
            return text
        value = _boolean(text) if kind == "boolean" else _number(text, has_comma=self.delimiter == ";")
        if value is None:
            raise EventRejected(
                f"column {name}: {shown(text)} is not a {kind}; correct it, leave it empty for null, or read the "
                f"column as text (--columns {name}=text)",
                field=name,
            )
        return value

    def rows(self, stream: io.BufferedReader, path: Path) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows, each with the number of its last line. Empty lines are skipped."""
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        skipped = 0
        if self.has_mark:
            lines.readline()
            skipped = 1
        rows = csv.reader(lines, strict=True, delimiter=self.delimiter)
        try:
            for row in rows:
                if row:
                    yield rows.line_num + skipped, row
        except csv.Error as error:
            raise EventFileError(f"{path}: line {rows.line_num + skipped}: not CSV: {error}", file=str(path)) from error
        except UnicodeDecodeError as error:
            raise EventFileError(
                f"{path}: is not UTF-8 (byte 0x{error.object[error.start]:02x} after line {rows.line_num + skipped}); "
                "name its encoding, such as --encoding windows-1252",
                file=str(path),
            ) from error


def examine(path: Path, options: ReaderOptions, required: Collection[str], time: str | None) -> CsvForm:
    """Detect the form of a CSV file. A notice (``on_notice``) reports each detected property that is not the default.

    ``required`` are the columns that an event needs. The delimiter that finds most of them is chosen. ``time`` is the
    column of the time. Raises ``EventFileError`` if several delimiters are possible.
    """
    with open_events(path, options) as stream:
        header = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="").readline()
    form = _delimited(header, path, options, required)
    if form.delimiter != "," and options.delimiter is None:
        _notice(options, f"{path}: columns are separated by {DELIMITERS.get(form.delimiter, repr(form.delimiter))}")
    columns, orders = _columns(path, form, time)
    types = dict(options.types)
    for column in columns:
        if column.name in types:
            continue
        if (kind := column.kind) is not None:
            types[column.name] = kind
        elif column.is_doubtful and column.name != time:
            kinds = "booleans" if 2 * column.booleans > column.numeric else "numbers"
            _notice(
                options,
                f"{path}: column {column.name} is read as text, as its values are not all {kinds} written in one way: "
                f"{shown(column.odd)} in line {column.odd_line}; --columns {column.name}=TYPE "
                "decides (text, number or boolean)",
            )
    if unknown := sorted(options.types.keys() - {column.name for column in columns}):
        _notice(options, f"{path}: has no column {listed(unknown)}, for which a type is given")
    return CsvForm(delimiter=form.delimiter, has_mark=form.has_mark, types=types, options=_dated(path, options, orders))


@dataclass(slots=True)
class _Column:
    """Statistics of the cells of a column, from which its type follows.

    Attributes:
        filled: Number of cells that are not empty.
        numeric: Number of cells that could be numbers or booleans.
        booleans: Number of cells that could be booleans.
        forms: The forms of numbers or booleans (``_forms``) that all cells so far have.
        digits: Number of digits after the point in the first cell with a point. None before the first such cell.
        odd: The first cell after which no form fits all cells.
    """

    name: str
    filled: int = 0
    numeric: int = 0
    booleans: int = 0
    forms: set[str] = field(default_factory=lambda: {"whole", "shortest", "points", "fixed", "0", "1", "2"})
    digits: int | None = None
    odd: str = ""
    odd_line: int = 0

    def add(self, text: str, line: int) -> None:
        if not text:
            return
        self.filled += 1
        is_boolean = text.lower() in _SPELLINGS[0]
        self.booleans += is_boolean
        self.numeric += is_boolean or _LOOSE.fullmatch(text) is not None
        if not self.forms:
            return
        point = _POINT.fullmatch(text)
        if point is not None and self.digits is None:
            self.digits = len(point[1])
        self.forms &= _forms(text, self.digits)
        if not self.forms:
            self.odd, self.odd_line = text, line

    @property
    def kind(self) -> ColumnType | None:
        if not self.filled or not self.forms:
            return None
        return "boolean" if self.forms <= {"0", "1", "2"} else "number"

    @property
    def is_doubtful(self) -> bool:
        return self.kind is None and 2 * self.numeric > self.filled


def _forms(text: str, digits: int | None) -> set[str]:
    """Return the notations of numbers or booleans in which a cell is written, such as ``whole`` or ``fixed``.

    Within one notation, two different texts never have the same value. ``digits`` is the number of digits after the
    point that ``fixed`` requires.
    """
    if _WHOLE.fullmatch(text):
        return {"whole", "shortest"} if -(2**63) <= int(text) < 2**63 else set()
    if point := _POINT.fullmatch(text):
        is_exact = len(text.lstrip("-0.").replace(".", "")) <= _EXACT_DIGITS
        forms = {"fixed"} if is_exact and len(point[1]) == digits else set[str]()
        if is_exact or repr(float(text)) == text:
            forms |= {"shortest"} if not text.endswith("0") else set()
            forms |= {"points"} if not text.endswith("0") or len(point[1]) == 1 else set()
        return forms
    if "e" in text and _LOOSE.fullmatch(text) and repr(float(text.replace(",", "."))) == text:
        return {"shortest", "points"}
    return {str(number) for number, words in enumerate(_SPELLINGS) if text in words}


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())


def _number(text: str, *, has_comma: bool) -> int | float | None:
    if not _LOOSE.fullmatch(text) or ("," in text and not has_comma):
        return None
    written = text.replace(",", ".")
    if any(mark in written for mark in ".eE"):
        number = float(written)
        return number if math.isfinite(number) else None
    return int(written) if -(2**63) <= int(written) < 2**63 else None


def _delimited(header: str, path: Path, options: ReaderOptions, required: Collection[str]) -> CsvForm:
    """Return the form with its delimiter: from the options, from the mark (``sep=``), or else the most suitable one."""
    mark = re.fullmatch(r'"?sep=(.)"?\s*', header)
    if mark is not None or options.delimiter is not None:
        delimiter = options.delimiter or (mark[1] if mark else ",")
        return CsvForm(delimiter=delimiter, has_mark=mark is not None, types={}, options=options)
    names = {sign: next(csv.reader([header], delimiter=sign), []) for sign in DELIMITERS if sign in header}
    needed = {sign: len(set(required).intersection(columns)) for sign, columns in names.items()}
    best = [sign for sign, count in needed.items() if count == max(needed.values())]
    if len(best) > 1:
        raise EventFileError(
            f"{path}: header: columns may be separated by {' or '.join(DELIMITERS[sign] for sign in best)}; say which "
            "with --delimiter",
            file=str(path),
        )
    return CsvForm(delimiter=best[0] if best else ",", has_mark=False, types={}, options=options)


def _columns(path: Path, form: CsvForm, time: str | None) -> tuple[Sequence[_Column], set[str]]:
    """Return the statistics of all columns, and the orders of day and month in dates that have only one meaning.

    Damage of the file ends the examination.
    """
    columns: list[_Column] = []
    orders: set[str] = set()
    place: int | None = None
    try:
        with open_events(path, form.options) as stream:
            for line, row in form.rows(stream, path):
                if not columns:
                    columns = [_Column(name) for name in row]
                    place = row.index(time) if time in row else None
                    continue
                for column, text in zip(columns, row, strict=False):
                    column.add(text, line)
                if place is not None and place < len(row) and (date := slashed_date(row[place])):
                    orders.add(date_order(*date) or "")
    except EventFileError:
        return columns, orders  # reading the rows reports the damage later, after the intact rows
    return columns, orders - {""}


def _dated(path: Path, options: ReaderOptions, orders: set[str]) -> ReaderOptions:
    if options.clock.format is not None or len(orders) != 1:
        return options
    (order,) = orders
    example = "27/06/2025" if order == DATE_ORDERS[0] else "06/27/2025"
    _notice(options, f"{path}: dates are read {order}, as some can only be read so, such as {example}")
    return replace(options, clock=replace(options.clock, format=order))


def _notice(options: ReaderOptions, text: str) -> None:
    if options.on_notice is not None:
        options.on_notice(text)

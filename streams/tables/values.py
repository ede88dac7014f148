"""Conversion of values to the type of their column: whole columns at once, or one by one to locate a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streams.errors import EventRejected
from streams.showing import shown
from streams.tables.form import VALUE_TYPES, ValueType
from streams.timestamps import parse_time

_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN: Mapping[ValueType, str] = {  # a leading zero marks an identifier
    "integer": r"^(?:0|-?[1-9][0-9]{0,17})$",
    "number": r"^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,2})?$",
    "boolean": r"^(?:true|false)$",
}
_EXAMPLES: Mapping[ValueType, str] = {
    "text": "a text",
    "integer": "a whole number of 64 bits, such as 17",
    "number": "a number, such as 17.5",
    "boolean": "true or false",
    "time": "a time, such as 2026-01-31T09:30:00Z, or a date",
}


class Unfit(ValueError):
    """A value does not have the type of its column. ``row`` is the index of the value in the column."""

    def __init__(self, row: int, value: Any, kind: ValueType) -> None:
        super().__init__(f"{shown(value)} is not {_EXAMPLES[kind]}")
        self.row = row


def type_of_texts(texts: pa.Array) -> ValueType:
    """Return the type that fits all texts of a CSV column.

    Texts with leading zeros, such as identifiers, are no numbers.
    """
    if texts.null_count < len(texts):
        for kind, form in _PLAIN.items():
            if pc.all(pc.match_substring_regex(texts, form)).as_py():
                return kind
    return "text"


def type_of_values(values: list[Any]) -> ValueType:
    """Return the type that fits all JSON values. It is text if all are null, or if they have several types."""
    types = set(map(type, values)) - {type(None)}
    if types == {bool}:
        return "boolean"
    if types and types <= {int, float}:
        return "integer" if types == {int} else "number"
    return "text"


def type_in_arrow(kind: pa.DataType) -> ValueType | None:
    """Return the table's type for a Parquet column of an Arrow type, or None if a table cannot store its values."""
    tests: Mapping[ValueType, Callable[[pa.DataType], bool]] = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "number": lambda arrow_type: pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type),
        "time": lambda arrow_type: pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type),
        "text": lambda arrow_type: (
            pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_null(arrow_type)
        ),
    }
    if pa.types.is_dictionary(kind):
        return type_in_arrow(kind.value_type)
    return next((name for name, test in tests.items() if test(kind)), None)


def of_texts(texts: pa.Array, kind: ValueType) -> pa.Array:
    """Convert the texts of a CSV column to the type ``kind``. Raises ``Unfit`` for a text of another type."""
    if kind == "text":
        return texts
    with suppress(pa.ArrowInvalid):
        if kind == "time":
            return texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        if not texts.null_count < len(texts) or pc.all(pc.match_substring_regex(texts, _PLAIN[kind])).as_py():
            return texts.cast(VALUE_TYPES[kind])
    return of_values([None if text is None else _from_text(text, kind) for text in texts.to_pylist()], kind)


def of_values(values: list[Any], kind: ValueType, *, takes_numbers: bool = False) -> pa.Array:
    """Convert JSON values to a column of the type ``kind``. Raises ``Unfit`` for a value of another type.

    ``takes_numbers`` says whether a column of texts accepts whole numbers too.
    """
    fitted_values = []
    for row, value in enumerate(values):
        fitted = None if value is None else _fitted(value, kind, takes_numbers=takes_numbers)
        if fitted is None and value is not None:
            raise Unfit(row, value, kind)
        fitted_values.append(fitted)
    return pa.array(fitted_values, VALUE_TYPES[kind])


def of_arrow(values: pa.Array, kind: ValueType) -> pa.Array:
    """Convert a Parquet column to the type ``kind``. Raises ``Unfit`` or ``ArrowInvalid`` for other values."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    value_type = type_in_arrow(values.type)
    if value_type == "text":
        return of_texts(_in_utf8(values.cast(pa.string())), kind)
    if kind == "time":
        return values.cast(pa.timestamp("us")).cast(pa.int64()) if value_type == "time" else values.cast(pa.int64())
    if value_type == "time" or (
        value_type != kind and (value_type, kind) not in (("integer", "number"), ("integer", "text"))
    ):
        raise pa.ArrowInvalid(f"values are of the type {values.type}, the column is of the type {kind}")
    numbers = values.cast(VALUE_TYPES[kind], safe=not pa.types.is_decimal(values.type))
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, numbers.type)) if kind == "number" else numbers


def _in_utf8(texts: pa.Array) -> pa.Array:
    """Return texts if they are UTF-8. Raises ``Unfit`` for other bytes, which Parquet permits."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(texts.cast(pa.binary()).to_pylist()):
            if value is not None and "\ufffd" in value.decode(errors="replace"):
                raise Unfit(row, value, "text") from None
        raise
    return texts


def _from_text(text: str, kind: ValueType) -> Any:
    """Convert a CSV text to the type ``kind``. Return the text unchanged if it does not have this type."""
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _fitted(value: Any, kind: ValueType, *, takes_numbers: bool) -> Any:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        value, is_integer = int(value), True
    match kind:
        case "text":
            return str(value) if isinstance(value, str) or (takes_numbers and is_integer) else None
        case "integer":
            return value if is_integer and value in _INT64 else None
        case "number":
            number = float(value) if (is_integer and abs(value) < 10**300) or isinstance(value, float) else np.inf
            return number if np.isfinite(number) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "time":
            with suppress(EventRejected):
                is_date = isinstance(value, str) and _DATE.fullmatch(value)
                return parse_time(f"{value}T00:00:00Z" if is_date else value)
            return None

"""Conversion of Arrow columns to JSON text, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streams.columns.arrow_columns import column_of
from streams.columns.texts import joined_texts, json_contents, json_text, pieces_of, time_texts
from streams.timestamps import format_time

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


def json_objects(columns: Sequence[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """Return one JSON object per row as bytes. ``columns`` are the names of members with their columns of values."""
    if not columns:
        borders = np.arange(0, 2 * rows + 1, 2, dtype=np.int32)
        return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(borders), pa.py_buffer(b"{}" * rows)])
    parts: list[pa.Array | str] = []
    for number, (name, values) in enumerate(columns):
        parts += [f"{',' if number else '{'}{json_text(name)}:", json_values(values)]
    return joined_texts([*parts, "}"]).view(pa.binary())


def json_values(values: pa.Array) -> pa.Array:
    """Return the values of a column as JSON text. Nulls and numbers that are not finite become ``null``."""
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string()).fill_null("null")
    if pa.types.is_float64(kind):
        numbers = values.fill_null(np.nan).to_numpy(zero_copy_only=False)
        text = orjson.dumps(np.ascontiguousarray(numbers), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        return pieces_of(text.split(b",") if text else [], pa.string())
    if pa.types.is_string(kind):
        quoted = joined_texts(['"', json_contents(values.fill_null("")), '"']) if len(values) else values
        return pc.if_else(values.is_valid(), quoted, "null") if values.null_count else quoted
    return pieces_of(list(map(json_value, values.to_pylist())), pa.string())


def json_value(value: object) -> bytes:
    """Encode a Python value of an Arrow column as JSON.

    Times become RFC 3339 in UTC, exact decimals and bytes texts.
    """
    return orjson.dumps(value, default=_plain_value, option=_OPTIONS)


def _plain_value(value: object) -> object:
    """Convert an exact decimal, bytes or a time, for which JSON has no type, to a plain value."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return format_time((moment - _EPOCH) // _MICROSECOND)
    return value.isoformat() if isinstance(value, date | time) else str(value)


def typed_values(values: pa.Array) -> pa.Array | None:
    """Convert a column to bool, int64, float64 or string, the types of decoded attributes.

    Return None if the column has another type, so that its values must be read from JSON.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return typed_values(values.dictionary_decode())
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_boolean(kind) or pa.types.is_int64(kind) or pa.types.is_string(kind):
        return values
    if pa.types.is_integer(kind):
        return None if kind == pa.uint64() and _is_beyond(values) else values.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = values.cast(pa.float64(), safe=False)
        is_finite = pc.fill_null(pc.is_finite(numbers), fill_value=True)
        return (
            numbers
            if pc.all(is_finite).as_py() is not False
            else pc.if_else(is_finite, numbers, pa.scalar(None, numbers.type))
        )
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _as_texts(values)
    return None


def _as_texts(values: pa.Array) -> pa.Array:
    if pa.types.is_date(values.type):
        return values.cast(pa.date32(), safe=False).cast(pa.string())
    times = floored(values).fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    texts = time_texts(times) if len(values) else pa.array([], pa.string())
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def floored(times: pa.Array) -> pa.Array:
    """Convert timestamps to whole microseconds. Finer digits are cut off."""
    kind = pa.timestamp("us", times.type.tz)
    if times.type.unit != "ns":
        return times.cast(kind)
    numbers = times.cast(pa.int64())
    whole = numbers.fill_null(0).to_numpy(zero_copy_only=False) // 1_000
    cut = cast("pa.Array", column_of(whole, kind))
    return pc.if_else(numbers.is_valid(), cut, pa.scalar(None, kind)) if numbers.null_count else cut


def _is_beyond(values: pa.Array) -> bool:
    most = pc.max(values).as_py()
    return most is not None and most >= 2**63

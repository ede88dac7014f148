"""The format of stored JSON records. Each record contains its format version, and unknown versions are rejected."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Any, TypeVar, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from service.errors import RecordFormatError

FORMAT_VERSION = 1

_Record = TypeVar("_Record")


def encode(**fields: Any) -> bytes:
    """Encode a record as JSON, with its format version."""
    return orjson.dumps({"format": FORMAT_VERSION, **fields})


def decode(body: bytes, title: str) -> dict[str, Any]:
    """Decode a record and remove its format version.

    Raise ``RecordFormatError`` if the record is damaged or has another format version.
    """
    try:
        record = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RecordFormatError(f"the stored record of {title} is damaged: {error}") from error
    version = record.pop("format", None) if isinstance(record, dict) else None
    if version != FORMAT_VERSION:
        raise RecordFormatError(
            f"the stored record of {title} has format {version!r}; this release reads {FORMAT_VERSION}", found=version
        )
    assert isinstance(record, dict)
    return record


def read_record(form: type[_Record], body: bytes, title: str, **defaults: Any) -> _Record:
    """Decode a record into the dataclass ``form``, including nested dataclasses and tuples.

    ``defaults`` has values for members that older records lack. They take precedence over the defaults of ``form``.
    Raise ``RecordFormatError`` if the record is damaged or has unknown members.
    """
    fields = {**defaults, **decode(body, title)}
    if unknown := sorted(fields.keys() - {member.name for member in dataclass_fields(cast(Any, form))}):
        raise RecordFormatError(
            f"the stored record of {title} has members that this release does not know: {', '.join(unknown)}; a later "
            "release has written it"
        )
    try:
        record: _Record = _reader(cast(Any, form)).validate_python(fields)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise RecordFormatError(f"the stored record of {title} is damaged: {place}: {fault['msg']}") from error
    return record


@cache
def _reader(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)

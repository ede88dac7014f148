"""The format of stored JSON records: each record names its format version, and unknown versions are refused."""

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
    """Encode a record as JSON, together with its format version."""
    return orjson.dumps({"format": FORMAT_VERSION, **fields})


def decode(body: bytes, title: str) -> dict[str, Any]:
    """Decode a record, without its format version; ``RecordFormatError`` if it is damaged or has another version."""
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
    """Read a record as the dataclass ``form``, with its nested dataclasses and tuples; raises ``RecordFormatError``.

    ``defaults``: values of members that older records lack, where they differ from the defaults of the dataclass.
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

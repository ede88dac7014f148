"""The form of stored JSON records: each names its format version, and unknown versions are refused."""

from __future__ import annotations

from typing import Any

import orjson

from service.errors import RecordFormatError

FORMAT_VERSION = 1


def encode(**fields: Any) -> bytes:
    """Encode a record, its format version first."""
    return orjson.dumps({"format": FORMAT_VERSION, **fields})


def decode(body: bytes, what: str) -> dict[str, Any]:
    """Read a record without its format version; ``RecordFormatError`` names ``what`` is damaged or unknown."""
    try:
        record = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RecordFormatError(f"the stored record of {what} is damaged: {error}") from error
    found = record.pop("format", None) if isinstance(record, dict) else None
    if found != FORMAT_VERSION:
        raise RecordFormatError(
            f"the stored record of {what} has format {found!r}; this release reads {FORMAT_VERSION}", found=found
        )
    assert isinstance(record, dict)
    return record

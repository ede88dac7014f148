"""The form of stored JSON records: each names its format version, and unknown versions are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson

from service.errors import RecordFormatError

FORMAT_VERSION = 1

_Record = TypeVar("_Record")


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


def surplus(known: Sequence[_Record], kept: int, is_over: Callable[[_Record], bool]) -> list[_Record] | None:
    """The oldest ended records (``is_over``) to remove before another is stored; None if too few have ended."""
    wanted = max(0, len(known) - kept + 1)
    over = [record for record in known if is_over(record)][:wanted]
    return over if len(over) == wanted else None

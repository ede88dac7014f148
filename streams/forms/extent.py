"""Limits of the external forms of events: how deep values are nested, and 64 bits for integers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import orjson

from streams.errors import EventRejected

_DEEPEST = 100
_LEAST, _MOST = -(2**63), 2**63 - 1
_NINES = bytes.maketrans(b"012345678", b"9" * 9)
_LONG_INTEGER = b"9" * 19
_MOST_CHARACTERS = 20  # an integer of 64 bits with its sign


def decode_json(text: bytes) -> object:
    """Decode a JSON text. Integers beyond 64 bits remain integers, so that ``check_extent`` can reject them.

    A text that is not JSON raises ``orjson.JSONDecodeError``.
    """
    value: object = orjson.loads(text)  # converts integers beyond 64 bits to floats
    if not has_long_integer(text):
        return value
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:  # too deep for json; ``check_extent`` checks the depth
        return value


def has_long_integer(text: bytes) -> bool:
    """Return whether a JSON text may contain integers beyond 64 bits."""
    return _LONG_INTEGER in text.translate(_NINES)


def check_extent(value: object) -> None:
    """Reject a value that is nested too deeply or contains an integer beyond int64.

    The check precedes all code that recurses into the value. The message of ``EventRejected`` names the member.
    """
    level, depth = [value], 1
    while level:
        below: list[object] = []
        for item in level:
            if isinstance(item, dict | list):
                if depth > _DEEPEST:
                    raise EventRejected(f"the event is nested more than {_DEEPEST} levels deep; send a flatter one")
                below.extend(item.values() if isinstance(item, dict) else item)
            elif isinstance(item, int) and not _LEAST <= item <= _MOST:
                place = next((path for path in _far(value, "", depth) if path), "")
                raise EventRejected(
                    f"the event contains an integer beyond 64 bits{f' in {place}' if place else ''}: at most {_MOST} "
                    "can be compared exactly; send it as a text",
                    field=place,
                )
        level, depth = below, depth + 1


def _integer(digits: str) -> int:
    """Convert the digits of a JSON integer.

    Return 2**63, which is out of range, for more digits than Python converts.
    """
    return int(digits) if len(digits) <= _MOST_CHARACTERS else _MOST + 1


def _far(value: object, path: str, depth: int) -> Iterator[str]:
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        yield path
    if depth and isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _far(item, f"{path}.{name}" if path else str(name), depth - 1)

"""The faults of a request that does not have its form: each with its place and, in words, what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.wire import LONGEST_NAME, MOST_FAULTS

_PREFIXES = ("Value error, ", "Assertion failed, ")
_SHOULD_BE = "Input should be "
_LACKS = "Field required"
_OBJECT = "a valid dictionary or "


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault; ``where`` is the path of the value, such as ``body.lateness`` or ``query.limit``."""

    where: str
    message: str


def form_faults(found: Sequence[Any], body: object) -> list[Fault]:
    """The faults that a model found in a request, once each; the alternatives of one value are one fault.

    ``body`` is the value that was read: parts of a place that it does not have are names of the models, and are left
    out.
    """
    placed = [(tuple(_place(fault, body)), str(fault["msg"])) for fault in found[:MOST_FAULTS]]
    by_place: dict[tuple[str, ...], list[str]] = {}
    for place, message in dict.fromkeys(placed):
        by_place.setdefault(place, []).append(_plain(message))
    deeper = {place[:length] for place in by_place for length in range(1, len(place))}
    return [
        Fault(".".join(place), _joined(messages))
        for place, messages in by_place.items()
        if place not in deeper or not all(message.startswith(_SHOULD_BE) for message in messages)
    ]


def _place(fault: Mapping[str, Any], body: object) -> Iterator[str]:
    """The parts of a place that exist in the request, and the name of a missing member."""
    source, *parts = fault["loc"]
    yield str(source)
    if source != "body":
        yield from map(str, parts)
        return
    value = body
    for part in parts:
        if _has(value, part):
            value = value[part]  # type: ignore[index] # it has the part
        elif fault["msg"] != _LACKS or part != parts[-1]:
            continue
        yield str(part)[:LONGEST_NAME]


def _has(value: object, part: str | int) -> bool:
    """Whether a JSON value has a member or an item."""
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _plain(message: str) -> str:
    """A message without the words of the validator."""
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    if message.startswith(_SHOULD_BE + _OBJECT):
        return f"{_SHOULD_BE}an object"
    message = message.partition(", unable to parse")[0]
    return message.replace("a valid dictionary", "an object").replace("a valid list", "an array")


def _joined(messages: Sequence[str]) -> str:
    """The messages about one value; those that name an expected form are joined into one."""
    should_be = [message.removeprefix(_SHOULD_BE) for message in messages if message.startswith(_SHOULD_BE)]
    others = [message for message in messages if not message.startswith(_SHOULD_BE)]
    wanted = [_SHOULD_BE + ", or ".join(dict.fromkeys(should_be))] if should_be else []
    return "; ".join(dict.fromkeys([*others, *wanted]))

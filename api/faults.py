"""Faults of a request's form. Each fault has the place of the value and the expected form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.wire import LONGEST_NAME, MOST_FAULTS
from streams import shown

_PREFIXES = ("Value error, ", "Assertion failed, ")
_SHOULD_BE = "Input should be "
_LACKS = "Field required"
_OBJECT = "a valid dictionary or "


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a request. ``where`` is the path of the faulty value, such as ``body.lateness`` or ``query.limit``."""

    where: str
    message: str


def form_faults(faults: Sequence[Any], body: object) -> list[Fault]:
    """Convert a model's validation errors to faults. Errors about the same value become one fault.

    ``body`` is the parsed body. Names of models in an error's location are left out, because they are not in the body.
    If a part of a value is faulty, errors about the expected form of the whole value are dropped.
    """
    placed = [(tuple(_place(fault, body)), str(fault["msg"])) for fault in faults[:MOST_FAULTS]]
    by_place: dict[tuple[str, ...], list[str]] = {}
    for place, message in dict.fromkeys(placed):
        by_place.setdefault(place, []).append(_plain(message))
    inputs = {tuple(_place(fault, body)): fault.get("input") for fault in faults[:MOST_FAULTS]}
    deeper = {place[:length] for place in by_place for length in range(1, len(place))}
    return [
        Fault(".".join(place), _joined(messages) + _value_words(place, inputs[place], messages))
        for place, messages in by_place.items()
        if place not in deeper or not all(message.startswith(_SHOULD_BE) for message in messages)
    ]


def _place(fault: Mapping[str, Any], body: object) -> Iterator[str]:
    """Yield the path of a faulty value in the request. The last part may be the name of a missing member."""
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
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _plain(message: str) -> str:
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    if message.startswith(_SHOULD_BE + _OBJECT):
        return f"{_SHOULD_BE}an object"
    message = message.partition(", unable to parse")[0]
    return message.replace("a valid dictionary", "an object").replace("a valid list", "an array")


def _value_words(place: tuple[str, ...], value: object, messages: Sequence[str]) -> str:
    """Return a wrong value of a query parameter in words. The text is empty for bodies and header fields."""
    is_repeated = place[0] == "query" and isinstance(value, str) and messages[0].startswith(_SHOULD_BE)
    return f", got {shown(value)}" if is_repeated else ""


def _joined(messages: Sequence[str]) -> str:
    should_be = [message.removeprefix(_SHOULD_BE) for message in messages if message.startswith(_SHOULD_BE)]
    others = [message for message in messages if not message.startswith(_SHOULD_BE)]
    expectations = [_SHOULD_BE + ", or ".join(dict.fromkeys(should_be))] if should_be else []
    return "; ".join(dict.fromkeys([*others, *expectations]))

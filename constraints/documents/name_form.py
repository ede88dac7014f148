"""Names of events in documents: plain types, and types with a condition.

``Quote [price > 1000]`` is a *symbol*: an event of type Quote whose price exceeds 1000. Any name with a bracket after
the type is read as a symbol. So a plain type with a bracket in its name is written ``{type: "Order [old]"}``, or in
backticks if the constraint is a text. Different spellings of a symbol become one name, with the condition in its normal
form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nfa import PatternRefused, Symbol, parse_step
from streams import Bare, DocumentPath

MAX_NAME = 500
MAX_SYMBOL = 2_000

_TYPE_KEY = "type"


@dataclass(frozen=True, slots=True)
class Verbatim:
    """An event type in backticks, which is never parsed as a type with a condition."""

    name: str


class Misread(Exception):
    """A problem in a document, raised before its place in the document is known."""


PlacedProblem: TypeAlias = tuple[DocumentPath, str]


class NameReader:
    """Reads the names of one document; ``symbols`` are the symbols read so far, by name."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self._types: set[str] = set()
        self._read: dict[str, str] = {}

    def name(self, value: object) -> str:
        """Return the name of the event type or symbol in a document's value."""
        if isinstance(value, str) and looks_like_symbol(value):
            if value not in self._read:
                self._read[value] = self._symbol(value)
            return self._read[value]
        return self.type(value)

    def plain_type(self, value: object) -> str:
        """Return the event type in a document's value. A symbol is rejected, because no condition is allowed there."""
        if isinstance(value, str) and looks_like_symbol(value):
            raise Misread(
                f"an end event is an event type without a condition, got {excerpt(value)}; an event type that only "
                f"looks like one is written {{type: {excerpt(value)}}}"
            )
        return self.type(value)

    def type(self, value: object) -> str:
        """Return the event type in a document's value, even if it has the form of a symbol."""
        if isinstance(value, Mapping) and set(value) == {_TYPE_KEY}:
            value = value[_TYPE_KEY]
        name = checked_type(value.name if isinstance(value, Verbatim) else value)
        if name in self.symbols:
            raise Misread(
                f"{excerpt(name)} is an event type here and a type with a condition elsewhere; rename the type"
            )
        self._types.add(name)
        return name

    def _symbol(self, text: str) -> str:
        written = f"{text if len(text) <= 80 else f'{text[:77]}...'}"
        try:
            step = parse_step(_step_text(text))
        except PatternRefused as error:
            advice = error.message.partition(": ")[2]
            raise Misread(
                f"cannot read {excerpt(written)} as an event type with a condition on its attributes: {advice}; "
                f"an event type that only looks like one is written {{type: {excerpt(written)}}}"
            ) from None
        symbol = Symbol(step)
        if symbol.name in self._types:
            raise Misread(
                f"{excerpt(symbol.name)} is a type with a condition here and an event type elsewhere; rename the type"
            )
        self.symbols[symbol.name] = symbol
        return symbol.name


def looks_like_symbol(name: str) -> bool:
    """Check whether a name is read as a type with a condition, that is, has a bracket after some text."""
    event_type, bracket, _ = name.partition("[")
    return bool(bracket and event_type.strip())


def written_name(name: str, symbols: Mapping[str, Symbol]) -> object:
    """Write a name of a set in the form that ``NameReader.name`` reads."""
    return {_TYPE_KEY: name} if name not in symbols and looks_like_symbol(name) else name


def checked_type(value: object) -> str:
    """Return an event type unchanged, or raise ``Misread`` if it is not valid."""
    if not isinstance(value, str):
        raise Misread(f"an event type is a text, got {excerpt(value)}; put it in quotes")
    if not value.strip() or len(value) > MAX_NAME or _is_broken(value):
        raise Misread(f"an event type has 1 to {MAX_NAME} characters of valid Unicode, got {excerpt(value)}")
    return value


def excerpt(value: object) -> str:
    """Return a value of a document as JSON or YAML text, truncated, for messages."""
    if isinstance(value, Verbatim):
        value = value.name
    try:
        text = value.written if isinstance(value, Bare) else json.dumps(value, default=str)
    except (ValueError, RecursionError):  # a number of thousands of digits, or recursive lists
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def whole_number(value: object) -> int | None:
    """Return a value as a whole number, or None for other values, including quoted texts."""
    number = value.value if isinstance(value, Bare) else value
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _step_text(text: str) -> str:
    if len(text) > MAX_SYMBOL or _is_broken(text):
        raise Misread(
            f"an event type with its condition has at most {MAX_SYMBOL} characters of valid Unicode, "
            f"got {excerpt(text)}"
        )
    written, _, condition = text.partition("[")
    name = written.strip()
    if len(name) > 2 and name[0] == name[-1] == "`":
        name = name[1:-1]
    if "`" in name:
        raise Misread(f"an event type with back quotes in its name has no condition, got {excerpt(text)}")
    return f"`{checked_type(name)}` [{condition}"


def _is_broken(name: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in name)

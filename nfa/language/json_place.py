"""A value of a JSON document with the path to it: every refusal names the place and the expected value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from nfa.errors import PatternRefused
from nfa.language.words import is_writable, listed
from nfa.syntax import NOWHERE


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """A value of a document and the path that leads to it."""

    value: object
    path: str = ""

    def refuse(self, message: str) -> NoReturn:
        """Refuse the value with the code ``json``."""
        raise PatternRefused("json", f"at {self.path or '/'}: {message}", NOWHERE)

    def expect(self, wanted: str) -> NoReturn:
        self.refuse(f"expected {wanted}, found {_shown(self.value)}")

    def fields(self, required: str, optional: str = "") -> dict[str, JsonPlace]:
        """The fields of an object; names are given as words of a text."""
        if not isinstance(self.value, dict):
            self.expect("an object")
        names = [*required.split(), *optional.split()]
        for name in self.value:
            if name not in names:
                self.refuse(f"the field {_shown(name)} is not known; there are {', '.join(names)}")
        for name in required.split():
            if name not in self.value:
                self.refuse(f"the field {name} is missing")
        return {name: JsonPlace(value, f"{self.path}/{name}") for name, value in self.value.items()}

    def entries(self, least: int = 1) -> list[JsonPlace]:
        if not isinstance(self.value, list):
            self.expect("a list")
        if len(self.value) < least:
            self.expect(f"a list of at least {least}")
        return [JsonPlace(value, f"{self.path}/{number}") for number, value in enumerate(self.value)]

    def name(self) -> str:
        """A name that can be written in back quotes."""
        if not isinstance(self.value, str) or not is_writable(self.value):
            self.expect("a name: a text that is not empty and holds no back quote")
        return self.value

    def whole(self, least: int, most: int) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value <= most:
            self.expect(f"a whole number from {least} to {most}")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.expect("true or false")
        return self.value

    def choice(self, words: tuple[str, ...]) -> str:
        if not isinstance(self.value, str) or self.value not in words:
            self.expect(listed(list(words)))
        return self.value


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

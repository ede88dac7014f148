"""Reads untrusted JSON or YAML as plain entries, each with its line.

Only texts, lists and mappings are constructed. Anchors, aliases, tags and repeated keys are rejected: aliases can make
a short text huge, repeated keys would lose parts silently. Time and memory are bounded by the limits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import yaml

from workflows.errors import ModelRefused

MAX_BYTES = 1_000_000
MAX_DEPTH = 100
MAX_ENTRIES = 100_000
MAX_PROBLEMS = 100

_FAST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as written, without quotes; its line counts from 1, 0 if unknown.

    A quoted value can only be a text. ``is_text``: the scalar is a text, quoted or not; ``No`` and ``1.0`` are not.
    ``is_null``: the scalar is null or empty.
    """

    text: str
    line: int
    is_quoted: bool = True
    is_text: bool = True
    is_null: bool = False

    @property
    def number(self) -> float | None:
        """The finite number that is written; None for anything else."""
        if self.is_quoted:
            return None
        try:
            number = float(self.text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """A list."""

    items: tuple[Entry, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping; keys are distinct."""

    pairs: tuple[tuple[Scalar, Entry], ...]
    line: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key.text for key, _ in self.pairs)

    def get(self, name: str) -> Entry | None:
        return next((value for key, value in self.pairs if key.text == name), None)


Entry: TypeAlias = Scalar | Listing | Mapped


def read_entries(content: bytes) -> Entry:
    """The entries of a JSON or YAML text in UTF-8; a refusal names all places by their lines."""
    text = _decoded(content)
    found = _from_json(text) if text.lstrip()[:1] in ("{", "[") else None
    entry = found if found is not None else _Composer(text).compose()
    problems = [problem for _, problem in zip(range(MAX_PROBLEMS), _repetitions(entry), strict=False)]
    if problems:
        raise ModelRefused(problems)
    return entry


def at_line(line: int) -> str:
    """A line as a place in words; empty if unknown."""
    return f"line {line}" if line else ""


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise ModelRefused([("", f"the text has {len(content):,} bytes; at most {MAX_BYTES:,} are read")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelRefused(
            [("", f"this is not UTF-8 text: byte {error.start} is {content[error.start]:#x}")]
        ) from error
    if not text.strip():
        raise ModelRefused([("", "the text is empty")])
    return text


def _too_deep(line: int) -> NoReturn:
    raise ModelRefused([(at_line(line), f"entries are nested more than {MAX_DEPTH} deep")])


def _too_many(line: int) -> NoReturn:
    raise ModelRefused([(at_line(line), f"the text has more than {MAX_ENTRIES:,} entries")])


class _Composer:
    """Builds entries from single events of the parser, so that limits apply before memory is used."""

    def __init__(self, text: str) -> None:
        self._events = yaml.parse(text, Loader=_FAST_LOADER)
        self._resolver = yaml.SafeLoader("")
        self._count = 0
        self._problems: list[tuple[str, str]] = []

    def compose(self) -> Entry:
        try:
            documents = [self._entry(self._next(), 0) for event in self._events if _begins_document(event)]
        except yaml.YAMLError as error:
            raise ModelRefused([*self._problems, _syntax_problem(error)]) from error
        if self._problems:
            raise ModelRefused(self._problems)
        if len(documents) != 1:
            raise ModelRefused([("", f"the text has {len(documents)} documents; one is read")])
        return documents[0]

    def _next(self) -> Any:
        self._count += 1
        event = next(self._events)
        if self._count > MAX_ENTRIES:
            _too_many(_line(event))
        return event

    def _entry(self, event: Any, depth: int) -> Entry:
        line = _line(event)
        if depth > MAX_DEPTH:
            _too_deep(line)
        self._refuse(event, line)
        if isinstance(event, yaml.SequenceStartEvent):
            return Listing(tuple(self._items(depth)), line)
        if isinstance(event, yaml.MappingStartEvent):
            items = list(self._items(depth))
            return Mapped(
                tuple((self._key(key), value) for key, value in zip(items[::2], items[1::2], strict=True)), line
            )
        if isinstance(event, yaml.AliasEvent):
            return Scalar("", line)
        return self._scalar(event, line)

    def _items(self, depth: int) -> Iterator[Entry]:
        while not isinstance(event := self._next(), yaml.CollectionEndEvent):
            yield self._entry(event, depth + 1)

    def _scalar(self, event: Any, line: int) -> Scalar:
        if not event.implicit[0]:
            return Scalar(event.value, line)
        tag = self._resolver.resolve(yaml.ScalarNode, event.value, (True, False))  # type: ignore[no-untyped-call]  # the stubs leave it open
        return Scalar(event.value, line, is_quoted=False, is_text=tag == _TEXT, is_null=tag == _NULL)

    def _key(self, key: Entry) -> Scalar:
        if isinstance(key, Scalar):
            return key
        self._add(key.line, "a key is a text, not a list or a mapping")
        return Scalar("", key.line)

    def _refuse(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            self._add(line, "anchors and aliases are not allowed; repeat the entry")
        if getattr(event, "tag", None) is not None:
            self._add(line, f"the tag {event.tag!r} is not allowed; leave it out")

    def _add(self, line: int, message: str) -> None:
        self._problems.append((at_line(line), message))
        if len(self._problems) >= MAX_PROBLEMS:
            raise ModelRefused(self._problems)


def _begins_document(event: Any) -> bool:
    return isinstance(event, yaml.DocumentStartEvent)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _syntax_problem(error: yaml.YAMLError) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return at_line(0 if mark is None else mark.line + 1), f"this is neither JSON nor YAML: {what}"


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, including repeated ones."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A JSON number as written."""

    written: str


def _from_json(text: str) -> Entry | None:
    """The entries of a JSON text, with lines from the YAML parser; None if it is not JSON."""
    try:
        value = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except RecursionError:
        _too_deep(0)
    except ValueError:
        return None
    try:
        twin = _Composer(text).compose()
    except ModelRefused:
        twin = None
    return _JsonReader().entry(value, twin, 0)


class _JsonReader:
    """Converts JSON values to entries; each ``twin`` is the same value as read by YAML, if possible."""

    def __init__(self) -> None:
        self._count = 0

    def entry(self, value: object, twin: Entry | None, depth: int) -> Entry:
        line = 0 if twin is None else twin.line
        self._count += 1
        if depth > MAX_DEPTH:
            _too_deep(line)
        if self._count > MAX_ENTRIES:
            _too_many(line)
        if isinstance(value, _Pairs):
            return self._mapped(value, twin, depth)
        if isinstance(value, list):
            items = twin.items if isinstance(twin, Listing) and len(twin.items) == len(value) else (None,) * len(value)
            return Listing(
                tuple(self.entry(child, item, depth + 1) for child, item in zip(value, items, strict=True)), line
            )
        if isinstance(value, str):
            return Scalar(value, line)
        written = value.written if isinstance(value, _Number) else json.dumps(value)
        return Scalar(written, line, is_quoted=False, is_text=False, is_null=value is None)

    def _mapped(self, value: _Pairs, twin: Entry | None, depth: int) -> Mapped:
        if not isinstance(twin, Mapped) or len(twin.pairs) != len(value):
            return Mapped(tuple((Scalar(key, 0), self.entry(child, None, depth + 1)) for key, child in value), 0)
        return Mapped(
            tuple(
                (Scalar(key, other.line), self.entry(child, item, depth + 1))
                for (key, child), (other, item) in zip(value, twin.pairs, strict=True)
            ),
            twin.line,
        )


def _repetitions(entry: Entry) -> Iterator[tuple[str, str]]:
    if isinstance(entry, Listing):
        for item in entry.items:
            yield from _repetitions(item)
    elif isinstance(entry, Mapped):
        known: set[str] = set()
        for key, value in entry.pairs:
            if key.text in known:
                yield at_line(key.line), f"the key {key.text!r} is given twice; give it once"
            known.add(key.text)
            yield from _repetitions(value)

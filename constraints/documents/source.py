"""Reads the text of an uploaded document, JSON or YAML, into plain values, and maps these back to line numbers.

YAML yields only lists, mappings and texts. Anchors, aliases, tags and repeated keys are rejected: aliases can make a
short text huge, repeated keys would lose constraints silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import yaml

from constraints.errors import InvalidConstraints, Problem

Path: TypeAlias = tuple["str | int", ...]

MAX_DEPTH = 100

_FAST_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {f"{_STANDARD}{name}" for name in ("str", "null", "bool", "int", "float", "timestamp", "value", "seq", "map")}


_PAIR = r"\\u[dD][89abAB]..\\u[dD][c-fC-F].."
_SURROGATES = re.compile(rf"{_PAIR}|(\\(?:u|U0000)[dD][89a-fA-F]..)")


@dataclass(frozen=True, slots=True)
class Bare:
    """A YAML scalar other than a text, as written: ``No`` is a truth value in YAML, ``1.0`` a number."""

    written: str

    def __str__(self) -> str:
        return self.written


class _NestedTooDeeply(Exception):
    """A YAML text has more than ``MAX_DEPTH`` levels."""


def read_text(text: str) -> object:
    """The plain value of a JSON or YAML text."""
    value = _read(text)
    escapes = list(_SURROGATES.finditer(text))
    if escapes and _has_half_character(value):
        first = next((escape for escape in escapes if escape[1]), escapes[0])
        line = text.count("\n", 0, first.start()) + 1
        message = f"{first[0]} is half a character, a lone surrogate; write the whole character"
        raise InvalidConstraints((Problem(where="", line=line, message=message),))
    return value


def _read(text: str) -> object:
    if not text.strip():
        raise InvalidConstraints((Problem(where="", message="the document is empty; list at least one constraint"),))
    try:
        if text.lstrip()[0] in "[{":
            try:
                return json.loads(text, object_pairs_hook=_without_repetition)
            except InvalidConstraints as error:
                raise InvalidConstraints(_lined(error.problems, text)) from None
            except ValueError:
                pass  # YAML may start with a bracket too
        return _read_yaml(text)
    except (RecursionError, _NestedTooDeeply):
        raise InvalidConstraints((Problem(where="", message="the document is nested too deeply"),)) from None


def lines_of(text: str, paths: Iterable[Path]) -> list[int | None]:
    """The line, from 1, on which the value at each path begins; None if unknown."""
    root = _composed(text)
    nodes = [reduce(_child, path, root) for path in paths]
    return [None if node is None else node.start_mark.line + 1 for node in nodes]


def _has_half_character(value: object) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += [*found, *found.values()]
        elif isinstance(found, list):
            waiting += found
        elif isinstance(found, str) and any("\ud800" <= char <= "\udfff" for char in found):
            return True
    return False


def _composed(text: str) -> yaml.Node | None:
    """The YAML nodes of a text that was read as JSON; None if it is not YAML, for example because of tabs."""
    try:
        return _compose(text)
    except (yaml.YAMLError, RecursionError, _NestedTooDeeply):
        return None


def _compose(text: str) -> yaml.Node | None:
    """The nodes of a text, by the fast loader; rejected texts go to the slow one, whose messages are better."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_FAST_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:  # the fast loader would recurse until its stack overflows
                raise _NestedTooDeeply
        return yaml.compose(text, Loader=_FAST_LOADER)
    except (yaml.YAMLError, UnicodeEncodeError):
        return yaml.compose(text, Loader=yaml.SafeLoader)


def _lined(repetitions: tuple[Problem, ...], text: str) -> tuple[Problem, ...]:
    """The keys that a JSON text repeats, with their lines if known."""
    return tuple(_refusals(_composed(text), set())) or repetitions


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child: yaml.Node = node.value[step]
        return child
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise InvalidConstraints(tuple(_repetition(key, None) for key in repeated))
    return value


def _repetition(key: str, line: int | None) -> Problem:
    return Problem(where="", line=line, message=f"the key {key!r} is given twice; give it once, with all its entries")


def _read_yaml(text: str) -> object:
    try:
        root = _compose(text)
    except yaml.YAMLError as error:
        raise InvalidConstraints((_syntax_problem(error),)) from error
    problems = tuple(_refusals(root, set()))
    if problems:
        raise InvalidConstraints(problems)
    return _plain(root)


def _plain(node: yaml.Node | None) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(child) for key, child in node.value}
    if node is None or node.tag == f"{_STANDARD}null":
        return None
    return node.value if node.tag == f"{_STANDARD}str" else Bare(node.value)


def _syntax_problem(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    message = f"this is neither JSON nor YAML: {what}"
    return Problem(where="", line=None if mark is None else mark.line + 1, message=message)


def _refusals(node: yaml.Node | None, met: set[int]) -> Iterator[Problem]:
    """Problems of a node: aliases, which are nodes met twice, tags, and keys that are lists or repeated."""
    if node is None:
        return
    line = node.start_mark.line + 1
    if id(node) in met:
        yield Problem(where="", line=line, message="anchors and aliases are not allowed; repeat the entry")
        return
    met.add(id(node))
    if node.tag not in _TAGS:
        yield Problem(where="", line=line, message=f"the tag {node.tag!r} is not allowed; leave it out")
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _refusals(child, met)
    elif isinstance(node, yaml.MappingNode):
        yield from _key_refusals([key for key, _ in node.value])
        for _, child in node.value:
            yield from _refusals(child, met)


def _key_refusals(keys: Sequence[yaml.Node]) -> Iterator[Problem]:
    known: set[str] = set()
    for key in keys:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            yield Problem(where="", line=line, message="a key is a text, not a list or a mapping")
        elif key.value in known:
            yield _repetition(key.value, line)
        else:
            known.add(key.value)

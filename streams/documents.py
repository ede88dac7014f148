"""Reads JSON or YAML documents that people write: their plain values, and the line on which each part begins.

The texts are untrusted, so their size and depth are bounded. Anchors and aliases are refused, because they can expand a
short text enormously. Repeated keys are refused, because all values but the last would be lost silently. Tags are
refused, too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, TypeAlias

import yaml

DocumentPath: TypeAlias = tuple["str | int", ...]
"""The path to a part of a document: keys of mappings, and indices of lists from 0."""

MAX_DEPTH = 100
MAX_PROBLEMS = 100

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD = "tag:yaml.org,2002:"
TEXT_TAG, NULL_TAG, _BARE_TAG = (f"{_STANDARD}{name}" for name in ("str", "null", "value"))
_TAGS = {None, *(f"{_STANDARD}{name}" for name in "str null bool int float timestamp value".split())}
_HALF = re.compile(r"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F]..)")


class UnreadableText(Exception):
    """A text is not a JSON or YAML document. ``problems`` are pairs of a line (or None) and the fault in words."""

    def __init__(self, *problems: tuple[int | None, str]) -> None:
        super().__init__(*problems[:MAX_PROBLEMS])
        self.problems = problems[:MAX_PROBLEMS]


@dataclass(frozen=True, slots=True)
class Bare:
    """An unquoted scalar of YAML, or a number of JSON, as it was written, such as ``No`` or ``1e3``.

    A quoted text and null are not ``Bare``.
    """

    written: str

    def __str__(self) -> str:
        return self.written

    @property
    def value(self) -> int | float | str | bool | None:
        """The value in JSON: a number, a truth value or null. Any other scalar becomes a text."""
        words = {"true": True, "false": False, "null": None, "~": None, "": None}
        if self.written.lower() in words:
            return words[self.written.lower()]
        for read in (int, float):
            with suppress(ValueError):
                return read(self.written)
        return self.written


class WrittenDocument:
    """A parsed JSON or YAML document that also knows the line on which each part begins.

    Its ``value`` consists of lists, mappings, texts, True, False, None, and ``Bare`` (an unquoted scalar as
    written).
    """

    def __init__(self, text: str, value: object, root: yaml.Node | None = None) -> None:
        self.value = value
        self._text, self._known_root = text, root
        self._known_members: dict[int, dict[str | int, yaml.Node]] = {}

    @cached_property
    def root(self) -> yaml.Node:
        """The document as YAML nodes, which have line marks.

        Nodes of a JSON text that YAML rejects, for example because of a very long key, have no line marks.
        """
        if self._known_root is not None:
            return self._known_root
        try:
            like = next(composed(_like_yaml(self._text)), None)
        except UnreadableText:
            like = None
        return _json_node(self.value, like)

    def line(self, path: DocumentPath) -> int | None:
        """Return the line, from 1, on which the value at a path begins; None if unknown."""
        node: yaml.Node | None = self.root
        for step in path:
            node = self._members(node).get(step) if isinstance(node, yaml.MappingNode) else child_node(node, step)
        return None if node is None else line_of(node)

    def _members(self, node: yaml.MappingNode) -> dict[str | int, yaml.Node]:
        """Return the values of a mapping by key, cached because every key of a large mapping may have a problem."""
        if id(node) not in self._known_members:
            self._known_members[id(node)] = {key.value: value for key, value in node.value}
        return self._known_members[id(node)]


def decoded_text(content: bytes | str, max_bytes: int) -> str:
    """Decode a document from UTF-8; raises ``UnreadableText`` if the text is empty or longer than ``max_bytes``."""
    size = len(content) if isinstance(content, bytes) else len(content.encode(errors="surrogatepass"))
    if size > max_bytes:
        raise UnreadableText((None, f"the text has {size:,} bytes; at most {max_bytes:,} are read"))
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        wrong = f"this is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}"
        raise UnreadableText((None, wrong)) from error
    if not text.strip():
        raise UnreadableText((None, "the text is empty"))
    return text


def read_document(text: str, most: int | None = None) -> WrittenDocument:
    """Read a JSON or YAML text that has exactly one document, with at most ``most`` keys and values.

    Raises:
        UnreadableText: The text is not one document. The error lists all problems found.
    """
    if text.lstrip()[:1] in ("[", "{"):
        with suppress(RecursionError, ValueError):  # maybe YAML, whose reader also finds the line of a depth error
            return _json_document(text, most)
    roots = list(composed(text, most))
    if len(roots) != 1:
        raise UnreadableText((None, f"the text has {len(roots)} documents; one is read"))
    return WrittenDocument(text, plain_value(roots[0], _as_written), roots[0])


def composed(text: str, most: int | None = None) -> Iterator[yaml.Node]:
    """Yield the root node of each document of a YAML text. Raises ``UnreadableText`` with the problems found."""
    try:
        _check_events(text, most)
        for root in yaml.compose_all(text, Loader=_LOADER):
            problems = list(_key_problems(root))
            if problems:
                raise UnreadableText(*problems)
            yield root
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        line = None if mark is None else min(mark.line, text.count("\n")) + 1  # the end of a text has no line
        raise UnreadableText((line, f"this is neither JSON nor YAML: {what}")) from error


def plain_value(node: yaml.Node, scalar: Callable[[yaml.ScalarNode], object]) -> Any:
    """Convert a node to a list, a mapping with texts as keys, or the result of ``scalar`` for a scalar node."""
    if isinstance(node, yaml.SequenceNode):
        return [plain_value(child, scalar) for child in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key.value: plain_value(child, scalar) for key, child in node.value}
    assert isinstance(node, yaml.ScalarNode)
    return scalar(node)


def child_node(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    """Return the item at an index of a list, or the value under a key of a mapping. Return None if it is absent."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        return next(iter(node.value[step : step + 1]), None)
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None


def line_of(node: yaml.Node) -> int | None:
    """Return the line on which a node begins, from 1; None if unknown."""
    return None if node.start_mark is None else node.start_mark.line + 1


_TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} deep"


def _as_written(node: yaml.ScalarNode) -> object:
    if node.tag == NULL_TAG:
        return None
    return node.value if node.tag == TEXT_TAG else Bare(node.value)


def _json_document(text: str, most: int | None) -> WrittenDocument:
    repeated: list[tuple[int | None, str]] = []

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) < len(pairs):
            times = Counter(key for key, _ in pairs)
            repeated.extend((None, _given_twice(key)) for key, number in times.items() if number > 1)
        return value

    value = json.loads(text, object_pairs_hook=members, parse_int=Bare, parse_float=Bare, parse_constant=Bare)
    level, values = [value], 1
    for _ in range(MAX_DEPTH + 1):
        values += sum(len(container) for container in level if isinstance(container, dict))  # keys
        lists = [
            container.values() if isinstance(container, dict) else container
            for container in level
            if isinstance(container, dict | list)
        ]
        level = [child for children in lists for child in children]
        values += len(level)
        if most is not None and values > most:
            raise UnreadableText((None, _too_many(most)))
    if level or repeated:
        list(composed(_like_yaml(text)))  # raises an error with line numbers if YAML finds the faults
        raise UnreadableText(*repeated, *([(None, _TOO_DEEP)] if level else []))
    half = _HALF.search(text)
    if half is not None and re.search("[\ud800-\udfff]", json.dumps(value, ensure_ascii=False, default=str)):
        line = text.count("\n", 0, half.start()) + 1
        raise UnreadableText((line, f"{half[0]} is half a character, a lone surrogate; write the whole character"))
    return WrittenDocument(text, value)


def _json_node(value: object, like: yaml.Node | None) -> yaml.Node:
    """Convert a JSON value to a YAML node. Line marks come from ``like`` wherever both have the same structure."""
    mark = None if like is None else like.start_mark
    likes = like.value if isinstance(like, yaml.CollectionNode) else ()
    likes = likes if isinstance(value, dict | list) and len(likes) == len(value) else ()
    if isinstance(value, list):
        return yaml.SequenceNode(f"{_STANDARD}seq", list(map(_json_node, value, likes or repeat(None))), mark)
    if isinstance(value, dict):
        pairs = zip(value.items(), likes or repeat((None, None)), strict=False)
        members = [
            (_json_node(key, like_key), _json_node(member, like_member))
            for (key, member), (like_key, like_member) in pairs
        ]
        return yaml.MappingNode(f"{_STANDARD}map", members, mark)
    if isinstance(value, str):
        return yaml.ScalarNode(TEXT_TAG, value, mark, style='"')
    written = value.written if isinstance(value, Bare) else json.dumps(value)
    return yaml.ScalarNode(NULL_TAG if value is None else _BARE_TAG, written, mark)


def _like_yaml(text: str) -> str:
    """Replace the parts of a JSON text that YAML refuses: tabs and escaped surrogates. Line numbers do not change."""
    return re.sub(r"\\u[dD][89a-fA-F]", r"\\u00", text.replace("\t", " "))


def _check_events(text: str, most: int | None) -> None:
    """Check depth and number of nodes, and refuse anchors, aliases and tags, before nodes are composed recursively."""
    depth, values, problems = 0, 0, list[tuple[int | None, str]]()
    event: Any
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        line = event.start_mark.line + 1
        if most is not None and values > most:
            raise UnreadableText(*problems, (line, _too_many(most)))
        if depth > MAX_DEPTH:
            raise UnreadableText(*problems, (line, _TOO_DEEP))
        if getattr(event, "anchor", None) is not None:
            problems.append((line, "anchors and aliases are not allowed; repeat the entry"))
        if getattr(event, "tag", None) not in (_TAGS if isinstance(event, yaml.ScalarEvent) else (None,)):
            problems.append((line, f"the tag {event.tag!r} is not allowed; leave it out"))
    if problems:
        raise UnreadableText(*problems)


def _key_problems(node: yaml.Node) -> Iterator[tuple[int | None, str]]:
    names: set[str] = set()
    for entry in node.value if isinstance(node, yaml.CollectionNode) else ():
        key, child = entry if isinstance(node, yaml.MappingNode) else (None, entry)
        if isinstance(key, yaml.CollectionNode):
            yield key.start_mark.line + 1, "a key is a text, not a list or a mapping"
        elif key is not None and key.value in names:
            yield key.start_mark.line + 1, _given_twice(key.value)
        elif key is not None:
            names.add(key.value)
        yield from _key_problems(child)


def _too_many(most: int) -> str:
    return f"the text has more than {most:,} keys and values"


def _given_twice(key: str) -> str:
    return f"the key {key!r} is given twice; give it once, with all its entries"

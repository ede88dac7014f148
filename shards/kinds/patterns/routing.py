"""The key by which a pattern is matched: the stream's correlation key, or a further key that the stream declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nfa import KeyMismatch, Pattern, has_key, require_own_key
from streams import StreamDeclaration, key_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedPattern:
    """A pattern with the key of its stream by which it is matched, as ``routed`` returns it.

    Attributes:
        route: Name of the further key by which the pattern is matched, or empty for the correlation key.
        finer: The pattern's finer keys, which are further attributes on which the events of a match agree.
    """

    pattern: Pattern
    declaration: StreamDeclaration
    route: str
    finer: tuple[str, ...]
    suppression: Mapping[str, Any] | None = None

    @property
    def has_whole_traces(self) -> bool:
        """Whether the pattern reads whole traces of the correlation key. Constraints apply to no other patterns."""
        return not self.route and not self.finer


def route_of(pattern: Pattern, declaration: StreamDeclaration) -> str:
    """Return the name of the further key by which a pattern is matched. It is empty for the correlation key.

    A pattern is matched by the correlation key if its ``WHERE [..]`` is missing or contains this key. Otherwise the
    first further key in ``WHERE [..]`` decides. If ``WHERE [..]`` contains no declared key, ``KeyMismatch`` lists the
    possible keys.
    """
    if has_key(pattern, declaration.key_paths):
        return ""
    for path in pattern.keys:
        for name in declaration.keys:
            if path in declaration.route_paths(name):
                return name
    raise _mismatch(pattern, declaration)


def routed(pattern: Pattern, declaration: StreamDeclaration) -> RoutedPattern:
    """Return a pattern with the key by which it is matched on a stream. Raises ``KeyMismatch`` if no key fits."""
    route = route_of(pattern, declaration)
    key_paths = declaration.route_paths(route) if route else (("key",), *declaration.key_paths)
    require_own_key(pattern, key_paths)
    finer = tuple(".".join(path) for path in pattern.keys if path not in key_paths)
    return RoutedPattern(pattern=pattern, declaration=declaration, route=route, finer=finer)


def _mismatch(pattern: Pattern, declaration: StreamDeclaration) -> KeyMismatch:
    pattern_keys = ", ".join(".".join(path) for path in pattern.keys)
    declared = dict.fromkeys((*(".".join(path).removeprefix("data.") for path in declaration.key_paths), "key"))
    further = [f"[{_name_of(name, declaration)}] for those of {name}" for name in declaration.keys]
    ways = [f"{' or '.join(f'[{name}]' for name in declared)} for the traces of the stream", *further]
    return KeyMismatch(
        f"WHERE [{pattern_keys}]: the stream {declaration.name!r} is correlated by {key_text(declaration.key)}"
        f"{_declared(declaration)}, and a pattern's keys must contain one of its declared keys; write "
        f"[key, {pattern_keys}] for finer traces, {', '.join(ways)}, or leave it out",
        asked=pattern_keys,
        key=key_text(declaration.key),
        keys={name: key_text(key) for name, key in declaration.keys.items()},
    )


def _declared(declaration: StreamDeclaration) -> str:
    if not declaration.keys:
        return ""
    return ", its further keys are " + ", ".join(f"{name} ({key_text(key)})" for name, key in declaration.keys.items())


def _name_of(route: str, declaration: StreamDeclaration) -> str:
    path = declaration.attribute_of(route)
    return route if isinstance(path, Mapping) else ".".join(path)

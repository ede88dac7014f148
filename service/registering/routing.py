"""By which key a pattern is matched: the stream's correlation key, or a further key that the stream declares."""

from __future__ import annotations

from nfa import KeyMismatch, Pattern, has_key
from streams import StreamDeclaration


def route_of(pattern: Pattern, declaration: StreamDeclaration) -> str:
    """The further key by whose traces a pattern is matched; empty for those of the correlation key.

    Without ``WHERE [..]``, or where that contains the correlation key, the pattern stays with that. Otherwise the first
    further key in it decides.

    Raises:
        KeyMismatch: ``WHERE [..]`` contains no declared key; the message lists what may be named.
    """
    if has_key(pattern, declaration.key_paths):
        return ""
    for path in pattern.keys:
        for name in declaration.keys:
            if path in declaration.route_paths(name):
                return name
    raise _mismatch(pattern, declaration)


def finer_keys(pattern: Pattern, declaration: StreamDeclaration) -> list[str]:
    """The keys of a pattern besides the one by which it is matched: its traces are finer by them.

    Raises:
        KeyMismatch: As ``route_of``.
    """
    route = route_of(pattern, declaration)
    own = declaration.route_paths(route) if route else (("key",), *declaration.key_paths)
    return [".".join(path) for path in pattern.keys if path not in own]


def has_whole_traces(pattern: Pattern, declaration: StreamDeclaration) -> bool:
    """Whether a pattern looks at whole traces of the correlation key, which is what constraints speak of.

    Raises:
        KeyMismatch: As ``route_of``.
    """
    return not route_of(pattern, declaration) and not finer_keys(pattern, declaration)


def _mismatch(pattern: Pattern, declaration: StreamDeclaration) -> KeyMismatch:
    asked = ", ".join(".".join(path) for path in pattern.keys)
    own = dict.fromkeys((declaration.key.removeprefix("data."), "key"))
    further = [f"[{'.'.join(declaration.attribute_of(name))}] for those of {name}" for name in declaration.keys]
    ways = [f"{' or '.join(f'[{name}]' for name in own)} for the traces of the stream", *further]
    return KeyMismatch(
        f"WHERE [{asked}]: the stream {declaration.name!r} is correlated by {declaration.key}"
        f"{_declared(declaration)}, and a pattern's keys must contain one of its declared keys; write "
        f"[key, {asked}] for finer traces, {', '.join(ways)}, or leave it out",
        asked=asked,
        key=declaration.key,
        keys=dict(declaration.keys),
    )


def _declared(declaration: StreamDeclaration) -> str:
    if not declaration.keys:
        return ""
    return ", its further keys are " + ", ".join(f"{name} ({path})" for name, path in declaration.keys.items())

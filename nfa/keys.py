"""The keys by which a pattern and its events are correlated."""

from __future__ import annotations

from collections.abc import Collection

from nfa.errors import KeyMismatch
from nfa.syntax import Path, Pattern

_KEY: Path = ("key",)


def has_key(pattern: Pattern, key_paths: Collection[Path]) -> bool:
    """Check whether a pattern's keys contain the correlation key of the events. A pattern without keys passes, too.

    A pattern that passes has the same correlation key in all events of a match. ``key_paths`` are the names that
    ``WHERE [..]`` may use for the correlation key, besides ``key``.
    """
    return not pattern.keys or not {_KEY, *key_paths}.isdisjoint(pattern.keys)


def require_own_key(pattern: Pattern, key_paths: Collection[Path]) -> None:
    """Refuse a pattern with FOR EACH ROW and keys other than ``key_paths``, the names of the correlation key."""
    finer = [".".join(path) for path in pattern.keys if path not in key_paths]
    if pattern.rows is not None and finer:
        raise KeyMismatch(
            f"pattern {pattern.name} has FOR EACH ROW, and WHERE [{', '.join(finer)}] would divide its traces further; "
            "compare the attributes of its steps, or declare a further key of the stream",
            asked=", ".join(finer),
        )


def require_key(pattern: Pattern, key_paths: Collection[Path], advice: str = "") -> None:
    """Raise ``KeyMismatch`` if a pattern fails the check of ``has_key`` or ``require_own_key``.

    ``key_paths`` are as in ``has_key``. Messages call the correlation key by the shortest of these names. ``advice`` is
    appended to the message, for example to name other corrections.
    """
    if has_key(pattern, key_paths):
        require_own_key(pattern, {_KEY, *key_paths})
        return
    keys = ", ".join(".".join(path) for path in pattern.keys)
    names = (".".join(path) for path in key_paths if path != _KEY)
    key = min(names, key=lambda name: (len(name), name), default="key")
    raise KeyMismatch(
        f"pattern {pattern.name} is correlated by [{keys}], the events by {key}: write WHERE [key, {keys}]{advice}",
        asked=keys,
        key=key,
    )

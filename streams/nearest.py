"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LIKENESS = 0.6
_LONGEST = 100
_MOST = 2_000
_LISTED = 20


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``name``, or None if none is similar.

    Very long names are not compared, and of many known names only the first ones are.
    """
    if len(name) > _LONGEST:
        return None
    candidates = {candidate.casefold(): candidate for candidate in sorted(known)[:_MOST] if len(candidate) <= _LONGEST}
    matches = get_close_matches(name.casefold(), candidates, n=1, cutoff=_LIKENESS)
    return candidates[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that suggests the most similar known name. It begins with a space, or is empty."""
    suggestion = nearest(name, known)
    return "" if suggestion is None else f" (did you mean {suggestion}?)"


def listed(names: Sequence[str]) -> str:
    """List names in a sentence. If there are many, list the first ones and say how many more there are."""
    text = ", ".join(name if len(name) <= _LONGEST else name[:_LONGEST] + "…" for name in names[:_LISTED])
    return text if len(names) <= _LISTED else f"{text} and {len(names) - _LISTED} more"


def one_of(names: Sequence[str]) -> str:
    """List names as alternatives in a sentence: ``a, b or c``."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def indefinite(noun: str) -> str:
    """Return a noun with its indefinite article: ``a join``, ``an aggregate``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"

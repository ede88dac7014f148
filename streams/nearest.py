"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_LIKENESS = 0.6
_LONGEST = 100
_MOST = 2_000
_LISTED = 20


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a name, if any; of very many or very long names, only some are compared."""
    if len(name) > _LONGEST:
        return None
    candidates = {candidate.casefold(): candidate for candidate in sorted(known)[:_MOST] if len(candidate) <= _LONGEST}
    matches = get_close_matches(name.casefold(), candidates, n=1, cutoff=_LIKENESS)
    return candidates[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown name, with a space before it; empty if no known name is similar."""
    suggestion = nearest(name, known)
    return "" if suggestion is None else f" (did you mean {suggestion}?)"


def listed(names: Sequence[str]) -> str:
    """Names as part of a sentence; of many names, the first ones and the count of the rest."""
    text = ", ".join(name if len(name) <= _LONGEST else name[:_LONGEST] + "…" for name in names[:_LISTED])
    return text if len(names) <= _LISTED else f"{text} and {len(names) - _LISTED} more"


def one_of(names: Sequence[str]) -> str:
    """Names as alternatives in a sentence: ``a, b or c``."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def indefinite(noun: str) -> str:
    """A noun with its article: ``a join``, ``an aggregate``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"

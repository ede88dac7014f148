"""The table of all functions, by name."""

from __future__ import annotations

from collections.abc import Mapping

from nfa.functions import arithmetic, choices, lists, lookups, texts, times
from nfa.functions.function import Function

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for group in (texts, arithmetic, times, choices, lists, lookups)
    for function in group.FUNCTIONS
}


def word_of(name: str) -> str:
    """Return the name of a function or an aggregate, as written in pattern text."""
    return FUNCTIONS[name].word if name in FUNCTIONS else name

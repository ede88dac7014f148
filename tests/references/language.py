"""Enumerates the words of an automaton: the executable meaning of ``ProcessAutomaton``."""

from __future__ import annotations

from typing import TypeAlias

from constraints import ProcessAutomaton

Word: TypeAlias = tuple[str, ...]


def words_of(automaton: ProcessAutomaton, max_length: int) -> frozenset[Word]:
    """All complete traces of at most ``max_length`` events."""
    found: set[Word] = set()
    ways: list[tuple[Word, int]] = [((), 0)]
    while ways:
        word, state = ways.pop()
        if automaton.accepting[state]:
            found.add(word)
        if len(word) == max_length:
            continue
        for name in automaton.allowed(state):
            after = automaton.step(state, name)
            assert after is not None
            ways.append(((*word, name), after))
    return frozenset(found)

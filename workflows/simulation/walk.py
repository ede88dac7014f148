"""Samples traces of a process automaton by random walks that always end."""

from __future__ import annotations

from random import Random

import numpy as np

from constraints import NOWHERE, ProcessAutomaton
from workflows.tree import Activity

_MOST_RANDOM_EVENTS = 100


class AutomatonWalk:
    """Draws traces of an automaton by random walks.

    In each state, the allowed events, and the end if it is allowed, have equal probability. After
    ``most_random_events`` events a walk takes a shortest path to the end, so every walk ends.
    """

    def __init__(self, automaton: ProcessAutomaton, most_random_events: int = _MOST_RANDOM_EVENTS) -> None:
        self._automaton = automaton
        self._most_random_events = most_random_events
        self._activities = tuple(Activity(name) for name in automaton.letters)
        self._to_go = automaton.distances(automaton.accepting)

    def sample_trace(self, rng: Random) -> list[Activity]:
        trace: list[Activity] = []
        state = 0
        while True:
            codes = np.flatnonzero(self._automaton.table[state] != NOWHERE)
            is_complete = bool(self._automaton.accepting[state])
            if len(trace) >= self._most_random_events:
                if is_complete:
                    return trace
                codes = codes[self._to_go[self._automaton.table[state, codes]] < self._to_go[state]]
            choice = int(rng.random() * (len(codes) + is_complete))
            if choice == len(codes):
                return trace
            code = int(codes[choice])
            trace.append(self._activities[code])
            state = int(self._automaton.table[state, code])

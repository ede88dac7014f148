"""Combines the rules of a constraint set, and decides whether a remainder can still complete under all of them."""

from __future__ import annotations

from typing import TypeAlias

from constraints.model import ConstraintSet
from constraints.remainder import Remainder
from constraints.rules.alphabet import event_kinds
from constraints.rules.automaton import RuleAutomaton
from constraints.rules.search import Places, WordSearch
from constraints.sets import overlapping
from nfa import OTHER

MAX_STEPS = 100_000
MEMORY_LIMIT = 65_536

_Question: TypeAlias = tuple[tuple[int, ...], Places, Remainder, frozenset[str] | None, bool]


class RuleProduct:
    """The rules of a set as one automaton, built only as far as needed.

    A place of the product is the tuple of the places of all rules. Several rules together can forbid a continuation
    that each single rule allows. So a remainder is checked with each rule, then with groups of rules that share a type
    or count every event (``init``, ``last``, ``chain ...``), then with all rules.

    A search of more than ``max_steps`` steps is given up and counted in ``given_up``. Its remainder is assumed to be
    possible. So the answer "possible" may be wrong, but "impossible" never is.
    """

    def __init__(
        self, constraint_set: ConstraintSet, *, max_steps: int = MAX_STEPS, memory_limit: int = MEMORY_LIMIT
    ) -> None:
        self._constraint_set = constraint_set
        self._max_steps, self._memory_limit = max_steps, memory_limit
        self._answers: dict[_Question, bool] = {}
        self.rules = constraint_set.rules
        self.automata = tuple(map(RuleAutomaton.of, self.rules))
        self.given_up = 0
        self._always = tuple(index for index, automaton in enumerate(self.automata) if automaton.counts_every_event)
        self._naming: dict[str, list[int]] = {}
        for index, rule in enumerate(self.rules):
            for name in dict.fromkeys(rule.names):
                self._naming.setdefault(name, []).append(index)

    @property
    def start(self) -> Places:
        return tuple(automaton.start for automaton in self.automata)

    def step(self, places: Places, event_names: frozenset[str]) -> Places:
        moved = set(self._always).union(*(self._naming.get(name, ()) for name in event_names))
        if not moved:
            return places
        after = list(places)
        for index in moved:
            after[index] = self.automata[index].step(places[index], event_names)
        return tuple(after)

    def can_complete(
        self, places: Places, remainder: Remainder, impossible: frozenset[str] | None, *, assumes_completion: bool
    ) -> bool:
        """Check whether some continuation binds the remainder and satisfies all rules. True if the search is given up.

        ``impossible`` are the names that no later event shows, or None if no event can follow. If
        ``assumes_completion``, a trace ends only where its rules accept. Otherwise it ends anywhere but in a trap. If
        events with equal timestamps are unordered, the remainder must have no gaps, because gaps use the order of the
        log.
        """
        active = self._active(places, assumes_completion)
        return all(
            self._ask((group, tuple(places[index] for index in group), remainder, impossible, assumes_completion))
            for group in (*((index,) for index in active), *self._groups(active), active)
        )

    def _ask(self, question: _Question) -> bool:
        if question not in self._answers:
            if len(self._answers) >= self._memory_limit:
                self._answers.clear()
            self._answers[question] = self._search(question)
        return self._answers[question]

    def _search(self, question: _Question) -> bool:
        indices, here, remainder, impossible, assumes_completion = question
        automata = [self.automata[index] for index in indices]
        end_places = [
            automaton.accepting if assumes_completion else automaton.places - automaton.traps for automaton in automata
        ]
        if impossible is None:
            return not remainder.atoms and all(map(frozenset.__contains__, end_places, here))
        names = frozenset[str]().union(*(automaton.names for automaton in automata))
        kinds = event_kinds(self._constraint_set, names, remainder, impossible)
        answer = None
        if kinds is not None:
            answer = WordSearch(automata, end_places, remainder, kinds).is_reachable(here, self._max_steps)
        self.given_up += answer is None
        return answer is not False

    def _active(self, places: Places, assumes_completion: bool) -> tuple[int, ...]:
        return tuple(
            index
            for index, automaton in enumerate(self.automata)
            if places[index] not in automaton.settled and (assumes_completion or automaton.traps)
        )

    def _groups(self, indices: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Group rules that share a type, directly or through other rules, and rules that count every event.

        A rule counts every event if its place may change at any event; see ``RuleAutomaton.counts_every_event``.
        """
        types = {
            index: [
                *map(self._constraint_set.type_of, self.rules[index].names),
                *([OTHER] if self.automata[index].counts_every_event else []),
            ]
            for index in indices
        }
        return list(map(tuple, overlapping(types)))

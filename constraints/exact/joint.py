"""Searches for words that the process and the hand-written constraints both allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from constraints.model import ConstraintSet, Prior
from constraints.process.language import Completions, Language
from constraints.reasoning.reasoner import Goal, Reasoner
from constraints.remainder import Remainder
from constraints.rules.alphabet import EventKind, event_kinds
from constraints.rules.automaton import RuleAutomaton
from constraints.rules.search import WordSearch
from nfa import MonitorState
from streams import Ties

MAX_STEPS = 100_000
MEMORY_LIMIT = 65_536

_Place: TypeAlias = tuple[int, int]  # state of the process, and the names seen that matter to orders and clauses


class JointSearch:
    """Searches for a word (a sequence of events) that completes a trace of the process.

    The word must also satisfy all hand-written rules, orders and clauses. If events with equal timestamps are
    unordered, orders and ends are ignored. A search of more than ``max_steps`` steps is given up, and some word is
    assumed to exist. ``given_up`` counts these searches.
    """

    def __init__(
        self, language: Language, constraint_set: ConstraintSet, ties: Ties, *, max_steps: int = MAX_STEPS
    ) -> None:
        if ties != "log":
            constraints = (part for part in constraint_set.constraints if not isinstance(part, Prior))
            constraint_set = replace(constraint_set, constraints=tuple(constraints), end_events=frozenset())
        self.is_needed = bool(constraint_set.constraints or constraint_set.rules)
        self.given_up = 0
        self._language, self._set, self._max_steps = language, constraint_set, max_steps
        self._orders = _Orders(constraint_set)
        self._automata = tuple(map(RuleAutomaton.of, constraint_set.rules))
        is_assumed = constraint_set.settings.completion == "assumed"
        self._end_places = [
            automaton.accepting if is_assumed else automaton.places - automaton.traps for automaton in self._automata
        ]
        self._searches: dict[Remainder, WordSearch | None] = {}
        self._answers: dict[tuple[int, MonitorState, Remainder, int], bool] = {}

    def is_possible(self, place: int, beside: MonitorState, remainder: Remainder, bound: int = 0) -> bool:
        """Check whether some word completes ``remainder``. The atoms ``bound`` (as bits) have already occurred.

        The process is in the state ``place``, and the hand-written constraints are in the state ``beside``.
        """
        if not self.is_needed:
            return True
        question = place, beside, remainder, bound
        if question not in self._answers:
            if len(self._answers) >= MEMORY_LIMIT:
                self._answers.clear()
                self._searches.clear()
            self._answers[question] = self._search(*question)
        return self._answers[question]

    def may_end(self, place: int, beside: MonitorState, remainder: Remainder, bound: int) -> bool:
        are_rules_kept = all(map(frozenset.__contains__, self._end_places, beside.places))
        return (
            are_rules_kept
            and self._language.can_end(place, remainder, bound)
            and self._orders.are_met(self._orders.seen(beside))
        )

    def _search(self, place: int, beside: MonitorState, remainder: Remainder, bound: int) -> bool:
        if remainder not in self._searches:
            self._searches[remainder] = self._word_search(remainder)
        search = self._searches[remainder]
        answer = None
        if search is not None:
            start = place, self._orders.seen(beside)
            answer = search.is_reachable(beside.places, self._max_steps, beside=start, bound=bound)
        self.given_up += answer is None
        return answer is not False

    def _word_search(self, remainder: Remainder) -> WordSearch | None:
        """Return the search for a word that completes ``remainder``.

        The result is None if some type has too many symbols to combine. The caller then gives the search up.
        """
        letters = frozenset(self._language.automaton.letters)
        strangers = frozenset(
            name
            for name in {name for atom in remainder.atoms for name in atom.types if not atom.is_any_type} - letters
            if not self._language.has_free(name)
        )
        kinds = event_kinds(self._set, self._set.names | letters, remainder, strangers)
        if kinds is None:
            return None
        company = _Walkers(self._language, self._orders, remainder)
        return WordSearch(self._automata, self._end_places, remainder, kinds, company)


class _Orders:
    """The order and occurrence constraints as an automaton. Its states are masks of the names seen."""

    def __init__(self, constraint_set: ConstraintSet) -> None:
        self.reasoner = Reasoner(constraint_set)
        self._set = constraint_set
        self._remembered = constraint_set.end_events.union(*(part.names for part in constraint_set.constraints))
        self._clauses = [
            (self.reasoner.mask(clause.body), None if clause.head is None else self.reasoner.mask((clause.head,)))
            for clause in constraint_set.clauses
        ]
        self._shown: dict[EventKind, tuple[int, int]] = {}

    def seen(self, state: MonitorState) -> int:
        return self.reasoner.mask(state.seen & self._remembered)

    def after(self, seen: int, kind: EventKind) -> int | None:
        event_names, remembered = self._of(kind)
        return None if event_names & self.reasoner.blocked(seen) else seen | remembered

    def _of(self, kind: EventKind) -> tuple[int, int]:
        if kind not in self._shown:
            names = self._set.shown_with(kind.shown)
            remembered = self._set.shown_with(names & self._remembered)
            self._shown[kind] = self.reasoner.mask(names), self.reasoner.mask(remembered)
        return self._shown[kind]

    def are_met(self, seen: int) -> bool:
        return all(body & ~seen or (head is not None and head & seen) for body, head in self._clauses)


class _Walkers:
    """The ``Company`` of a word search: the process, and the order and occurrence constraints."""

    def __init__(self, language: Language, orders: _Orders, remainder: Remainder) -> None:
        self._language, self._orders, self._remainder = language, orders, remainder
        self._completions: Completions = language.completions(remainder)
        self._goals: dict[int, Goal] = {}
        self._hopes: dict[tuple[int, int], bool] = {}

    def after(self, place: _Place, kind: EventKind) -> _Place | None:
        state, seen = place
        after, following = self._language.step(state, kind.type), self._orders.after(seen, kind)
        return None if after is None or following is None else (after, following)

    def is_wanted(self, place: _Place) -> bool:
        state, seen = place
        return bool(self._language.accepting[state]) and self._orders.are_met(seen)

    def is_hopeful(self, place: _Place, bound: int) -> bool:
        state, seen = place
        return self._completions.has(state, bound) and self._is_hopeful(seen, bound)

    def distance(self, place: _Place, bound: int) -> int:
        """Return a lower bound of the number of events to the next atom or the end. Only the process is considered."""
        return self._completions.distance(place[0], bound)

    def _is_hopeful(self, seen: int, bound: int) -> bool:
        if bound not in self._goals:
            bound_atoms = frozenset(index for index in range(len(self._remainder.atoms)) if bound >> index & 1)
            self._goals[bound] = self._orders.reasoner.goal(self._remainder.left(bound_atoms))
        if (seen, bound) not in self._hopes:
            self._hopes[seen, bound] = self._orders.reasoner.is_alive(seen, self._goals[bound])
        return self._hopes[seen, bound]

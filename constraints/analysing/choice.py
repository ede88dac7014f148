"""Chooses the names that a monitor distinguishes, if distinguishing all names would need too many states.

A constraint is used if all of its names are distinguished. Leaving a constraint out is always sound, because
continuations that are impossible under fewer constraints are impossible under all of them.

The choice is greedy. Adding names makes more explanations of early terminations possible, but also adds monitor states.
The search adds the names that save most for each added state. The savings also decide which clauses of three or more
names the bit tables watch (constraint-aware CEP, section 6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from constraints.analysing.frequencies import Frequencies
from constraints.analysing.state_count import count_states
from constraints.explaining.failing import FailingCondition, failing_conditions
from constraints.model import Clause, ConstraintSet, End, Part
from constraints.rules.automaton import RuleAutomaton
from constraints.wording import listed_types
from nfa import Query

MOST_WATCHED = 256
PAIR_LIMIT = 2_000  # maximum number of pairs of events examined for explanations, per pattern
MOST_COUNTS = 16  # maximum number of counts; after these, each new name is assumed to double the states


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A group of names (types and symbols) that the search for a monitor's names accepts or rejects as a whole.

    ``is_chosen`` is true if the search accepted the names. ``benefit`` estimates the work and memory that the names
    save per trace. ``states_added`` estimates the number of monitor states that the names add.
    """

    names: frozenset[str]
    benefit: float
    states_added: int
    is_chosen: bool

    @property
    def text(self) -> str:
        verdict = "told apart" if self.is_chosen else "left out"
        return (
            f"{listed_types(sorted(self.names))}: {verdict}; saves {self.benefit:.3g} per trace "
            f"for {self.states_added} more monitor states"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The names (types and symbols) that a monitor distinguishes.

    Attributes:
        left_out: Constraints that the monitor ignores, in the order of ``ConstraintSet.parts``.
        estimated_states: Upper bound of the number of monitor states. It exceeds ``budget`` only in exact mode.
        watched: Horn clauses of three or more names that bit tables evaluate at each event.
        candidates: The search's decisions up to the first candidate that does not fit. Empty if all names fit.
        workflow: The name of the workflow whose automaton gives the states in exact mode; otherwise None. Exact mode
            leaves no constraint out.
    """

    distinguished: frozenset[str]
    left_out: tuple[Part, ...]
    estimated_states: int
    budget: int
    watched: tuple[Clause, ...]
    candidates: tuple[Candidate, ...] = ()
    workflow: str | None = None

    @property
    def is_whole(self) -> bool:
        return not self.left_out

    @property
    def text(self) -> str:
        states = f"at most {self.estimated_states} of {self.budget} monitor states"
        if self.workflow is not None:
            return f"the monitor's states are those of the workflow {self.workflow}: {states}"
        if self.is_whole:
            return f"all names are told apart: {states}"
        names = listed_types(sorted(self.distinguished)) if self.distinguished else "nothing"
        opening = f"{names} told apart, {len(self.left_out)} constraints left out: {states}"
        return "\n".join((opening, *(candidate.text for candidate in self.candidates)))

    def reduced(self, constraint_set: ConstraintSet) -> ConstraintSet:
        left_out = frozenset(self.left_out)
        return constraint_set.of_parts(part for part in constraint_set.parts if part not in left_out)


def choose(constraint_set: ConstraintSet, queries: Sequence[Query], *, most_watched: int = MOST_WATCHED) -> Choice:
    """Choose the names that a monitor distinguishes, with at most ``settings.max_monitor_states`` monitor states.

    In exact mode all names are chosen, however many states they need.
    """
    budget = constraint_set.settings.max_monitor_states
    if constraint_set.is_exact:
        return _of_workflow(constraint_set, budget)
    watched = tuple(clause for clause in constraint_set.clauses if clause.is_long)
    states = count_states(constraint_set, budget)
    savings: list[_Saving] = []
    if states > budget or len(watched) > most_watched:
        savings = [saving for query in queries for saving in _savings(constraint_set, query)]
        watched = _watched(watched, savings, most_watched)
    whole = Choice(
        distinguished=constraint_set.names, left_out=(), estimated_states=states, budget=budget, watched=watched
    )
    if states <= budget:
        return whole
    search = _Search(constraint_set, budget)
    candidates = search.run(savings)
    left_out = tuple(part for part in constraint_set.parts if not search.names >= set(part.names))
    whole = replace(whole, left_out=left_out, candidates=candidates)
    reduced = whole.reduced(constraint_set)
    return replace(
        whole, distinguished=reduced.names, estimated_states=min(search.states, count_states(reduced, budget))
    )


def _of_workflow(constraint_set: ConstraintSet, budget: int) -> Choice:
    """Return the choice in exact mode: all names.

    The estimated number of states is a product: the states of the automaton times the states of the hand-written
    constraints.
    """
    process, hand_written = constraint_set.process, constraint_set.own
    assert process is not None
    assert process.automaton is not None
    states = len(process.automaton) * (count_states(hand_written, budget) if hand_written.parts else 1)
    return Choice(
        distinguished=constraint_set.names,
        left_out=(),
        estimated_states=min(states, budget + 1),
        budget=budget,
        watched=(),
        workflow=process.workflow,
    )


def within_cap(constraint_set: ConstraintSet, queries: Sequence[Query]) -> tuple[ConstraintSet, tuple[Part, ...]]:
    """Return the constraint set for the monitor, and the constraints that were left out.

    Constraints are only left out if the settings allow this (``beyond_cap: leave_out``).
    """
    if constraint_set.settings.beyond_cap != "leave_out":
        return constraint_set, ()
    choice = choose(constraint_set, queries)
    return choice.reduced(constraint_set), choice.left_out


@dataclass(frozen=True, slots=True)
class _Saving:
    """An explanation of early terminations, with its estimated ``benefit`` per trace.

    ``names`` and ``clauses`` are the names and long clauses that the monitor needs for the explanation.
    """

    names: frozenset[str]
    clauses: tuple[Clause, ...]
    benefit: float


def _savings(constraint_set: ConstraintSet, query: Query) -> list[_Saving]:
    frequencies = Frequencies(constraint_set)
    savings = []
    for condition in failing_conditions(query, constraint_set, pair_limit=PAIR_LIMIT):
        parts = condition.explanation.constraints
        if not all(isinstance(part, End) for part in parts):  # the end of a trace frees its whole state in any case
            names = frozenset(name for part in parts for name in part.names)
            clauses = tuple(part for part in parts if isinstance(part, Clause) and part.is_long)
            savings.append(_Saving(names, clauses, _benefit(query, condition, frequencies)))
    return savings


def _benefit(query: Query, condition: FailingCondition, frequencies: Frequencies) -> float:
    """Estimate how much an explanation saves per trace: probability times memory times work.

    The probability is the share of traces that reach the pattern state and show the explanation's events. The memory is
    one unit for the pattern's entry in the trace and one for each bound atom. The work is the share of the pattern's
    atoms that are still unbound.
    """
    bound = frozenset(atom.type for atom in condition.bound)
    events = frozenset({condition.event_type, *condition.explanation.shown, *condition.explanation.earlier})
    total = max(1, len(query.terms[condition.state.term].atoms))
    probability = frequencies.of_all(bound) * frequencies.of_all(events, condition=bound)
    return probability * (1 + len(condition.bound)) * (1 - len(condition.bound) / total)


def _watched(long: Sequence[Clause], savings: Iterable[_Saving], most: int) -> tuple[Clause, ...]:
    saved = dict.fromkeys(long, 0.0)
    for saving in savings:
        for clause in saving.clauses:
            saved[clause] = saved.get(clause, 0.0) + saving.benefit
    ranked = sorted(long, key=lambda clause: (-saved[clause] / len(clause.names), str(clause)))
    return tuple(ranked[:most])


class _Search:
    """The greedy search for the names of a monitor. The chosen ``names`` need at most ``states`` monitor states."""

    def __init__(self, constraint_set: ConstraintSet, budget: int) -> None:
        self._set = constraint_set
        self._budget = budget
        self._counts_left = MOST_COUNTS
        self.names = frozenset[str]()
        self.states = 1

    def run(self, savings: Iterable[_Saving]) -> tuple[Candidate, ...]:
        """Decide on the candidates one after another, up to the first that does not fit, and return the decisions.

        Later candidates are not tried, so a greater budget never leaves out more. Names without benefit come last.
        """
        waiting: dict[frozenset[str], float] = {}
        for saving in savings:
            waiting[saving.names] = waiting.get(saving.names, 0.0) + saving.benefit
        for part in self._set.parts:
            waiting.setdefault(frozenset(part.names), 0.0)
        order = {names: place for place, names in enumerate(waiting)}
        decided = []
        while waiting:
            names = min(waiting, key=lambda candidate: (-self._ratio(candidate, waiting[candidate]), order[candidate]))
            decided.append(self._decide(names, waiting.pop(names)))
            if not decided[-1].is_chosen:
                break
        return tuple(decided)

    def _ratio(self, names: frozenset[str], benefit: float) -> float:
        added = len(names - self.names)
        return float("inf") if not added else benefit / (2**added - 1)

    def _decide(self, names: frozenset[str], benefit: float) -> Candidate:
        before, states = self.states, self._states_with(names)
        is_chosen = states <= self._budget
        if is_chosen:
            self.names |= names
            self.states = states
        return Candidate(names=names, benefit=benefit, states_added=max(0, states - before), is_chosen=is_chosen)

    def _states_with(self, names: frozenset[str]) -> int:
        """Return an upper bound of the number of monitor states if ``names`` are added to the chosen names.

        Each new name at most doubles the number, and each new rule multiplies it by its places. If this estimate
        exceeds the budget, the slower ``count_states`` computes a closer bound, at most ``MOST_COUNTS`` times per
        search.
        """
        together = self.names | names
        if together == self.names:
            return self.states
        new = [rule for rule in self._set.rules if together >= set(rule.names) and not self.names >= set(rule.names)]
        most = (self.states << len(together - self.names)) * prod(len(RuleAutomaton.of(rule).places) for rule in new)
        if most <= self._budget or not self._counts_left:
            return most
        self._counts_left -= 1
        reduced = self._set.of_parts(part for part in self._set.parts if together >= set(part.names))
        return count_states(reduced, self._budget)

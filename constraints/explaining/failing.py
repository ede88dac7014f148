"""Finds, for each state of a pattern, the events that terminate its partial matches early (*failing conditions*).

See constraint-aware CEP, section 4.1. A condition is listed only if it can become true. This means that some trace
binds the state's atoms, keeps the state alive, and then allows the event. Order and occurrence constraints are decided
on minimal prefixes of traces. Rules are decided by walking through the monitor's states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TypeAlias

from constraints.explaining.explanation import Explanation, explain_clash
from constraints.explaining.rule_endings import WALK_LIMIT, rule_endings
from constraints.model import ConstraintSet
from constraints.reasoning.outlook import Outlook
from constraints.reasoning.reasoner import Goal, Reasoner
from constraints.remainder import NOTHING, Remainder, remainder_of
from constraints.wording import alternative_text, listed_atoms
from nfa import Atom, EventClass, PatternState, Query, Seen

PAIR_LIMIT = 20_000

_Candidate: TypeAlias = tuple[int, int]  # names seen, and the names of a possible next event


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingCondition:
    """An event that terminates the partial matches at a state.

    ``bound`` has the state's atoms in the order of the pattern's text. ``is_takable`` is true if a partial match can
    bind the event and stay alive. Then only the partial match without the event is terminated. ``alternatives`` is the
    number of the pattern's alternatives.
    """

    state: PatternState
    bound: tuple[Atom, ...]
    explanation: Explanation
    is_takable: bool
    alternatives: int

    @property
    def event_type(self) -> str:
        return self.explanation.event_type

    @property
    def text(self) -> str:
        event = self.explanation.event_name
        event += ", where it is not taken," if self.is_takable else ""
        bound = listed_atoms(self.bound)
        alternative = alternative_text(self.state.term, self.alternatives)
        opening = (
            f"with {bound} bound{alternative}, {event} ends the partial match"
            if bound
            else f"with nothing bound{alternative}, {event} rules the match out"
        )
        return f"{opening}{self.explanation.circumstances}: {self.explanation.because}"


def failing_conditions(
    query: Query,
    constraint_set: ConstraintSet,
    *,
    steps: Iterable[tuple[Seen, str]] | None = None,
    pair_limit: int = PAIR_LIMIT,
    walk_limit: int = WALK_LIMIT,
) -> tuple[FailingCondition, ...]:
    """Find the events that terminate partial matches, for each state in the order of ``query.states``.

    ``steps`` has all steps that the process takes, if known. A step is a pair: the types seen, and the type of the next
    event. With ``steps``, fewer events may be listed, because the process may allow less than the constraints do.

    Without ``steps``, events are tried alone and in pairs. Pairs are left out if there are more than ``pair_limit``
    pairs for all states. At most ``walk_limit`` monitor states are visited to find the events that rules exclude. Each
    of these events is listed with its shortest prefix. For each state, events that no partial match can bind come
    before the others. Both groups are sorted by name.
    """
    search = _Search(query, constraint_set)
    known_steps = None if steps is None else tuple(steps)
    groups = _groups(constraint_set, search.reasoner, pair_limit // max(1, len(query.states)))
    conditions = {
        state: search.conditions(
            state, search.conceivable(state, groups) if known_steps is None else search.observed(state, known_steps)
        )
        for state in query.states
    }
    for state, explanation in rule_endings(query, constraint_set, walk_limit):
        if not any(_is_same_event(explanation, condition.explanation) for condition in conditions[state]):
            conditions[state].append(search.condition(state, explanation))
    return tuple(condition for state in query.states for condition in sorted(conditions[state], key=_listing_order))


def _is_same_event(explanation: Explanation, other: Explanation) -> bool:
    return explanation.event_name == other.event_name and not other.earlier


def _listing_order(condition: FailingCondition) -> tuple[bool, str, tuple[str, ...], tuple[str, ...]]:
    explanation = condition.explanation
    return condition.is_takable, explanation.event_type, explanation.shown, explanation.earlier


@dataclass(frozen=True, slots=True)
class _EarlierExplanation:
    """An explanation that is reused for other states and traces.

    The explanation holds if the remainder contains ``part``, and if ``shown`` are exactly the seen names among
    ``names``.
    """

    explanation: Explanation
    part: Remainder
    names: frozenset[str]
    shown: frozenset[str]

    def explains(self, seen: Seen, remainder: Remainder) -> bool:
        return seen & self.names == self.shown and remainder.restricted_to(self.part.atoms) == self.part


class _Search:
    """Searches for the failing conditions of one query. Sets of names are masks of ``reasoner``."""

    def __init__(self, query: Query, constraint_set: ConstraintSet) -> None:
        self._query = query
        self._set = constraint_set
        self._outlook = Outlook(constraint_set)
        self.reasoner = self._outlook.reasoner
        self._nothing = self.reasoner.goal(NOTHING)
        self._events: dict[int, EventClass] = {}
        self._known: dict[int, list[_EarlierExplanation]] = {}

    def conditions(self, state: PatternState, candidates: Iterable[_Candidate]) -> list[FailingCondition]:
        remainder = remainder_of(self._query, state)
        goal = self.reasoner.goal(remainder)
        conditions: dict[int, FailingCondition] = {}
        for seen, event in candidates:
            after = seen | event
            is_known = any(events & ~after == 0 for events in conditions)
            if is_known or not self.reasoner.is_alive(seen, goal) or self.reasoner.is_alive(after, goal):
                continue
            explanation = self._explain(remainder, after, event)
            conditions[event | self.reasoner.mask(explanation.earlier)] = self.condition(state, explanation)
        return list(conditions.values())

    def condition(self, state: PatternState, explanation: Explanation) -> FailingCondition:
        term = self._query.terms[state.term]
        return FailingCondition(
            state=state,
            bound=tuple(term.atoms[index] for index in sorted(state.bound)),
            explanation=explanation,
            is_takable=any(
                atom.type == explanation.event_type and index not in state.bound and term.before[index] <= state.bound
                for index, atom in enumerate(term.atoms)
            ),
            alternatives=len(self._query.terms),
        )

    def _explain(self, remainder: Remainder, after: int, event: int) -> Explanation:
        names = self.reasoner.names(after)
        explanations = self._known.setdefault(event, [])
        for earlier in explanations:
            if earlier.explains(names, remainder):
                return earlier.explanation
        explanation = explain_clash(self._outlook, remainder, names, self._events[event])
        assert explanation is not None, "asked only about what is dead"
        cited = frozenset(name for part in explanation.constraints for name in part.names)
        explanations.append(
            _EarlierExplanation(explanation, remainder.restricted_to(explanation.atoms), cited, names & cited)
        )
        return explanation

    def _event(self, name: str) -> int:
        """Return the names of the event that shows ``name``, as a mask, and register the event under this mask."""
        names = self._set.shown_with({name})
        event = self.reasoner.mask(names)
        self._events[event] = EventClass(type=self._set.type_of(name), symbols=names & self._set.symbols.keys())
        return event

    def observed(self, state: PatternState, steps: Iterable[tuple[Seen, str]]) -> list[_Candidate]:
        """Return the steps of the process in ``steps`` that are possible while a partial match is at ``state``.

        Each result is a pair of masks: the names seen, and the names of the next event. Steps with few seen names come
        first.
        """
        bound = self._held(state).types
        return [
            (self.reasoner.mask(seen), self._event(event))
            for seen, event in sorted(steps, key=lambda step: (len(step[0]), sorted(step[0]), step[1]))
            if bound <= seen and event not in seen
        ]

    def conceivable(self, state: PatternState, groups: Iterable[tuple[str, ...]]) -> Iterator[_Candidate]:
        """Yield pairs of masks: a smallest prefix (names seen), and an event that can come next.

        Only prefixes are tried at which a partial match can be at ``state``. Each member of a group is tried as the
        event. The prefix has the bound events and the group's other members.
        """
        bound, remainder = self._held(state), remainder_of(self._query, state)
        holding, needed = self.reasoner.goal(bound), self.reasoner.goal(remainder).needed
        for names in groups:
            for last in names:
                event, others = self._event(last), 0
                for other in names:
                    others |= 0 if other == last else self._event(other)
                seen = self._least_prefix(holding.needed | others, event, needed)
                if event & ~seen and self._may_come(seen, event, holding):
                    yield seen, event

    def _held(self, state: PatternState) -> Remainder:
        term = self._query.terms[state.term]
        return Remainder(term.atoms, term.before).only(state.bound)

    def _least_prefix(self, seen: int, event: int, needed: int) -> int:
        """Return the smallest superset of the names ``seen`` after which ``event`` can come.

        A name is added if the seen names and the event require it, and it cannot follow the event. A name is also added
        if the seen and ``needed`` names require it, and it cannot follow the seen names.
        """
        closure, blocked = self.reasoner.closure, self.reasoner.blocked
        while True:
            after, required = seen | event, seen | needed
            missed = closure(after) & ~after & blocked(after) | closure(required) & ~required & blocked(seen)
            if not missed:
                return seen
            seen |= self.reasoner.shown_with(missed)

    def _may_come(self, seen: int, event: int, bound: Goal) -> bool:
        reasoner = self.reasoner
        return (
            not event & reasoner.blocked(seen)
            and reasoner.is_alive(seen | event, self._nothing)
            and reasoner.is_alive(seen, self._nothing)
            and reasoner.can_be_ordered(bound, seen & ~bound.needed)
        )


def _groups(constraint_set: ConstraintSet, reasoner: Reasoner, most_pairs: int) -> list[tuple[str, ...]]:
    """Return single events, and pairs of events that may terminate matches only together.

    In a pair, one event requires or shows a name in the body of a long clause, or each event requires other names. If
    there are more than ``most_pairs`` pairs, only single events are returned. Events that show few names come first.
    """
    names_with = {name: constraint_set.shown_with({name}) for name in _remembered(constraint_set)}
    names = sorted(names_with, key=lambda name: (len(names_with[name]), name))
    closures = {name: reasoner.closure(reasoner.mask((name,))) for name in names}
    in_bodies = reasoner.mask({name for clause in constraint_set.clauses if clause.is_long for name in clause.body})
    leading = {name for name in names if closures[name] & in_bodies}
    obliging = {name for name in names if closures[name] & ~reasoner.mask(names_with[name])}
    joined = (pair for pair in combinations(names, 2) if leading.intersection(pair) or obliging.issuperset(pair))
    pairs = list(islice(joined, most_pairs + 1))
    singles: list[tuple[str, ...]] = [(name,) for name in names]
    return [*singles, *pairs] if len(pairs) <= most_pairs else singles


def _remembered(constraint_set: ConstraintSet) -> frozenset[str]:
    return constraint_set.end_events.union(*(part.names for part in constraint_set.constraints))

"""Forecasts of the events that terminate partial matches early, with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from constraints.analysing.frequencies import Frequencies
from constraints.explaining.failing import FailingCondition
from constraints.model import ConstraintSet
from constraints.wording import listed_atoms
from nfa import Atom, PatternState, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyEnding:
    """An event that terminates partial matches at a pattern state.

    Attributes:
        probability: Share of traces in which the event occurs, among the traces that contain the state's bound atoms.
        first: Share of these traces in which this event is the first that terminates the partial matches.
    """

    condition: FailingCondition
    probability: float
    first: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateForecast:
    """The forecast for the partial matches at one pattern state.

    ``bound`` has the bound atoms in the order of the pattern's text. ``probability`` is the share of traces with an
    early termination among the traces with these atoms. ``endings`` are the terminating events, sorted by
    ``LikelyEnding.first``, descending, then by name.
    """

    state: PatternState
    bound: tuple[Atom, ...]
    endings: tuple[LikelyEnding, ...]
    probability: float

    @property
    def earliest(self) -> LikelyEnding | None:
        return self.endings[0] if self.endings else None

    @property
    def text(self) -> str:
        opening = f"with {listed_atoms(self.bound)} bound" if self.bound else "with nothing bound"
        if not self.endings:
            return f"{opening}, nothing ends the partial match before the trace ends"
        names = ", ".join(
            f"{ending.condition.explanation.event_name}{ending.condition.explanation.circumstances} "
            f"({ending.probability:.0%})"
            for ending in self.endings
        )
        return f"{opening}, it is terminated early in {self.probability:.0%} of the traces, by {names}"


def forecast(
    query: Query, constraint_set: ConstraintSet, conditions: Iterable[FailingCondition]
) -> tuple[StateForecast, ...]:
    """Compute the forecast of each pattern state from ``conditions``, the events that terminate partial matches early.

    Events are assumed to be independent unless constraints relate them. If constraints do not order two events, both
    orders are assumed to be equally likely.
    """
    frequencies = Frequencies(constraint_set)
    by_state: dict[PatternState, list[FailingCondition]] = {state: [] for state in query.states}
    for condition in conditions:
        by_state[condition.state].append(condition)
    return tuple(_of_state(query, constraint_set, state, failing, frequencies) for state, failing in by_state.items())


def _of_state(
    query: Query,
    constraint_set: ConstraintSet,
    state: PatternState,
    conditions: list[FailingCondition],
    frequencies: Frequencies,
) -> StateForecast:
    bound = tuple(query.terms[state.term].atoms[index] for index in sorted(state.bound))
    names = frozenset[str]().union(*(constraint_set.shown_by(atom) for atom in bound))
    likely = [frequencies.of_all(_events(condition), condition=names) for condition in conditions]
    endings = []
    for place, condition in enumerate(conditions):
        others = [
            _share_before(constraint_set, other, condition) * likely[number]
            for number, other in enumerate(conditions)
            if number != place
        ]
        first = likely[place] * prod(1 - share for share in others)
        endings.append(LikelyEnding(condition=condition, probability=likely[place], first=first))
    endings.sort(key=lambda ending: (-ending.first, ending.condition.event_type, ending.condition.explanation.earlier))
    return StateForecast(
        state=state,
        bound=bound,
        endings=tuple(endings),
        probability=1 - prod(1 - share for share in likely),
    )


def _events(condition: FailingCondition) -> frozenset[str]:
    return frozenset({condition.event_type, *condition.explanation.shown, *condition.explanation.earlier})


def _share_before(constraint_set: ConstraintSet, condition: FailingCondition, other: FailingCondition) -> float:
    if constraint_set.comes_before(condition.event_type, other.event_type):
        return 1.0
    return 0.0 if constraint_set.comes_before(other.event_type, condition.event_type) else 0.5

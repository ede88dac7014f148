"""Static analysis of patterns and constraints, before the first event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constraints.analysing.forecast import StateForecast, forecast
from constraints.analysing.profit import STATE_LIMIT, IdleParts, idle_parts
from constraints.analysing.redundancy import RedundantAtom, redundant_atoms
from constraints.analysing.satisfiability import DeadTerm, QueryCheck, check_query
from constraints.explaining.failing import failing_conditions
from constraints.model import ConstraintSet
from nfa import Query

PAIR_LIMIT = 0  # pairs of events are not examined here, because they cost more than the rest of the analysis
WALK_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternAnalysis:
    """The analysis of one pattern.

    ``states`` has a forecast for each pattern state, and is empty if the pattern can never match.
    """

    pattern: str
    check: QueryCheck
    redundant: tuple[RedundantAtom, ...]
    states: tuple[StateForecast, ...]

    @property
    def can_match(self) -> bool:
        return self.check.is_satisfiable

    @property
    def dead(self) -> tuple[DeadTerm, ...]:
        return self.check.dead


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analyses of all patterns of a stream, and the constraints that have no effect on any pattern (``idle``)."""

    patterns: tuple[PatternAnalysis, ...]
    idle: IdleParts


def analyse(constraint_set: ConstraintSet, queries: Sequence[Query], *, state_limit: int = STATE_LIMIT) -> Analysis:
    """Analyse all patterns that run under a satisfiable constraint set.

    At most ``state_limit`` monitor states are visited in the search for constraints that have no effect on any pattern.
    """
    return Analysis(
        patterns=tuple(_of_pattern(constraint_set, query) for query in queries),
        idle=idle_parts(constraint_set, queries, state_limit=state_limit),
    )


def _of_pattern(constraint_set: ConstraintSet, query: Query) -> PatternAnalysis:
    check = check_query(query, constraint_set)
    if not check.is_satisfiable:
        return PatternAnalysis(pattern=query.pattern.name, check=check, redundant=(), states=())
    conditions = failing_conditions(query, constraint_set, pair_limit=PAIR_LIMIT, walk_limit=WALK_LIMIT)
    dead_terms = {term.term for term in check.dead}
    return PatternAnalysis(
        pattern=query.pattern.name,
        check=check,
        redundant=redundant_atoms(query, constraint_set),
        states=tuple(
            state for state in forecast(query, constraint_set, conditions) if state.state.term not in dead_terms
        ),
    )

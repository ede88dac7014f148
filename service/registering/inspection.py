"""Analysis of patterns and constraint sets before the first event, as values and as plain JSON.

The documents are part of the API and of ``forestall check --json``. So members are only added, never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from constraints import (
    Analysis,
    Choice,
    ConstraintSet,
    DeadTerm,
    FailingCondition,
    IdleParts,
    PatternAnalysis,
    Process,
    QueryCheck,
    RedundantAtom,
    StateForecast,
    analyse,
    check_query,
    choose,
    failing_conditions,
    forecast,
    redundant_atoms,
)
from nfa import Query, describe_atom

Document = dict[str, Any]


# With more, finding the failing conditions can take minutes, because the work grows with the cube of the steps.
_MOST_STEPS = 100
_MOST_STATES = 1_100


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternInspection:
    """The analysis of one pattern under constraints.

    It has the alternatives that can never match, the failing conditions, the redundant steps, and a forecast for each
    state of the pattern.
    """

    check: QueryCheck
    conditions: tuple[FailingCondition, ...] = ()
    redundant: tuple[RedundantAtom, ...] = ()
    states: tuple[StateForecast, ...] = ()

    def to_document(self) -> Document:
        return {
            "dead_alternatives": [dead_document(term) for term in self.check.dead],
            "failing_conditions": [condition_document(condition) for condition in self.conditions],
            "redundant_steps": [redundant_document(atom) for atom in self.redundant],
            "states": [state_document(state) for state in self.states],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInspection:
    """The analysis of a constraint set and its patterns. The monitor distinguishes the event types in ``choice``."""

    choice: Choice
    analysis: Analysis

    def to_document(self) -> Document:
        return {
            "monitor": choice_document(self.choice),
            "patterns": [analysis_document(pattern) for pattern in self.analysis.patterns],
            "unused": idle_document(self.analysis.idle),
        }


def is_explained(query: Query) -> bool:
    """Return whether a pattern is small enough to list its failing conditions. A repetition counts as several steps."""
    steps = max((len(term.atoms) for term in query.terms), default=0)
    return steps <= _MOST_STEPS and len(query.states) <= _MOST_STATES


def inspect_pattern(query: Query, constraint_set: ConstraintSet, *, is_ended: bool = True) -> PatternInspection:
    """Analyse one pattern under constraints. If ``is_ended`` is False, only check which alternatives can match."""
    check = check_query(query, constraint_set)
    if not is_ended or not check.is_satisfiable:
        return PatternInspection(check=check)
    conditions = failing_conditions(query, constraint_set)
    return PatternInspection(
        check=check,
        conditions=conditions,
        redundant=redundant_atoms(query, constraint_set),
        states=forecast(query, constraint_set, conditions),
    )


def inspect_set(queries: Sequence[Query], constraint_set: ConstraintSet) -> SetInspection:
    """Analyse a constraint set with the patterns whose partial matches it may terminate."""
    return SetInspection(choice=choose(constraint_set, queries), analysis=analyse(constraint_set, queries))


def condition_document(condition: FailingCondition) -> Document:
    """Return a failing condition as plain JSON."""
    explanation = condition.explanation
    return {
        "event": condition.event_type or explanation.event_name,
        "symbols": list(explanation.shown),
        "required_before": list(explanation.earlier),
        "bound": [describe_atom(atom) for atom in condition.bound],
        "form": explanation.form,
        "constraints": [str(part) for part in explanation.constraints],
        "atoms": [describe_atom(atom) for atom in explanation.atoms],
        "forbidden": list(explanation.forbidden),
        "is_takable": condition.is_takable,
        "text": condition.text,
    }


def dead_document(term: DeadTerm) -> Document:
    """Return an alternative that can never match, as plain JSON. Alternatives are numbered from 1."""
    return {
        "alternative": term.term + 1,
        "atoms": [describe_atom(atom) for atom in term.atoms],
        "constraints": [str(part) for part in term.constraints],
        "forbidden": list(term.forbidden),
        "text": term.text,
    }


def redundant_document(atom: RedundantAtom) -> Document:
    """Return a redundant step as plain JSON. Alternatives are numbered from 1."""
    return {"alternative": atom.term + 1, "atom": describe_atom(atom.atom), "text": atom.text}


def state_document(state: StateForecast) -> Document:
    """Return the forecast for partial matches in a pattern state, as plain JSON."""
    earliest = state.earliest
    return {
        "alternative": state.state.term + 1,
        "bound": [describe_atom(atom) for atom in state.bound],
        "probability": round(state.probability, 4),
        "earliest": None
        if earliest is None
        else {
            "event": earliest.condition.event_type or earliest.condition.explanation.event_name,
            "required_before": list(earliest.condition.explanation.earlier),
            "form": earliest.condition.explanation.form,
            "probability": round(earliest.probability, 4),
        },
        "text": state.text,
    }


def choice_document(choice: Choice) -> Document:
    """Return the event types that the monitor distinguishes, as plain JSON."""
    return {
        "distinguishes": sorted(choice.distinguished),
        "estimated_states": choice.estimated_states,
        "max_states": choice.budget,
        "is_whole": choice.is_whole,
        "left_out": [str(part) for part in choice.left_out],
        "watched": [str(clause) for clause in choice.watched],
        "candidates": [
            {
                "names": sorted(candidate.names),
                "benefit": candidate.benefit,
                "states_added": candidate.states_added,
                "is_chosen": candidate.is_chosen,
            }
            for candidate in choice.candidates
        ],
        "text": choice.text,
    }


def idle_document(idle: IdleParts) -> Document:
    """Return the constraints from which no pattern benefits, as plain JSON."""
    return {
        "constraints": [str(part) for part in idle.parts],
        "visited_states": idle.visited,
        "is_complete": idle.is_complete,
    }


def set_document(constraint_set: ConstraintSet) -> Document:
    """Return a constraint set as plain JSON, with its constraints in words."""
    settings = constraint_set.settings
    return {
        "constraints": [str(constraint) for constraint in constraint_set.constraints],
        "rules": [str(rule) for rule in constraint_set.rules],
        "symbols": sorted(constraint_set.symbols),
        "end_events": sorted(constraint_set.end_events),
        "settings": {
            "prune": settings.prune.value,
            "on_violation": settings.on_violation.value,
            "unknown_types": settings.unknown_types,
            "completion": settings.completion,
            "types": sorted(settings.types),
            "frequencies": dict(sorted(settings.frequencies.items())),
            "max_monitor_states": settings.max_monitor_states,
        },
        "followed_workflow": None if constraint_set.process is None else process_document(constraint_set.process),
    }


def process_document(process: Process) -> Document:
    """Return the workflow in a constraint set as plain JSON."""
    automaton = process.automaton
    return {
        "name": process.workflow,
        "version": process.version,
        "used": "tables" if automaton is None else "exact",
        "state_count": None if automaton is None else len(automaton),
        "derived_constraints": sorted(map(str, process.derived)),
        "derived_end_events": sorted(process.derived_ends),
    }


def analysis_document(pattern: PatternAnalysis) -> Document:
    """Return one pattern's part of the analysis of a constraint set, as plain JSON."""
    return {
        "pattern": pattern.pattern,
        "can_match": pattern.can_match,
        "dead_alternatives": [dead_document(term) for term in pattern.dead],
        "redundant_steps": [redundant_document(atom) for atom in pattern.redundant],
        "states": [state_document(state) for state in pattern.states],
    }

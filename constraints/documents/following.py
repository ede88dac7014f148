"""Joins hand-written constraints with those of a workflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from constraints.model import Constraint, ConstraintSet, Process
from constraints.process.automaton import ProcessAutomaton


def following(
    own: ConstraintSet,
    *,
    workflow: str,
    version: int,
    constraints: Iterable[Constraint],
    end_events: Iterable[str],
    automaton: ProcessAutomaton | None,
) -> ConstraintSet:
    """A set whose traces follow a workflow and keep the hand-written constraints.

    Args:
        own: The hand-written constraints and settings; another workflow that it follows is dropped.
        workflow: Name of the workflow.
        version: Its version, from 1.
        constraints: Constraints that every complete trace of the workflow keeps.
        end_events: Types that nothing follows in the workflow.
        automaton: The language of the workflow, for exact mode; None: only the constraints are used.
    """
    hand_written, derived = own.own, tuple(constraints)
    process = Process(
        workflow=workflow,
        version=version,
        derived=frozenset(derived),
        derived_ends=frozenset(end_events) - hand_written.end_events,
        automaton=automaton,
    )
    process = replace(process, derived=process.derived - frozenset(hand_written.constraints))
    return replace(
        hand_written,
        constraints=(*hand_written.constraints, *derived),
        end_events=hand_written.end_events | process.derived_ends,
        process=process,
    )

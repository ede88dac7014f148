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
    """A set whose traces follow a workflow and keep the hand-written constraints in ``own``.

    Another workflow that ``own`` follows is dropped; versions count from 1. ``constraints`` hold on every complete
    trace of the workflow, and nothing follows its ``end_events``. Without an automaton only the constraints are used.
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

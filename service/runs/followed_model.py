"""The constraint set of a run whose transactions follow a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constraints import ConstraintSet
from service.registering.joining import Derived
from service.runs.stream_report import WorkflowUse
from workflows import WorkflowModel, compile_workflow

if TYPE_CHECKING:
    from service.stores import FollowMode  # imports Redis, which a run does not need


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedModel:
    """A constraint set joined with the constraints of a model."""

    constraint_set: ConstraintSet
    use: WorkflowUse
    warnings: Sequence[str]
    explanation: str


def follow_model(own: ConstraintSet | None, model: WorkflowModel, name: str, mode: FollowMode) -> FollowedModel:
    """Join the constraints of a model with ``own``, the constraints that a user wrote, or None if there are none."""
    compiled = compile_workflow(model)
    derived = Derived(
        workflow=name,
        version=1,
        extraction=compiled.extraction,
        cover=(),
        automaton=compiled.automaton,
        without_automaton=compiled.without_automaton,
    )
    use = _use(derived, is_exact=derived.is_exact(mode))
    return FollowedModel(
        constraint_set=derived.joined_to(own or ConstraintSet(), mode),
        use=use,
        warnings=derived.extraction.warnings,
        explanation=f"{name}: {_explanation(use, derived, mode)}",
    )


def _use(derived: Derived, *, is_exact: bool) -> WorkflowUse:
    automaton = derived.automaton
    return WorkflowUse(
        mode="exact" if is_exact else "tables",
        method=derived.extraction.method.value,
        states=None if automaton is None else len(automaton),
    )


def _explanation(use: WorkflowUse, derived: Derived, mode: FollowMode) -> str:
    if use.mode == "exact":
        return f"followed exactly, by its automaton of {use.states} states"
    why = "as asked" if mode == "tables" else derived.without_automaton
    return f"followed by the {len(derived.extraction.constraints)} constraints that hold in it ({use.method}), {why}"

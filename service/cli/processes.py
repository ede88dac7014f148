"""The constraint set of ``forestall match --workflow``, which follows a model."""

from __future__ import annotations

from rich.markup import escape

from constraints import ConstraintSet
from service.cli.inputs import progress_bar, standard_error
from service.cli.model_choice import ModelChoice
from service.cli.models import read_model_file
from service.registering.joining import Derived
from service.runs.stream_report import WorkflowUse
from service.stores import FollowMode
from workflows import compile_workflow


def follow_model(own: ConstraintSet | None, choice: ModelChoice) -> tuple[ConstraintSet, WorkflowUse]:
    """A hand-written set, or none, joined with the constraints of a model; notices go to standard error."""
    model = read_model_file(choice.path, choice.map_file, choice.process)
    with progress_bar(f"compiling {choice.path.name}"):
        compiled = compile_workflow(model)
    name = model.name or choice.path.stem
    derived = Derived(
        workflow=name,
        version=1,
        extraction=compiled.extraction,
        cover=(),
        automaton=compiled.automaton,
        without_automaton=compiled.without_automaton,
    )
    joined = derived.joined_to(own or ConstraintSet(), choice.mode)
    use = _use(derived, is_exact=derived.is_exact(choice.mode))
    for warning in compiled.extraction.warnings:
        standard_error.print(f"[yellow]warning[/yellow]: {escape(warning)}")
    standard_error.print(f"[yellow]notice[/yellow]: {escape(f'{name}: {_explanation(use, derived, choice.mode)}')}")
    return joined, use


def _use(derived: Derived, *, is_exact: bool) -> WorkflowUse:
    automaton = derived.automaton
    return WorkflowUse(
        mode="exact" if is_exact else "tables",
        method=derived.extraction.method.value,
        states=None if automaton is None else len(automaton),
    )


def _explanation(use: WorkflowUse, derived: Derived, mode: FollowMode) -> str:
    """A sentence about the mode in which a process is followed, and why."""
    if use.mode == "exact":
        return f"followed exactly, by its automaton of {use.states} states"
    why = "as asked" if mode == "tables" else derived.without_automaton
    return f"followed by the {len(derived.extraction.constraints)} constraints that hold in it ({use.method}), {why}"

"""The constraint set of ``forestall match --workflow``, which follows a model."""

from __future__ import annotations

from rich.markup import escape

from constraints import ConstraintSet
from service.cli.inputs import progress_bar, standard_error
from service.cli.model_choice import ModelChoice
from service.cli.models import read_model_file
from service.runs import followed_model
from service.runs.stream_report import WorkflowUse


def follow_model(own: ConstraintSet | None, choice: ModelChoice) -> tuple[ConstraintSet, WorkflowUse]:
    """A hand-written set, or none, joined with the constraints of a model; notices go to standard error."""
    model = read_model_file(choice.path, choice.map_file, choice.process)
    with progress_bar(f"compiling {choice.path.name}"):
        found = followed_model.follow_model(own, model, model.name or choice.path.stem, choice.mode)
    for warning in found.warnings:
        standard_error.print(f"[yellow]warning[/yellow]: {escape(warning)}")
    standard_error.print(f"[yellow]notice[/yellow]: {escape(found.explanation)}")
    return found.constraint_set, found.use

"""Reads model files for commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.inputs import progress_bar, read_text, reason_of
from service.cli.output import standard_error
from service.errors import FileUnreadable
from workflows import ModelRefused, ReadOptions, WorkflowModel, read_mapping, read_model

if TYPE_CHECKING:
    from constraints import ConstraintSet
    from service.cli.model_choice import ModelChoice
    from service.runs.stream_report import WorkflowUse

MAX_MODEL_BYTES = 64_000_000


def read_model_file(path: Path, map_file: Path | None = None, process: str | None = None) -> WorkflowModel:
    """Read a BPMN, PNML or YAML model. ``map_file`` maps its tasks to event types, ``process`` is a process id."""
    mapping = read_mapping(read_text(map_file)) if map_file is not None else {}
    try:
        return read_model(read_content(path), ReadOptions(process=process, mapping=mapping))
    except ModelRefused as refusal:
        refusal.message = f"{path}: {refusal.message}"
        raise


def read_content(path: Path, most_bytes: int = MAX_MODEL_BYTES, what: str = "model") -> bytes:
    """Read a file's bytes. Raises ``FileUnreadable`` if it has more than ``most_bytes``."""
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be read: {reason_of(error)}", file=str(path)) from error
    if len(content) > most_bytes:
        raise FileUnreadable(f"{path} has more than {most_bytes} bytes, more than any {what}", file=str(path))
    return content


def follow_model(own: ConstraintSet | None, choice: ModelChoice) -> tuple[ConstraintSet, WorkflowUse]:
    """Join the constraints of a model with ``own``, a set that a user wrote, and print notices about the model.

    Returns the joined set, and how the model is used.
    """
    from service.runs import followed_model  # noqa: PLC0415 - other readers of models do not need it

    model = read_model_file(choice.path, choice.map_file, choice.process)
    with progress_bar(f"compiling {choice.path.name}"):
        followed = followed_model.follow_model(own, model, model.name or choice.path.stem, choice.mode)
    for warning in followed.warnings:
        standard_error.warning(warning)
    standard_error.notice(followed.explanation)
    return followed.constraint_set, followed.use

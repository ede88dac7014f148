"""Options for the model that a file's transactions follow. The model reader is imported only if a model is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.signatures import Options, in_place_of

if TYPE_CHECKING:
    from service.stores import FollowMode  # imports Redis, which reading a file does not need

Model = Annotated[Path | None, typer.Option(help="Model that the transactions follow: BPMN, PNML or YAML.")]
MapFile = Annotated[Path | None, typer.Option("--map", help="JSON or YAML file that maps tasks to event types.")]
Process = Annotated[str | None, typer.Option(help="Id of the process, if the model has several.")]
Exact = Annotated[bool, typer.Option("--exact", help="Follow the model's automaton; fail if it has none.")]
Tables = Annotated[bool, typer.Option("--tables", help="Follow only the constraints that hold in the model.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model to follow: its file, the file that maps its tasks to event types, the id of a process, and the mode."""

    path: Path
    map_file: Path | None = None
    process: str | None = None
    mode: FollowMode = "auto"


_OPTIONS: Options = {
    "workflow": (Model, None),
    "map_file": (MapFile, None),
    "process": (Process, None),
    "exact": (Exact, False),
    "tables": (Tables, False),
}


def _model_choice(
    *, workflow: Path | None, map_file: Path | None, process: str | None, exact: bool, tables: bool
) -> ModelChoice | None:
    if exact and tables:
        raise typer.BadParameter("give --exact or --tables, not both", param_hint="--exact")
    if workflow is None:
        options = {"--map": map_file, "--process": process, "--exact": exact, "--tables": tables}
        if idle := [option for option, value in options.items() if value]:
            raise typer.BadParameter("this option needs a model: give one with --workflow", param_hint=idle[0])
        return None
    mode: FollowMode = "exact" if exact else "tables" if tables else "auto"
    return ModelChoice(path=workflow, map_file=map_file, process=process, mode=mode)


with_model = in_place_of("model", _OPTIONS, _model_choice)
"""A decorator that replaces the parameter ``model``, a ``ModelChoice`` or None, by the options of a model."""

"""``forestall constraints``: the constraints of a model, and the constraint sets of the running service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from constraints import Constraint
from service.cli.calling import Caller, Commands
from service.cli.choices import OutputFormat
from service.cli.inputs import progress_bar, read_text
from service.cli.model_choice import MapFile, Process
from service.cli.models import read_model_file
from service.cli.output import counted, echo_json, printable, standard_error
from service.cli.resources import Resource, Table, add_list_of_stream, add_show
from workflows import CompiledWorkflow, Method, compile_workflow, minimal_cover


class _ModelFirst(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # this class is private in typer
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["derive", *args]
        return super().parse_args(ctx, args)


constraints = Commands(
    cls=_ModelFirst,
    help="Constraints of a model file ('forestall constraints MODEL') or of the streams of the running service.",
)


@constraints.command()
def derive(
    model: Annotated[Path, typer.Argument(help="Model: BPMN 2.0, PNML, or a process tree as YAML.")],
    map_file: MapFile = None,
    process: Process = None,
    output: Annotated[OutputFormat, typer.Option(help="Output format; JSON always has all constraints.")] = "text",
    full: Annotated[
        bool, typer.Option("--full", help="List all constraints, including those that follow from others.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
) -> None:
    """Derive the constraints that hold on every complete trace of a workflow model."""
    is_json = is_json or output == "json"
    read = read_model_file(model, map_file, process)
    with progress_bar(f"compiling {model.name}"):
        compiled = compile_workflow(read)
    if is_json:
        echo_json(compiled.extraction.to_document())
    else:
        _print(compiled, is_full=full)


_SETS = Resource(
    path="/constraints",
    one="stream",
    listed="the streams of the running service that have a constraint set",
    table=Table(("stream", "version", "created_at")),
)

add_list_of_stream(constraints, _SETS)
add_show(constraints, _SETS, "the constraint set of a stream of the running service")


@constraints.command("upload")
def upload_constraints(
    client: Caller,
    file: Annotated[Path, typer.Argument(help="Constraint document, YAML or JSON.")],
    stream: Annotated[str | None, typer.Option(help="The stream, if the document does not name it.")] = None,
) -> None:
    """Set the constraints of a stream of the running service, for transactions that begin later."""
    is_json_text = file.suffix.lower() == ".json"
    constraint_set = client.constraints.create(
        read_text(file), stream=stream, media_type="application/json" if is_json_text else "application/yaml"
    )
    count = counted(len(constraint_set["constraints"]) + len(constraint_set["rules"]), "constraint")
    client.say(constraint_set, f"{constraint_set['stream']}: version {constraint_set['version']}, {count}")
    if client.is_json:
        return
    for text in constraint_set["notices"]:
        standard_error.notice(printable(text))
    for text in constraint_set["warnings"]:
        standard_error.warning(printable(text))


_KINDS = {
    "prior": "no event of the second type is ever followed by one of the first",
    "exclusive": "never together in one trace",
    "require": "the first never without the second",
    "existence": "in every trace",
    "implication": "the last wherever all the others are",
    "not_together": "never all together in one trace",
}


_METHODS = {
    Method.COMPOSITIONAL: "found block by block (compositional): all that hold",
    Method.AUTOMATON: "found in the automaton: all that hold",
    Method.STRUCTURAL: "found in the structure of the net (structural): some of those that hold",
}


def _print(compiled: CompiledWorkflow, *, is_full: bool) -> None:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    extraction = compiled.extraction
    listed = extraction.constraints if is_full else minimal_cover(extraction)
    everything = len(extraction.constraints)
    console.print(
        f"{compiled.model.name or 'the model'}: {_language(compiled)}; constraints {_METHODS[extraction.method]}"
    )
    console.print(f"events: {_listed(extraction.events)}")
    console.print(f"end events: {_listed(extraction.end)}")
    part = "" if len(listed) == everything else "; all others follow from these and the end events, --full lists them"
    console.print(f"{len(listed)} of {counted(everything, 'constraint')}{part}")
    for kind, meaning in _KINDS.items():
        _print_kind(console, compiled, meaning, [constraint for constraint in listed if constraint.kind == kind])
    for warning in extraction.warnings:
        console.print(f"warning: {warning}")


def _print_kind(console: Console, compiled: CompiledWorkflow, meaning: str, group: Sequence[Constraint]) -> None:
    if group:
        console.print(f"\n{meaning} ({len(group)})")
    for constraint in group:
        origin = compiled.extraction.origins.get(constraint, "")
        console.print(f"  {constraint}{f'    {origin}' if origin else ''}")


def _language(compiled: CompiledWorkflow) -> str:
    if compiled.automaton is None:
        return f"no automaton, {compiled.without_automaton}"
    return f"automaton of {counted(len(compiled.automaton), 'state')}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"

"""``forestall conformance``: whether past transactions follow a model, and at which event they leave it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from service.cli.choices import OutputFormat
from service.cli.columns import Classifier
from service.cli.inputs import Key, Times, TimesOption, chosen_key, progress_bar
from service.cli.model_choice import MapFile, Process
from service.cli.models import read_model_file
from service.cli.output import counted, echo_json
from service.cli.past import EndEvents, read_log
from service.runs.past_log import PastLog
from workflows import CompiledWorkflow, LogConformance, check_log, compile_workflow

_MOST_SHOWN = 20
_MOST_ALLOWED = 8


def conformance(
    model: Annotated[Path, typer.Argument(help="Model: BPMN 2.0, PNML, or a process tree as YAML.")],
    log: Annotated[Path, typer.Argument(help="Past events: .jsonl, .csv or .xes, each also .gz.")],
    map_file: MapFile = None,
    process: Process = None,
    output: Annotated[OutputFormat, typer.Option(help="Output format.")] = "text",
    is_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    key: Key = None,
    times: Annotated[Times, TimesOption] = ("event"),
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition (Pay+complete).")] = False,
    classifier: Classifier = None,
    end: EndEvents = None,
) -> None:
    """Compare past transactions with a model. Exit status 1: a transaction deviates from the model."""
    is_json = is_json or output == "json"
    read = read_model_file(model, map_file, process)
    with progress_bar(f"compiling {model.name}"):
        compiled = compile_workflow(read)
    past = read_log(
        log, key=chosen_key(key), times=times, lifecycle=lifecycle, classifier=classifier, end_events=end or ()
    )
    with progress_bar(f"comparing {counted(len(past.traces), 'transaction', form=',')}"):
        report = check_log(compiled, past.traces)
    if is_json:
        echo_json(_document(compiled, past, report))
    else:
        _print(past, report)
    raise typer.Exit(0 if report.conforming == report.traces else 1)


def _document(compiled: CompiledWorkflow, past: PastLog, report: LogConformance) -> dict[str, Any]:
    return {
        "workflow": compiled.model.name,
        "log": past.summary.name,
        "traces": report.traces,
        "events": past.summary.events,
        "conforming": report.conforming,
        "complete": report.complete,
        "fitting_share": round(report.fitting_share, 6),
        "complete_share": round(report.complete_share, 6),
        "is_exact": report.is_exact,
        "method": compiled.extraction.method.value,
        "deviations": [
            {
                "event": deviation.event,
                "kind": deviation.kind,
                "allowed": list(deviation.allowed),
                "broken_constraints": [str(part) for part in deviation.broken],
                "traces": deviation.traces,
                "example": past.keys[deviation.example],
            }
            for deviation in report.deviations
        ],
        "unknown": [{"type": name, "traces": count} for name, count in report.unknown],
        "warnings": list(compiled.extraction.warnings),
    }


def _print(past: PastLog, report: LogConformance) -> None:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(
        f"{counted(report.traces, 'transaction')}: {report.conforming} conform ({report.fitting_share:.1%}), "
        f"{report.complete} of them are complete ({report.complete_share:.1%})"
    )
    if not report.is_exact:
        console.print(
            "the model has no automaton; only its constraints were checked, so more transactions may leave it"
        )
    if report.unknown:
        names = ", ".join(f"{name} ({counted(count, 'transaction')})" for name, count in report.unknown)
        console.print(f"event types that are not in the model: {names}")
    if report.deviations:
        console.print("\nfirst events outside the model:")
    for deviation in report.deviations[:_MOST_SHOWN]:
        broken = f", against {', '.join(map(str, deviation.broken))}" if deviation.broken else ""
        console.print(
            f"{deviation.traces:>7}  {deviation.event}, {deviation.kind}{broken}  "
            f"(for example {past.keys[deviation.example]})"
        )
        console.print(f"         allowed: {_listed(deviation.allowed)}")
    if len(report.deviations) > _MOST_SHOWN:
        unlisted = report.deviations[_MOST_SHOWN:]
        traces = counted(sum(deviation.traces for deviation in unlisted), "transaction")
        console.print(f"\nand {len(unlisted)} more, in {traces}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_ALLOWED} more" if len(names) > _MOST_ALLOWED else ""
    return ", ".join(names[:_MOST_ALLOWED]) + more if names else "nothing; the transaction should have ended"

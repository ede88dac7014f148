"""``forestall match``: the library engine on a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.markup import escape

from constraints import ConstraintSet, check_query, check_set
from nfa import Pattern, build_query
from service.cli.inputs import (
    Times,
    progress_bar,
    read_constraint_file,
    read_event_file,
    read_pattern_files,
    require_key,
    told,
)
from service.matching import MatchReport, match_events
from streams import format_time
from streams.readers import ReaderOptions


class Output(StrEnum):
    """Form of the result."""

    TEXT = "text"
    JSON = "json"


def match(
    pattern: Annotated[list[Path], typer.Option(help="Pattern file; repeatable.")],
    events: Annotated[Path, typer.Option(help="Events: .jsonl, .csv or .xes, each also .gz.")],
    constraints: Annotated[Path | None, typer.Option(help="Constraints, JSON or YAML.")] = None,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="Keep doomed runs to the end of their trace.")] = False,
    key: Annotated[str | None, typer.Option(help="Path of the correlation key, such as data.customer.")] = None,
    output: Annotated[Output, typer.Option(help="Form of the result.")] = Output.TEXT,
    times: Annotated[Times, typer.Option(help="'file' takes the order of the file where there are no times.")] = (
        Times.EVENT
    ),
    lifecycle: Annotated[bool, typer.Option(help="XES: types are name+transition.")] = False,
) -> None:
    """Find patterns in an event file, without Spark, Redis or HTTP."""
    patterns = read_pattern_files(pattern)
    require_key(patterns, key)
    constraint_set = read_constraint_file(constraints).constraint_set if constraints else None
    if constraint_set is not None:
        _check(patterns, constraint_set)
    read = read_event_file(events, ReaderOptions(key=key, times=times.order, lifecycle=lifecycle))
    with progress_bar("matching") as (progress, task):
        report = match_events(
            patterns,
            read,
            constraint_set,
            is_pruning=not no_prune,
            progress=lambda done: progress.update(task, completed=done / len(read)),
        )
    if output is Output.JSON:
        typer.echo(orjson.dumps(report.to_document()).decode())
    else:
        _print(report)


def _check(patterns: list[Pattern], constraint_set: ConstraintSet) -> None:
    """Refuse contradictory constraints; say which patterns they make impossible, as an empty result says nothing."""
    check_set(constraint_set)
    for pattern in patterns:
        verdict = check_query(build_query(pattern), constraint_set)
        if not verdict.is_satisfiable:
            reasons = "; ".join(dict.fromkeys(term.text for term in verdict.dead))
            told.print(f"[yellow]notice[/yellow]: {escape(f'{pattern.name} can never match: {reasons}')}")


def _print(report: MatchReport) -> None:
    console = Console(highlight=False, markup=False)
    for found in report.matches:
        console.print(f"{found.pattern}  {found.key}  {format_time(found.start_us)} to {format_time(found.end_us)}")
        console.print("    " + "  ".join(f"{alias}={','.join(ids)}" for alias, ids in found.bindings.items()))
    if not report.matches:
        console.print("no matches")
    if report.ended:
        console.print("\nfirst event after which a pattern can no longer match:")
    for pair in report.ended:
        console.print(f"{pair.ending.pattern}  {pair.ending.key}  {pair.ending.event_id}")
        console.print(f"    {pair.reason}")
    stats = report.stats
    console.print(
        f"\n{stats.events} events, {stats.matches} matches, {stats.endings} ended, "
        f"{stats.deviations} deviating traces, peak {stats.peak_held} held instances"
    )
    if stats.overflow:
        console.print(f"{stats.overflow} matches beyond the limit per event were counted, not listed")

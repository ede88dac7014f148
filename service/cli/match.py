"""``forestall match``: match patterns in a file, in this process.

Modules that only patterns need are imported late, because importing them takes longer than running an SQL query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
import typer

import service
from nfa import Prune
from service.cli.choices import AUTO_FORM, OutputFormat, Suppress, as_seconds, read_lateness, suppress_of
from service.cli.columns import FILE_OPTIONS, DuplicateIds, merged_options, with_options
from service.cli.inputs import (
    Key,
    Times,
    TimesOption,
    chosen_key,
    further_keys,
    progress_bar,
    read_constraint_file,
    read_event_batch,
    read_pattern_files,
    require_keys,
)
from service.cli.model_choice import ModelChoice, with_model
from service.cli.output import counted, standard_error
from service.cli.sql_queries import answers_query
from service.cli.waiting import waiting_on
from streams import EventBatch, KeyForm, Late, StreamDeclaration, Ties
from streams.compiling import JSON_LINES, compile_kernels
from streams.readers import ReaderOptions, reads_by_columns, unread_members
from streams.tables import TableDeclaration, TableRefused, Tables, ValueType, keep_named

if TYPE_CHECKING:
    from constraints import ConstraintSet
    from nfa import Overflow
    from service import RunRules, StreamReport, WorkflowUse


Pruning = Annotated[
    Prune | None,
    typer.Option(help="What to do with partial matches that can no longer complete (default: as in the constraints)."),
]
QueryFile = Annotated[
    Path | None,
    typer.Option(help="SQL file, instead of patterns: SELECT ... FROM events MATCH_RECOGNIZE (...)."),
]
Order = Annotated[Times, TimesOption]
USUALLY_LISTED = "matches,endings,deviations,corrections"
Listed = Annotated[
    str,
    typer.Option(
        metavar="LIST", help="Results to print, separated by commas: matches,timeouts,endings,deviations,corrections."
    ),
]
Beginning = Annotated[
    bool, typer.Option("--open", help="Leave transactions open at the end of the input (default: they end there).")
]
Simultaneous = Annotated[
    Ties, typer.Option(help="Order of events with equal timestamps: as in the file (log), or none (simultaneous).")
]

Lateness = Annotated[
    str | None,
    typer.Option(
        metavar=f"DURATION|{AUTO_FORM}",
        help="Out-of-orderness bound (5 min, or seconds): events within it are sorted by time; auto: it is measured.",
    ),
]
LateEvents = Annotated[
    Late,
    typer.Option(help="What to do with events beyond the lateness bound; process: match them out of order."),
]
Ends = Annotated[list[str] | None, typer.Option(metavar="TYPE", help="Event type that ends a transaction. Repeatable.")]
FurtherKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--further-key",
        metavar="NAME[:TYPE]=PATH",
        help="Further correlation key, such as customer=data.customer: patterns with WHERE \\[customer] are matched "
        "over all events of a customer. Repeatable.",
    ),
]
IdleTimeout = Annotated[
    float | None,
    typer.Option(
        parser=as_seconds,
        metavar="DURATION",
        help="Session gap: end a transaction after this time without an event.",
    ),
]

GivenTables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME[:COLUMN[:TYPE],…]=FILE",
        help="Reference table, .csv, .jsonl or .parquet; the columns are its key (default: the first one). Repeatable.",
    ),
]


@with_options(FILE_OPTIONS)
@with_model
def match(
    context: typer.Context,
    events: Annotated[Path, typer.Option(help="Events: .jsonl, .csv or .xes, each also .gz; .parquet or .arrow.")],
    pattern: Annotated[list[Path] | None, typer.Option(help="Pattern file, text or .json. Repeatable.")] = None,
    sql: QueryFile = None,
    constraints: Annotated[Path | None, typer.Option(help="Constraint document, JSON or YAML.")] = None,
    model: ModelChoice | None = None,
    prune: Pruning = None,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="The same as --prune off.")] = False,
    key: Key = None,
    output: Annotated[OutputFormat, typer.Option(help="Output format.")] = "text",
    is_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    times: Order = "event",
    outputs: Listed = USUALLY_LISTED,
    is_open: Beginning = False,
    ties: Simultaneous = "log",
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition (Pay+complete).")] = False,
    lateness: Lateness = None,
    late: LateEvents = "dead_letter",
    idle_timeout: IdleTimeout = None,
    end: Ends = None,
    further_key: FurtherKeys = None,
    duplicates: DuplicateIds = "drop",
    suppress: Suppress = None,
    table: GivenTables = None,
) -> None:
    """Match patterns in an event file, without Spark, Redis or HTTP."""
    if answers_query(sql, pattern or (), events, is_json=is_json or output == "json"):
        return
    timing, lists = event_time(lateness and read_lateness(lateness), late, idle_timeout), _lists(outputs)
    patterns, key_form = read_pattern_files(pattern or []), chosen_key(key)
    if not further_key:
        require_keys(patterns, key_form)
    constraint_set, use = followed(constraints, model)
    prune = Prune.OFF if no_prune else prune
    timing = replace(timing, key=key_form or "key", keys=further_keys(further_key))
    timing = replace(timing, end_events=tuple(end or ()), ties=ties)
    rules = service.RunRules(patterns=patterns, declaration=timing, own=constraint_set, prune=prune, is_open=is_open)
    rules = replace(rules, suppress=suppress_of(suppress), tables=reduce(_named_table, table or (), Tables()))
    for notice in rules.notices():
        standard_error.notice(notice)
    reader_options = merged_options(reading_of(key_form, times, timing, lifecycle=lifecycle), context.params)
    batch, dropped = _read(events, reader_options, rules)
    for notice in rules.event_notices(batch, unread_members(events, reader_options)):
        standard_error.notice(notice)
    run = service.StreamRun(rules.plan, lists=lists)
    with progress_bar("matching") as (progress, task):
        run.feed(batch, lambda done: progress.update(task, completed=done / len(batch)))
        report = replace(run.report(is_open=is_open), workflow=use, duplicates=dropped)
    _print_json(report) if is_json or output == "json" else _print(report, lists)


def _named_table(tables: Tables, written: str) -> Tables:
    """Add a table from the text ``NAME[:COLUMN[:TYPE],…]=FILE``. Without columns, the first column is the key."""
    head, _, file = written.partition("=")
    name, _, listed = head.partition(":")
    if not name or not file or name in tables.versions:
        why = "names a table twice" if name in tables.versions else "is not NAME=FILE"
        raise TableRefused(f"{written!r} {why}; write for example customers:customer_id=customers.csv")
    columns = [text.strip().partition(":") for text in listed.split(",")] if listed else []
    types = cast(
        "dict[str, ValueType]", {column: kind for column, _, kind in columns if kind}
    )  # checked by TableDeclaration
    form = TableDeclaration(key=tuple(column for column, _, _ in columns) or None, types=types)
    return tables.with_version(keep_named(name, Path(file), form))


def _read(events: Path, options: ReaderOptions, rules: RunRules) -> tuple[EventBatch, int]:
    """Read the events of a file, and count the repeated events that were dropped."""
    with waiting_on() as waiting:
        compile_kernels(
            [*service.exercises_of(rules.plan), *([JSON_LINES] * reads_by_columns(events))], waiting.compiling
        )
    dropped: list[int] = []
    batch = read_event_batch(events, replace(options, on_dropped=dropped.append), rules.read)
    return batch, sum(dropped)


def event_time(lateness: Any, late: Late, idle_timeout: float | None) -> StreamDeclaration:
    """Return the declaration of a stream with the event-time options of a command. ``lateness`` is in its JSON form."""
    members = {"lateness": lateness, "late": late, "idle_timeout": idle_timeout}
    return StreamDeclaration.from_json({"name": "file", "key": "key", **members})


def reading_of(key: KeyForm | None, times: Times, timing: StreamDeclaration, *, lifecycle: bool) -> ReaderOptions:
    """Return the options with which a file is read. If ``timing`` has a lateness, events keep the order of the file."""
    keeps_order = timing.lateness is not None
    return ReaderOptions(key=key, times=times, keeps_order=keeps_order, lifecycle=lifecycle)


def followed(constraints: Path | None, choice: ModelChoice | None) -> tuple[ConstraintSet | None, WorkflowUse | None]:
    """Return the constraints of a file joined with those of a model, and how the model is used.

    If no model is chosen, the second result is None.
    """
    own_set = read_constraint_file(constraints).constraint_set if constraints else None
    if choice is None:
        return own_set, None
    # Imported late, because the model reader takes as long to import as all other imports of this module.
    from service.cli.models import follow_model  # noqa: PLC0415

    return follow_model(own_set, choice)


def _lists(outputs: str) -> tuple[str, ...]:
    from service.runs.results import OLD_LISTS  # noqa: PLC0415
    from service.runs.stream_report import LISTS  # noqa: PLC0415

    names = [OLD_LISTS.get(name.strip(), name.strip()) for name in outputs.split(",")]
    if unknown := sorted(set(names) - set(LISTS)):
        raise typer.BadParameter(
            f"unknown: {', '.join(unknown)}; choose from {','.join(LISTS)}", param_hint="--outputs"
        )
    return tuple(name for name in LISTS if name in names)


def _print_json(report: StreamReport) -> None:
    typer.echo(report.to_json(), nl=False)  # appending a newline in the same call would copy the text
    typer.echo()


def _print(report: StreamReport, lists: Sequence[str]) -> None:
    lines: list[str] = []
    say = lines.append
    _print_matches(say, report)
    if "matches" in lists and not lines:
        say("no matches")
    _print_timeouts(say, report)
    if endings := report.bodies("endings"):
        say("\nearly terminations, each with the event after which the pattern can no longer match:")
        for ending in endings:
            say(f"{ending['pattern']}  {_key_of(ending)}  {ending['event']}")
            say(f"    {ending['reason']}")
    _print_violations(say, report, lists)
    stats = report.stats
    timeouts = f"{counted(stats.timeouts, 'timeout')}, " if stats.timeouts else ""
    say(
        f"\n{counted(stats.events, 'event')}, {counted(stats.matches, 'match', 'matches')}, {timeouts}"
        f"{stats.endings} terminated early, {counted(stats.deviations, 'deviating transaction')}, "
        f"peak {counted(stats.peak_held, 'bound event')}"
    )
    _print_stats(say, report)
    typer.echo("\n".join(lines))


def _print_stats(say: Callable[[str], None], report: StreamReport) -> None:
    stats = report.stats
    if report.suppressed is not None:
        say(counted(report.suppressed, "match was suppressed", "matches were suppressed"))
    if report.late:
        say(counted(report.late, "event was late", "events were late"))
    if report.lateness is not None:
        say(f"lateness {report.lateness.seconds:g} s at the end, {counted(report.lateness.changes, 'change')}")
    if stats.ignored_violations:
        ignored = counted(stats.ignored_violations, "violation was", "violations were")
        say(f"{ignored} ignored and pruning continued: matches may be missing")
    if stats.shadow_lost:
        say(f"{counted(stats.shadow_lost, 'match', 'matches')} would have been lost with pruning")
    if stats.overflow:
        matches, were = ("match", "was") if stats.overflow == 1 else ("matches", "were")
        say(f"{stats.overflow} {matches} beyond the limit per event {were} counted, not listed")
    if stats.lost_runs:
        matches, were = ("match", "was") if stats.lost_runs == 1 else ("matches", "were")
        say(f"{stats.lost_runs} partial {matches} beyond the limit {were} dropped: matches may be missing")
    for overflow in report.overflow:
        say(f"    {_overflow(overflow)}")


def _print_violations(say: Callable[[str], None], report: StreamReport, lists: Sequence[str]) -> None:
    deviations = report.bodies("deviations") if "deviations" in lists else []
    if deviations:
        say("\ndeviations, each with the event that breaks the constraints:")
    for body in deviations:
        released = body["released"]
        lost = f", {counted(released, 'bound event')} had already been dropped: matches with them may be missing"
        say(f"{body['key']}  {body['event']}  {body['kind']}{lost if released else ''}")
        say(f"    {body['reason']}")
    corrections = report.bodies("corrections") if "corrections" in lists else []
    if corrections:
        say("\nretracted matches, which had been reported early:")
    for body in corrections:
        say(f"{body['pattern']}  {_key_of(body)}  {body['event']}")
        say(f"    {shown_bindings(body['bindings'])}")


def _print_matches(say: Callable[[str], None], report: StreamReport) -> None:
    for body in report.each_match():
        detected = f", detected {body['detected_at']}" if body["detected_at"] != body["end"] else ""
        say(f"{body['pattern']}  {_key_of(body)}  {body['start']} to {body['end']}{detected}{_remarks(body)}")
        say(f"    {shown_bindings(body['bindings'])}")
        if "returns" in body:
            columns = (f"{name}: {orjson.dumps(value).decode()}" for name, value in body["returns"].items())
            say("    " + ", ".join(columns))


def _remarks(body: Mapping[str, Any]) -> str:
    remarks = {
        "decided by the constraints": body.get("decided_by") == "constraint",
        "deviating": "deviating" in body,
        "would be lost with pruning": "would_be_lost" in body,
    }
    return "".join(f", {remark}" for remark, applies in remarks.items() if applies)


def _print_timeouts(say: Callable[[str], None], report: StreamReport) -> None:
    timeouts = report.bodies("timeouts")
    if timeouts:
        say("\ntimed out:")
    for timeout in timeouts:
        say(f"{timeout['pattern']}  {_key_of(timeout)}  {timeout['start']}, due {timeout['due']}")
        say(f"    {shown_bindings(timeout['bindings'])}  missing {', '.join(timeout['missing']) or 'nothing'}")


def _key_of(body: Mapping[str, Any]) -> str:
    from service.runs.results import row_text  # noqa: PLC0415

    return f"{body['key']} {row_text(body)}".rstrip() if "row" in body else str(body["key"])


def shown_bindings(bindings: Mapping[str, Sequence[str]]) -> str:
    """Return aliases with the ids of the events bound to them, as text."""
    return "  ".join(f"{alias}={','.join(ids)}" for alias, ids in bindings.items())


def _overflow(overflow: Overflow) -> str:
    where = f"{overflow.key}  at {overflow.event_id}" if overflow.event_id else "as time passed"
    given_up = "" if not overflow.work else ", and the pattern was suspended" if overflow.suspends else ", given up"
    dropped = counted(overflow.dropped, "match", "matches")
    runs = counted(overflow.runs, "partial match", "partial matches")
    return f"{overflow.pattern}  {where}: {dropped}, {runs}{given_up}"

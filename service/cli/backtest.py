"""``forestall backtest``: run patterns over past events on all cores, or compare two versions."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from constraints import ConstraintSet
from nfa import Prune, describe_pattern, parse_pattern
from pipeline import BacktestOptions, BacktestResult, History, history_files, is_small, read_history
from service.backtests.job import Reports, SparkUse, event_notices, run_job, with_output
from service.backtests.plans import AGAINST, TESTED, plan_of
from service.backtests.questions import Question, TriedPattern, ends_in
from service.backtests.reports import COUNTED, LISTED, differences_of, rows_of, summary_document
from service.cli.choices import Suppress, read_lateness, suppress_of
from service.cli.columns import FILE_OPTIONS, merged_options, with_options
from service.cli.inputs import Key, chosen_key, progress_bar, read_pattern_files, reason_of, require_keys
from service.cli.match import (
    Beginning,
    Ends,
    IdleTimeout,
    LateEvents,
    Lateness,
    Order,
    Pruning,
    Simultaneous,
    event_time,
    followed,
    reading_of,
    shown_bindings,
)
from service.cli.model_choice import ModelChoice, with_model
from service.cli.output import counted, echo_json, standard_error
from service.cli.run import files_of, measured_stats, merged, print_results, suspended
from service.cli.waiting import waiting_in
from service.errors import FileUnreadable
from service.projects import SUSPENSIONS, LocalProject, Results, read_project
from service.registering.reports import joined_with
from service.runs import RunPlan, measured_of, numbers_of, results_of, row_text, unkeyed_of, waiting_of
from service.runs.run_rules import constraint_notices, pattern_notices
from service.runs.stream_report import WorkflowUse
from service.settings import load_settings
from shards import RESULT_KINDS, OperatorSuspended, RoundPlan, likeness, read_suppression, routed
from streams import KeyForm, LatenessChange, StreamDeclaration
from streams.readers import reading_of as reading_of_stream

_STREAM = "backtest"
_TERMINATED = 143
_SUMMARY_FILE = "summary.json"
_OF_PROJECTS = ("project", "against", "events", "is_open", "limit", "output", "cores", "is_json")


Past = Annotated[
    list[str],
    typer.Option(
        metavar="[STREAM=]PATH",
        help="Past events: a file, or a folder of .jsonl, .csv, .xes and .parquet. With --project: a file for each "
        "stream. Repeatable.",
    ),
]
Project = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder of a project, all of whose patterns are run (instead of --pattern)."),
]
Against = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH", help="Pattern file to compare with, repeatable. With --project: the folder of another project."
    ),
]
ComparedPruning = Annotated[bool, typer.Option("--compare-pruning", help="Also run without pruning, and compare.")]
ComparedConstraints = Annotated[
    bool, typer.Option("--compare-constraints", help="Also run without constraints and workflow, and compare.")
]
Listed = Annotated[int, typer.Option(min=0, help="Print at most this number of results of each kind.")]
Folder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="New or empty folder to write all results to, as JSON lines.")
]


@with_options(FILE_OPTIONS)
@with_model
def backtest(
    context: typer.Context,
    events: Past,
    pattern: Annotated[list[Path] | None, typer.Option(help="Pattern file, text or .json. Repeatable.")] = None,
    project: Project = None,
    against: Against = None,
    constraints: Annotated[Path | None, typer.Option(help="Constraint document, JSON or YAML.")] = None,
    model: ModelChoice | None = None,
    prune: Pruning = None,
    no_prune: Annotated[bool, typer.Option("--no-prune", help="The same as --prune off.")] = False,
    compare_pruning: ComparedPruning = False,
    compare_constraints: ComparedConstraints = False,
    suppress: Suppress = None,
    key: Key = None,
    end: Ends = None,
    times: Order = "event",
    is_open: Beginning = False,
    ties: Simultaneous = "log",
    lateness: Lateness = None,
    late: LateEvents = "dead_letter",
    idle_timeout: IdleTimeout = None,
    lifecycle: Annotated[bool, typer.Option(help="XES: event types are name+transition (Pay+complete).")] = False,
    output: Folder = None,
    limit: Listed = 100,
    is_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    cores: Annotated[int | None, typer.Option(min=1, help="Number of cores to use (default: all).")] = None,
) -> None:
    """Match patterns in past events, and compare the results of two versions."""
    _begin(context)
    constraint_set, use = followed(constraints, model)
    key_form, timing = chosen_key(key), event_time(lateness and read_lateness(lateness), late, idle_timeout)
    stream = replace(timing, name=_STREAM, key=key_form or "key", ties=ties)
    declaration, constraint_set = _with_ends(stream, end or [], constraint_set)
    question = Question(
        declaration=declaration,
        patterns=_tried_patterns(pattern or [], key_form, declaration, suppress),
        against=_tried_patterns(against or [], key_form, declaration, suppress),
        constraint_set=constraint_set,
        prune=Prune.OFF if no_prune else prune,
        compares_pruning=compare_pruning,
        compares_constraints=compare_constraints,
        is_open=is_open,
    )
    _check(question)
    histories = {_STREAM: _history(context.params, key_form, stream)}
    result = _result(histories, plan_of(question), cores, limit, output)
    for notice in event_notices(question, histories[_STREAM]):
        standard_error.notice(notice)
    _report(result, use, limit, output, is_json=is_json)


def _begin(context: typer.Context) -> None:
    """Run the whole backtest and end the command if ``--project`` is given. Otherwise, check the options."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # the exit also stops Spark
    options = context.params
    if options["project"] is None:
        if not options["pattern"] or len(options["events"]) != 1:
            raise typer.BadParameter("name the pattern files with --pattern and the events once; or a --project")
        return
    _require_only(context, _OF_PROJECTS)
    _run_project(options)
    raise typer.Exit


def _run_project(options: Mapping[str, Any]) -> None:
    folders = [options["project"], *(options["against"] or [])]
    if len(folders) > 2:
        raise typer.BadParameter("with --project, name one other project", param_hint="--against")
    projects = [LocalProject.of(read_project(folder), folder) for folder in folders]
    for local_project in projects:
        local_project.check()
    project, limit = projects[0], options["limit"]
    plan = replace(_compared(projects), is_open=options["is_open"])
    files = files_of(options["events"], project)
    histories = {name: _file_of(path, project.stream(name), plan) for name, path in files.items()}
    result = _result(histories, plan, options["cores"], limit, options["output"])
    results = _results_of(result, TESTED, project.plan)
    numbers = {**numbers_of(result.variants[TESTED].rows), "dead_letters": len(results["dead_letters"])}
    stats = {"events": result.events, "rounds": result.rounds, **_measured(result, project.plan)}
    if notices := _notices(project, histories, result):
        stats["notices"] = notices
    compared = {"comparisons": summary_document(result)["comparisons"], **_changes(result, limit)}
    more = compared if result.comparisons else {}
    print_results(results, project.derived(), numbers, stats, is_json=options["is_json"], more=more)
    if result.comparisons and not options["is_json"]:
        _print_changes(_console(), result, limit)
        _console().print(_compared_table(compared["comparisons"]))
    _require_unsuspended(result, list(zip(folders, projects, strict=True)))


def _results_of(result: BacktestResult, variant: str, plan: RunPlan) -> Results:
    """Return the results of one variant by kind. Variants other than the tested one have only suspensions."""
    places = {kind: kind if variant == TESTED else f"{kind}.{variant}" for kind in RESULT_KINDS}
    return results_of(plan, ((kind, body) for kind, place in places.items() for body in result.rows.get(place, ())))


def _require_unsuspended(result: BacktestResult, projects: Sequence[tuple[Path, LocalProject]]) -> None:
    errors: list[OperatorSuspended] = []
    for variant, (folder, project) in zip((TESTED, AGAINST), projects, strict=False):
        suspensions = _results_of(result, variant, project.plan)[SUSPENSIONS]
        suspensions.sort(key=lambda suspension: suspension.get("time", ""))
        if suspensions:
            errors.append(suspended(suspensions, project, prefix=f"{folder}: " if len(projects) > 1 else ""))
    if errors:
        raise type(errors[0])("\n".join(error.message for error in errors))


def _notices(project: LocalProject, histories: Mapping[str, History], result: BacktestResult) -> dict[str, list[str]]:
    unkeyed = unkeyed_of(project.plan, _counts(result))
    if not is_small(histories):  # Spark has read the events
        return merged(project.notices, unkeyed)
    events = {name: read_history(history) for name, history in histories.items()}
    return merged(project.notices, unkeyed, project.event_notices(events))


def _counts(result: BacktestResult) -> dict[str, dict[str, int | None]]:
    counts: dict[str, dict[str, int | None]] = {}
    for name, number in result.variants[TESTED].measured.items():
        stream, _, counter = name.rpartition("/")
        counts.setdefault(stream, {})[counter] = number
    return counts


def _measured(result: BacktestResult, plan: RunPlan) -> dict[str, Any]:
    counts = _counts(result)
    changes = [
        decision
        for decision in result.decisions
        if not decision.variant and isinstance(decision.record, LatenessChange)
    ]
    bounds = {name: declared.lateness_us or 0 for name, declared in plan.declarations.items()}
    bounds |= {change.stream: change.record.bound_us for change in changes if isinstance(change.record, LatenessChange)}
    states = {(decider.stream, decider.decider): decider.state for decider in result.deciders if not decider.variant}
    measured = measured_of(plan, counts, bounds, Counter(change.stream for change in changes))
    return measured_stats(measured, waiting_of(plan, counts, states))


def _compared(projects: Sequence[LocalProject]) -> RoundPlan:
    first, *others = (project.plan.variant(name) for name, project in zip((TESTED, AGAINST), projects, strict=False))
    return RoundPlan(variants=(first, *(replace(variant, alike=likeness(first, variant)) for variant in others)))


def _file_of(path: Path, declaration: StreamDeclaration, plan: RoundPlan) -> History:
    if not path.is_file():
        raise FileUnreadable(f"{path} is not a file; name one event file for each stream", file=str(path))
    options = reading_of_stream(declaration)
    return History(
        files=(path.resolve(),),
        options=options,
        is_ordered=not options.is_by_time,
        routes=plan.routes(declaration.name),
    )


def _history(options: Mapping[str, Any], key_form: KeyForm | None, declaration: StreamDeclaration) -> History:
    defaults = reading_of(key_form, options["times"], declaration, lifecycle=options["lifecycle"])
    reader_options = merged_options(replace(defaults, duplicates="keep"), options)
    return History(
        files=history_files(Path(options["events"][0])),
        options=reader_options,
        is_ordered=not reader_options.is_by_time,
    )


def _require_only(context: typer.Context, allowed: Collection[str]) -> None:
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is not None and source.name == "COMMANDLINE" and option.name not in allowed:
            raise typer.BadParameter("with --project, its documents say this", param_hint=option.opts[0])


def _result(
    histories: Mapping[str, History], plan: RoundPlan, cores: int | None, limit: int, output: Path | None
) -> BacktestResult:
    _require_empty(output)
    spark = SparkUse(master=f"local[{cores or '*'}]", is_last=True, settings=load_settings().spark.conf)
    options = with_output(BacktestOptions(shards=spark.shards, limit=limit), output)
    with progress_bar("backtest") as (progress, task):
        report = Reports(
            progress=lambda share: progress.update(task, description="backtest", completed=share),
            compiling=waiting_in(progress, task, is_shown=sys.stderr.isatty()).compiling,
        )
        return run_job(histories, plan, spark, options, report)


def _report(result: BacktestResult, use: WorkflowUse | None, limit: int, output: Path | None, *, is_json: bool) -> None:
    document = summary_document(result) | ({} if use is None else {"workflow": use.to_document()})
    if output is not None:
        (output / _SUMMARY_FILE).write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    if is_json:
        echo_json(document | _rows(result, limit))
    else:
        _print(document, result, limit)


def _check(question: Question) -> None:
    comparisons = {
        "--compare-pruning": question.compares_pruning,
        "--compare-constraints": question.compares_constraints,
    }
    for option, is_requested in comparisons.items():
        if is_requested and question.constraint_set is None:
            raise typer.BadParameter(
                "this option needs constraints: give --constraints or --workflow", param_hint=option
            )
    patterns = [parse_pattern(tried.text) for tried in (*question.patterns, *question.against)]
    tried = dict(zip(patterns, (*question.patterns, *question.against), strict=True))
    for notice in pattern_notices(patterns, lambda pattern: ends_in(question, tried[pattern])):
        standard_error.notice(notice)
    for notice in () if question.constraint_set is None else constraint_notices(patterns, question.constraint_set):
        standard_error.notice(notice)


def _with_ends(
    declaration: StreamDeclaration, end: Sequence[str], constraint_set: ConstraintSet | None
) -> tuple[StreamDeclaration, ConstraintSet | None]:
    declaration = replace(declaration, end_events=tuple(sorted(set(end))))
    return declaration, None if constraint_set is None else joined_with(constraint_set, declaration)


def _require_empty(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = next(folder.iterdir(), None) is None
    except OSError as error:
        raise FileUnreadable(f"{folder} cannot be used as a folder: {reason_of(error)}", file=str(folder)) from error
    if not is_empty:
        raise FileUnreadable(f"{folder} is not empty; name a new or empty folder for the results", file=str(folder))


def _tried_patterns(
    paths: list[Path], key: KeyForm | None, declaration: StreamDeclaration, suppress: str | None
) -> tuple[TriedPattern, ...]:
    patterns = read_pattern_files(paths)
    require_keys(patterns, key)
    suppression = suppress_of(suppress)
    return tuple(
        TriedPattern(
            name=pattern.name,
            text=pattern.text or describe_pattern(pattern),
            suppression=suppression and read_suppression(suppression, routed(pattern, declaration)),
        )
        for pattern in patterns
    )


def _rows(result: BacktestResult, limit: int) -> dict[str, Any]:
    rows = {kind.member: rows_of(result, kind.name, limit) for kind in LISTED}
    return {**rows, **_changes(result, limit)}


def _changes(result: BacktestResult, limit: int) -> dict[str, Any]:
    changes = {name: differences_of(result, name, limit) for name in result.comparisons}
    return {
        "added": {name: added for name, (added, _) in changes.items()},
        "lost": {name: lost for name, (_, lost) in changes.items()},
    }


def _console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)


def _print(document: Mapping[str, Any], result: BacktestResult, limit: int) -> None:
    console = _console()
    alerts = rows_of(result, "alert", limit)
    for alert in alerts:
        _print_result(console, "", alert)
    _note_cut(console, len(alerts), document["variants"][0]["alerts"], "alerts")
    _print_changes(console, result, limit)
    console.print(_results_table(document["variants"]))
    if document["comparisons"]:
        console.print(_compared_table(document["comparisons"]))
    seconds = document["read_s"] + document["match_s"]
    events = counted(document["events"], "event", form=",")
    console.print(f"{events} in {seconds:.1f} s, {document['read_s']:.1f} s of them for reading")


def _print_changes(console: Console, result: BacktestResult, limit: int) -> None:
    for name in result.comparisons:
        added, lost = differences_of(result, name, limit)
        if added or lost:
            console.print(f"\ncompared with {name}:")
        counts = result.comparisons[name]
        for mark, rows, total, noun in (("+ ", added, counts.added, "added"), ("- ", lost, counts.lost, "lost")):
            for row in rows:
                _print_result(console, mark, row)
            _note_cut(console, len(rows), total, f"{noun} results")


def _note_cut(console: Console, listed: int, total: int, noun: str) -> None:
    if total > listed:
        console.print(f"the first {listed:,} of {total:,} {noun}; --limit lists more")


def _print_result(console: Console, mark: str, row: Mapping[str, Any]) -> None:
    if "bindings" in row:
        key = f"{row['key']} {row_text(row)}" if "row" in row else row["key"]
        console.print(f"{mark}{row['pattern']}  {key}  {row['start']} to {row['end']}")
        console.print(f"    {shown_bindings(row['bindings'])}")
    else:
        console.print(f"{mark}{row['into']}  {row['key']}  {row['type']} at {row['time']}")
        console.print(f"    {orjson.dumps(row['data']).decode()}")


def _results_table(variants: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("", *(variant["name"] for variant in variants), title="results")
    rows = {
        **{kind.title: kind.member for kind in COUNTED},
        "peak bound events": "peak_held",
        "peak bytes of partial matches": "peak_state_bytes",
        "seconds of matching": "busy_s",
    }
    for column in table.columns[1:]:
        column.justify = "right"
    for title, name in rows.items():
        table.add_row(title, *(f"{variant[name]:,}" for variant in variants))
    return table


def _compared_table(comparisons: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("compared with", "added", "lost", "same", "bound events", "bytes", "time", title="comparisons")
    for column in table.columns[1:]:
        column.justify = "right"
    for comparison in comparisons:
        ratios = (comparison[name] for name in ("peak_held_ratio", "peak_state_bytes_ratio", "busy_ratio"))
        ratio_cells = ("-" if ratio is None else f"{ratio:.2f} x" for ratio in ratios)
        table.add_row(
            comparison["with"], *(f"{comparison[name]:,}" for name in ("added", "lost", "same")), *ratio_cells
        )
    return table

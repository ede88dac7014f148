"""``forestall apply`` and ``export``: make the running service match a project, or write the service as a project."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling
from service.cli.inputs import read_event_batch
from service.cli.output import counted, echo_json, printable, standard_error, tell_notices
from service.cli.run import files_of
from service.cli.waiting import waiting_on, working
from service.client import Client, ClientError
from service.errors import ProjectRefused
from service.projects import (
    EVENTS,
    Change,
    Comparison,
    Difference,
    Document,
    LocalProject,
    Plan,
    apply_plan,
    event_lines,
    export_project,
    line_of,
    plan_project,
    read_project,
    warnings_about,
)
from service.projects.operators import Operators
from streams.compiling import JSON_LINES, compile_kernels
from streams.readers import reading_of

_FIRST = 5
_FIRST_LINES = 20
_SIGNS = {"new": "+", "changed": "~", "gone": "-", "kept": " "}


def apply(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the changes without making them. Exit status 1: there are some.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STREAM=]FILE",
            help="With --plan: run new and changed patterns over this event file, and compare results. Repeatable.",
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete resources that the project created and no longer has.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete streams without asking.")] = False,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Make the running service match a project, a folder of documents."""
    if against and not plan:
        raise typer.BadParameter("give --plan, too: nothing is compared while changes are made", param_hint="--against")
    documents = read_project(folder)
    with calling(url, api_key) as client:
        project_plan = plan_project(client, documents, folder, is_pruned=prune)
        local = _local(project_plan, documents, folder)
        notices = {} if local is None else _notices(project_plan, local)
        tell_notices(notices)
        if local is not None:
            _require_matchable(project_plan, local)
        if plan:
            _show(project_plan, is_json=is_json)
            if against:
                _compare(Comparison(project_plan, documents, folder), against, is_json=is_json)
            raise typer.Exit(bool(project_plan.work))
        if project_plan.deleted_streams and not yes:
            _confirm(project_plan.deleted_streams)
        apply_plan(client, project_plan, lambda change: _tell(change, is_json=is_json, is_made=True))
        _warn(client, project_plan, notices)
    if not is_json:
        _show_kept(project_plan)
    standard_error.print(
        f"[green]done[/green]: {_counted(len(project_plan.work), 'change')} made; {_same(project_plan)}"
    )


def _warn(client: Client, plan: Plan, notices: Mapping[str, Sequence[str]]) -> None:
    """Print the service's warnings except notices that are already printed. An error becomes a warning, too."""
    try:
        for change, warning in warnings_about(client, plan):
            if warning not in notices.get(change.name, ()):
                standard_error.warning(printable(f"{change.title}: {warning}"))
    except ClientError as error:
        standard_error.warning(printable(f"the warnings of the service could not be read: {error.message}"))


def _local(plan: Plan, documents: Sequence[Document], folder: Path) -> LocalProject | None:
    """Return the project without a service, or None if the plan changes no operator, or if it needs the service."""
    if not any(isinstance(change.kind, Operators) and change.wanted is not None for change in plan.work):
        return None
    try:
        return LocalProject.of(documents, folder)
    except ProjectRefused:  # the project uses a stream that only the service has; registering reports the notices
        return None


def _notices(plan: Plan, local: LocalProject) -> Mapping[str, Sequence[str]]:
    changes = (
        change for change in plan.work if isinstance(change.kind, Operators) and not change.kind.kind.has_own_resource
    )
    names = {change.name for change in changes if change.wanted is not None}
    return {name: sentences for name, sentences in local.notices.items() if name in names}


def _require_matchable(plan: Plan, local: LocalProject) -> None:
    """Raise ``ProjectRefused`` if a new or changed pattern can never match, because the service would refuse it."""
    wanted = [change.wanted for change in plan.work if change.wanted is not None and change.kind.title == "pattern"]
    problems = [
        f"{resource.document.place()}: pattern {resource.name}: {local.refusals[resource.name]}"
        for resource in wanted
        if resource.name in local.refusals
    ]
    if problems:
        raise ProjectRefused.of(problems)


def _show(plan: Plan, *, is_json: bool) -> None:
    for change in plan.work:
        _tell(change, is_json=is_json)
        if not is_json:
            lines = change.difference()
            for line in lines[:_FIRST_LINES]:
                typer.echo(f"    {printable(line)}")
            if unlisted := len(lines[_FIRST_LINES:]):
                typer.echo(f"    and {counted(unlisted, 'more line', form=',')}; --json has all")
    if is_json:
        return
    _show_kept(plan)
    standard_error.say(f"{_counted(len(plan.work), 'change')} to make; {_same(plan)}")


def _confirm(streams: Sequence[str]) -> None:
    what = f"the stream{'s'[: len(streams) - 1]} {', '.join(map(printable, streams))}"
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"deletes {what}; nothing was changed. Say --yes to delete", param_hint="--prune")
    typer.confirm(f"Delete {what}, with the events?", abort=True, err=True)


def _compare(comparison: Comparison, against: list[str], *, is_json: bool) -> None:
    project = comparison.after
    files = files_of(against, project)
    with waiting_on() as waiting:
        needed = {*project.exercises(), *comparison.before.exercises()}
        compile_kernels([*sorted(needed), JSON_LINES], waiting.compiling)
    events = {name: read_event_batch(path, reading_of(project.stream(name))) for name, path in files.items()}
    with working(f"matching {counted(sum(map(len, events.values())), 'event', form=',')} before and after the changes"):
        differences = list(comparison.differences(events))
    for difference in differences:
        if is_json:
            first = {"added": difference.added[:_FIRST], "lost": difference.lost[:_FIRST]}
            numbers = {"added": len(difference.added), "lost": len(difference.lost), "same": difference.same}
            echo_json({"against": difference.title, **numbers, "first": first})
            continue
        counts = f"{len(difference.added)} added, {len(difference.lost)} lost, {difference.same} the same"
        typer.echo(f"{printable(difference.title)}: {difference.list_name}: {counts}")
        for sign, results in (("+", difference.added), ("-", difference.lost)):
            for result in results[:_FIRST]:
                typer.echo(printable(f"    {sign} {_line(difference, result)}"))
            if unlisted := len(results[_FIRST:]):
                typer.echo(f"    {sign} and {unlisted} more")


def _line(difference: Difference, result: Mapping[str, Any]) -> str:
    if difference.list_name == EVENTS:
        return next(iter(event_lines([result])))
    return line_of(result, {}, has_keys=True)


def _same(plan: Plan) -> str:
    return f"{_counted(plan.same, 'document')} unchanged"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _show_kept(plan: Plan) -> None:
    for change in plan.changes:
        if change.action == "kept":
            standard_error.notice(printable(f"{change.title} is not in the project and stays: {change.why}"))


def _tell(change: Change, *, is_json: bool, is_made: bool = False) -> None:
    if is_json:
        document = {
            "action": change.action,
            "kind": change.kind.title,
            "name": change.name,
            "difference": change.difference(),
            **({"effect": change.effect} if change.effect else {}),
        }
        echo_json(document)
        return
    effect = f"; {change.effect}" if change.effect else ""
    word = change.action if change.action != "gone" else "deleted" if is_made else "will be deleted"
    typer.echo(f"{_SIGNS[change.action]} {printable(change.title)}: {word}{effect}")


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; new, or empty.")],
    url: Url = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Export the resources of the running service as a project.

    Applying the project changes nothing, except that a table with rows that were changed one at a time gets a version
    with the same rows.
    """
    with calling(url, api_key) as client:
        files = export_project(client, folder, standard_error.notice)
    for file in files:
        typer.echo(printable(str(file)))
    standard_error.print(f"[green]done[/green]: {counted(len(files), 'file')} in {escape(printable(str(folder)))}")

"""``forestall apply``: make the running service equal to a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.markup import escape

from service.cli.calling import ApiKeyOption, IsJson, Url, calling, printable
from service.cli.inputs import told
from service.projects import Change, Plan, apply_plan, plan_project, read_project

_SIGNS = {"new": "+", "changed": "~", "gone": "-", "kept": " "}


def apply(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the project.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show what would change, if anything (exit status 1).")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Delete what the project does not name.")] = False,
    url: Url = None,
    api_key: ApiKeyOption = None,
    is_json: IsJson = False,
) -> None:
    """Make the running service equal to a project: a folder of documents."""
    documents = read_project(folder)
    with calling(url, api_key) as client:
        found = plan_project(client, documents, folder, is_pruned=prune)
        if plan:
            _show(found, is_json=is_json)
            raise typer.Exit(bool(found.work))
        apply_plan(client, found, lambda change: _tell(change, is_json=is_json))
    if not is_json:
        _show_kept(found)
    told.print(f"[green]done[/green]: {_counted(len(found.work), 'change')} made; {_same(found)}")


def _show(plan: Plan, *, is_json: bool) -> None:
    """The plan: each change with its difference."""
    for change in plan.work:
        _tell(change, is_json=is_json)
        if not is_json:
            for line in change.difference():
                typer.echo(f"    {printable(line)}")
    if is_json:
        return
    _show_kept(plan)
    told.print(escape(f"{_counted(len(plan.work), 'change')} to make; {_same(plan)}"))


def _same(plan: Plan) -> str:
    return f"{_counted(plan.same, 'document')} unchanged"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _show_kept(plan: Plan) -> None:
    for change in plan.changes:
        if change.action == "kept":
            told.notice(f"{printable(change.title)} is not in the project and stays: {change.why}")


def _tell(change: Change, *, is_json: bool) -> None:
    """One line about a change."""
    if is_json:
        document = {
            "action": change.action,
            "kind": change.kind.title,
            "name": change.name,
            "difference": change.difference(),
        }
        typer.echo(orjson.dumps(document).decode())
        return
    typer.echo(f"{_SIGNS[change.action]} {printable(change.title)}: {change.action}")

"""``forestall backtests``: backtests that the running service runs, on its log or on files that it can read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import typer

from service.cli.calling import Caller, Commands, without_none
from service.cli.choices import Suppress, suppress_of
from service.cli.inputs import is_pattern, progress_bar
from service.cli.patterns import one_pattern
from service.cli.resources import After, AtMost, Resource, Table, add_delete, add_list_of_stream, add_show
from service.client import Client, part

backtests = Commands(help="Backtests of the running service.")

_LOOK_S = 0.5


Pruned: TypeAlias = Literal["on", "off", "compare"]
"""Whether constraints terminate partial matches early. ``compare`` runs the backtest both ways."""

_BACKTESTS = Resource(
    path="/backtests",
    one="backtest",
    listed="the backtests, the newest first",
    table=Table(
        ("id", "stream", "pattern", "state", "progress", "created_at"),
        lambda backtest: {
            **backtest,
            "pattern": [pattern["name"] for pattern in backtest["patterns"]],
            "progress": f"{backtest['progress']:.0%}",
        },
    ),
)
_ALERTS = Table(("pattern", "key", "start", "end", "change"))

add_list_of_stream(backtests, _BACKTESTS)
add_show(backtests, _BACKTESTS, "the state of a backtest, and its result once it is done")


@backtests.command()
def ask(
    client: Caller,
    pattern: Annotated[str, typer.Argument(help="Pattern file or text, or the name of a registered pattern.")],
    stream: Annotated[str, typer.Option(help="Stream whose key, end events and constraints apply.")],
    against: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Pattern to compare with: file, text or name.")
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            help="File or folder with the events, below FORESTALL_BACKTEST_DIR of the service (default: the log)."
        ),
    ] = None,
    suppress: Suppress = None,
    pruning: Annotated[
        Pruned | None,
        typer.Option(
            help="on: terminate partial matches early by constraints; off: do not; compare: run once with each."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the backtest is over.")] = False,
) -> None:
    """Start a backtest. Exit status 1: --wait is given, and the backtest failed."""
    suppression = suppress_of(suppress)
    body = without_none(
        stream=stream,
        pattern=_choice(pattern) if suppression is None else {**_reference(pattern), "suppress": suppression},
        against=None if against is None else _choice(against),
        source={"log": True} if path is None else {"path": path},
        pruning=pruning,
    )
    backtest = client.post(_BACKTESTS.path, body)
    if wait:
        backtest = _finished_backtest(client, backtest["id"])
    client.show(backtest)
    raise typer.Exit(1 if wait and backtest["state"] != "done" else 0)


@backtests.command()
def alerts(
    client: Caller,
    backtest: Annotated[str, typer.Argument(help="Id of the backtest, as 'forestall backtests list' shows it.")],
    after: After = None,
    limit: AtMost = 100,
) -> None:
    """List the alerts of a backtest by end time, with marks for those added or lost in a comparison."""
    _ALERTS.show_pages(client, f"{_BACKTESTS.path}/{part(backtest)}/alerts", limit, after=after)


add_delete(backtests, _BACKTESTS, "Cancel a waiting or running backtest; remove a finished one, with its alerts.")


def _reference(argument: str) -> dict[str, Any]:
    choice = _choice(argument)
    return {"text": choice} if isinstance(choice, str) else choice


def _choice(argument: str) -> str | dict[str, Any]:
    if not is_pattern(argument):
        return {"name": argument}
    from nfa import describe_pattern  # noqa: PLC0415 - as in service.cli.inputs

    pattern = one_pattern(argument)
    return pattern.text or describe_pattern(pattern)


def _finished_backtest(client: Client, backtest_id: str) -> Mapping[str, Any]:
    with progress_bar("backtest") as (progress, task):
        while True:
            backtest = client.backtests.get(backtest_id)
            progress.update(task, completed=backtest["progress"])
            if backtest["state"] not in ("queued", "running"):
                return backtest
            time.sleep(_LOOK_S)

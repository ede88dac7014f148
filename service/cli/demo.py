"""``forestall demo``: see the whole service work, in one command."""

from __future__ import annotations

import signal
import sys
from dataclasses import asdict
from functools import partial
from threading import Event
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pipeline import check_java
from service.cli.output import echo_json
from service.cli.waiting import waiting_in
from service.demo import Demo, DemoResult
from service.processes.temporary import TemporaryService

_SHOWN_ALERTS = 8
_SHOWN_REASONS = 10
_TERMINATED = 143


def demo(
    orders: Annotated[int, typer.Option(min=1, help="Number of orders, about 20 events each.")] = 2_000,
    is_json: Annotated[
        bool, typer.Option("--json", help="The result as JSON; everything else on standard error.")
    ] = False,
    stays: Annotated[
        bool, typer.Option("--stay", help="Leave the service running until Ctrl-C, with the web console.")
    ] = False,
) -> None:
    """Run generated orders through the whole service. Exit status 1: the alerts are not the expected ones."""
    check_java()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that the started processes are stopped
    console = Console(highlight=False, stderr=is_json)
    bar = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*bar, console=console) as progress:
        task = progress.add_task("events", total=None)
        waiting = waiting_in(progress, task, is_shown=console.is_terminal)

        def show_progress(done: int, total: int) -> None:
            progress.update(task, description="events", completed=done, total=total)
            if not console.is_terminal:
                waiting(f"{done:,} of {total:,} events are sent")

        run = Demo(
            orders=orders,
            on_alert=_FirstAlerts(console),
            on_progress=show_progress,
            say=lambda line: console.print(f"[dim]{escape(line)}[/dim]", soft_wrap=True),
            on_wait=waiting,
            stay=partial(_stay, console, progress) if stays else None,
        )
        result = run.run()
    if is_json:
        echo_json(asdict(result))
    elif not stays:
        _show(console, result)
    raise typer.Exit(0 if result.is_equal else 1)


def _stay(console: Console, progress: Progress, result: DemoResult, service: TemporaryService) -> None:
    progress.stop()
    _show(console, result)
    _tell_console(console, service.console, service.api_key)
    console.print(f"API: {service.url}/v1; Ctrl-C ends it")
    stop = Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: stop.set())
    stop.wait()


def _tell_console(console: Console, address: str, key: str) -> None:
    console.print(f"console: [bold]{address}[/bold], log in with the key [bold]{key}[/bold]", soft_wrap=True)


class _FirstAlerts:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = 0

    def __call__(self, alert: dict[str, Any]) -> None:
        self._shown += 1
        if self._shown <= _SHOWN_ALERTS:
            events = ", ".join(f"{alias}={ids[0]}" for alias, ids in alert["bindings"].items())
            line = f"webhook: {alert['pattern']} {alert['key']} at {alert['end']}: {events}"
            self._console.print(line, markup=False, soft_wrap=True)
        elif self._shown == _SHOWN_ALERTS + 1:
            self._console.print("webhook: ... more arrive")


def _show(console: Console, result: DemoResult) -> None:
    for text in result.examples:
        console.print(f"terminated early: {text}", markup=False, soft_wrap=True)
    table = Table("what", "count", title="Forestall demo")
    table.columns[1].justify = "right"
    table.add_row("events", f"{result.events:,}")
    for pattern, count in sorted(result.alerts.items()):
        table.add_row(f"matches of {pattern}", f"{count:,}")
    table.add_row("alerts that arrived by webhook", f"{result.webhooks:,}")
    ranked = sorted(result.endings.items(), key=lambda item: -item[1])
    for reason, count in ranked[:_SHOWN_REASONS]:
        how = "ended with its transaction, by" if reason.startswith("end(") else "terminated early by"
        table.add_row(f"{how} {escape(reason)}", f"{count:,}")
    if rest := sum(count for _, count in ranked[_SHOWN_REASONS:]):
        table.add_row("terminated early by other constraints", f"{rest:,}")
    table.add_row("peak bound events, with constraints", f"{result.peak_held:,}")
    table.add_row("peak bound events, without", f"{result.peak_held_unpruned:,}")
    console.print(table)
    if result.is_equal:
        console.print(f"[green]the alerts are the {result.expected:,} matches without early termination[/green]")
        console.print("\nFor your own events: make serve, then continue in README.md, section Start.")
    else:
        console.print(f"[red]the alerts are not the {result.expected:,} matches without early termination[/red]")

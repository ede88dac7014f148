"""``forestall generate``: the order workload as an event file."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO

import orjson
import typer

from service.cli.inputs import progress_bar
from service.errors import FileUnreadable
from streams import Event, render_plain
from workflows import OrderSettings, OrderWorkload, SimulationSettings, generate_events

_EVENTS_PER_ORDER = 20


def generate(
    output: Annotated[Path | None, typer.Option(help="File to write, .jsonl; standard output when absent.")] = None,
    orders: Annotated[int, typer.Option(min=1, help="Number of orders, about 20 events each.")] = 2_000,
    concurrent: Annotated[int, typer.Option(min=1, help="Orders that are open at a time.")] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same events.")] = 42,
    local: Annotated[float, typer.Option(min=0, max=1, help="Share of orders from local stock.")] = 0.5,
    reject: Annotated[float, typer.Option(min=0, max=1, help="Share of rejected orders.")] = 0.05,
    cancel: Annotated[float, typer.Option(min=0, max=1, help="Share of cancelled orders.")] = 0.1,
    quote_fail: Annotated[float, typer.Option(min=0, max=1, help="Share of quotes of 200 or less.")] = 0.5,
    invoice_fail: Annotated[float, typer.Option(min=0, max=1, help="Share of invoices of 200 or less.")] = 0.5,
) -> None:
    """Write events of interleaved orders: the order-fulfilment workload."""
    workload = OrderWorkload(
        orders=OrderSettings(
            local=local, reject=reject, cancel=cancel, quote_fail=quote_fail, invoice_fail=invoice_fail
        ),
        stream=SimulationSettings(traces=orders, concurrent=concurrent, key_prefix="order-"),
    )
    expected = orders * _EVENTS_PER_ORDER
    with ExitStack() as stack:
        progress, task = stack.enter_context(progress_bar("generating"))
        target: BinaryIO = stack.enter_context(_opened(output)) if output else sys.stdout.buffer
        for number, event in enumerate(generate_events(workload, seed)):
            target.write(event_line(event))
            if number % 1_000 == 0:
                progress.update(task, completed=min(1.0, number / expected))


def event_line(event: Event) -> bytes:
    """An event as one line of JSONL."""
    return orjson.dumps(render_plain(event), option=orjson.OPT_APPEND_NEWLINE)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be written: {error}", file=str(path)) from error

"""``forestall generate``: simulated events as a file, of the order workload or of a workflow model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, BinaryIO

import orjson
import typer

from service.cli.inputs import progress_bar
from service.cli.model_choice import MapFile, Process
from service.cli.models import read_model_file
from service.cli.output import standard_error
from service.errors import FileUnreadable
from streams import Event, render_plain
from workflows import (
    Noise,
    NoiseSettings,
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    generate_events,
    parse_duration_us,
    playable,
    simulate,
)


def generate(
    output: Annotated[Path | None, typer.Option(help="File to write, .jsonl (default: standard output).")] = None,
    workflow: Annotated[Path | None, typer.Option(help="Model to simulate: BPMN, PNML or a tree in YAML.")] = None,
    map_file: MapFile = None,
    process: Process = None,
    traces: Annotated[int | None, typer.Option(min=0, help="Number of transactions (default: --orders).")] = None,
    orders: Annotated[int, typer.Option(min=1, help="Number of orders, about 20 events each.")] = 2_000,
    concurrent: Annotated[int, typer.Option(min=1, help="Transactions that are open at the same time.")] = 1_000,
    interval: Annotated[
        str, typer.Option(help="Mean time between events; between starts of transactions if the model has durations.")
    ] = "1 s",
    seed: Annotated[int, typer.Option(help="The same seed gives the same events.")] = 42,
    missing: Annotated[float, typer.Option(min=0, max=1, help="Share of events that are left out.")] = 0.0,
    swapped: Annotated[float, typer.Option(min=0, max=1, help="Share of events swapped with their successor.")] = 0.0,
    duplicated: Annotated[float, typer.Option(min=0, max=1, help="Share of events that come twice.")] = 0.0,
    late: Annotated[float, typer.Option(min=0, max=1, help="Share of events that are delayed.")] = 0.0,
    lateness: Annotated[str, typer.Option(help="Longest delay of an event, such as 5m.")] = "5m",
    local: Annotated[float, typer.Option(min=0, max=1, help="Share of orders from local stock.")] = 0.5,
    reject: Annotated[float, typer.Option(min=0, max=1, help="Share of rejected orders.")] = 0.05,
    cancel: Annotated[float, typer.Option(min=0, max=1, help="Share of cancelled orders.")] = 0.1,
    quote_fail: Annotated[float, typer.Option(min=0, max=1, help="Share of quotes of 200 or less.")] = 0.5,
    invoice_fail: Annotated[float, typer.Option(min=0, max=1, help="Share of invoices of 200 or less.")] = 0.5,
) -> None:
    """Generate events of interleaved transactions: the order-fulfilment workload, or a workflow."""
    stream = SimulationSettings(
        traces=orders if traces is None else traces,
        concurrent=concurrent,
        interval_us=parse_duration_us(interval),
        key_prefix="order-" if workflow is None else "trace-",
    )
    disturbances = NoiseSettings(
        missing=missing,
        swapped=swapped,
        duplicated=duplicated,
        late=late,
        lateness_us=parse_duration_us(lateness),
    )
    noise = Noise(disturbances, seed) if missing or swapped or duplicated or late else None
    if workflow is not None:
        source = playable(read_model_file(workflow, map_file, process))
        events = simulate(source, stream, seed, noise)
    else:
        shares = OrderSettings(
            local=local, reject=reject, cancel=cancel, quote_fail=quote_fail, invoice_fail=invoice_fail
        )
        events = generate_events(OrderWorkload(orders=shares, stream=stream), seed, noise)
    _write(events, output, stream.traces)
    if noise is not None:
        standard_error.print("noise: " + ", ".join(f"{count} {kind}" for kind, count in asdict(noise.counts).items()))


def event_line(event: Event) -> bytes:
    """Return an event as one line of JSONL."""
    return orjson.dumps(render_plain(event), option=orjson.OPT_APPEND_NEWLINE)


def _write(events: Iterator[Event], output: Path | None, traces: int) -> None:
    begun: set[str] = set()
    with ExitStack() as stack:
        progress, task = stack.enter_context(progress_bar("generating"))
        target: BinaryIO = stack.enter_context(_opened(output)) if output else sys.stdout.buffer
        for number, event in enumerate(events):
            target.write(event_line(event))
            begun.add(event.key)
            if number % 1_000 == 0:
                progress.update(task, completed=len(begun) / traces)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise FileUnreadable(f"{path} cannot be written: {error}", file=str(path)) from error

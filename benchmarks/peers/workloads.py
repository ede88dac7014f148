"""The workloads: events from fixed seeds as JSON lines, which every engine can read.

An event is ``{"id": "e7", "type": ..., "time": microseconds, "key": ..., "data": {"value": ...}}``; the id contains its
number in the file. A file with fewer events is a prefix of a longer file.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.peers.environments import ROOT
from streams import Event
from streams.readers import ReaderOptions, read_events
from workflows import OrderSettings, OrderWorkload, SimulationSettings, generate_events

START_MS = 1_700_000_000_000
LOG = ROOT.parent / "shared" / "data" / "logs" / "bpic2013_incidents.xes.gz"


class Row(NamedTuple):
    """One event. Its place in the file is its number."""

    type: str
    time_us: int
    key: str
    value: float | None


class Absent(Exception):
    """A workload is not available. The message has the reason."""


def w(keys: int = 1_000) -> Callable[[], Iterator[Row]]:
    """Return a generator function of workload W: one event a millisecond, 20 types, and ``keys`` keys."""

    def rows() -> Iterator[Row]:
        rng = random.Random(42)
        number = 0
        while True:
            key, kind, value = rng.randrange(keys), rng.randrange(20), rng.randrange(10_000) / 100
            yield Row(f"T{kind}", (START_MS + number) * 1_000, f"k{key}", value)
            number += 1

    return rows


def orders(fail: int) -> Callable[[], Iterator[Row]]:
    """Return a generator function of the order workflow, 1,000 orders open at a time, all from remote stock.

    ``fail`` percent of the invoices are cheap.
    """

    def rows() -> Iterator[Row]:
        settings = OrderSettings(reject=0.0, cancel=0.0, local=0.0, invoice_fail=fail / 100)
        stream = SimulationSettings(traces=60_000, concurrent=1_000, key_prefix="order-")
        for event in generate_events(OrderWorkload(orders=settings, stream=stream), 42):
            price = event.data.get("price")
            yield Row(event.type, event.time_us, event.key, None if price is None else float(price))

    return rows


def stocks() -> Iterator[Row]:
    """Yield ticks of 100 symbols, one in 10 ms. The type is the direction of the price."""
    rng = random.Random(7)
    prices = [10_000] * 100
    number = 0
    while True:
        symbol, step = rng.randrange(100), rng.choice((-3, -2, -1, 0, 1, 2, 3))
        prices[symbol] = max(1, prices[symbol] + step)
        kind = "Up" if step > 0 else "Down" if step < 0 else "Flat"
        yield Row(kind, (START_MS + 10 * number) * 1_000, f"s{symbol}", prices[symbol] / 100)
        number += 1


def clicks() -> Iterator[Row]:
    """Yield clicks of 1,000 visitors on 50 pages, one a millisecond. Some pages are much more frequent than others."""
    rng = random.Random(11)
    number = 0
    while True:
        page = min(49, int(rng.expovariate(0.08)))
        yield Row(f"Page{page}", (START_MS + number) * 1_000, f"v{rng.randrange(1_000)}", float(rng.randrange(600)))
        number += 1


def payments() -> Iterator[Row]:
    """Yield orders and their payments, one event a millisecond.

    Most payments follow the order within a minute. Some are later, and some precede the order.
    """
    rng = random.Random(5)
    number = orders = 0
    while True:
        if rng.random() < 0.4:
            kind, order, orders = "Order", orders, orders + 1
        elif rng.random() < 0.05:
            kind, order = "Payment", orders + rng.randrange(1_000)
        else:
            kind, order = "Payment", max(0, orders - 1 - int(rng.expovariate(1 / 8_000)))
        yield Row(kind, (START_MS + number) * 1_000, f"o{order}", float(rng.randrange(500)))
        number += 1


def sales() -> Iterator[Row]:
    """Yield sales of 100,000 shops, one event a millisecond. The values are whole numbers."""
    rng = random.Random(13)
    number = 0
    while True:
        yield Row("Sale", (START_MS + number) * 1_000, f"s{rng.randrange(100_000)}", float(rng.randrange(1_000)))
        number += 1


def log() -> Iterator[Row]:
    """Yield the incident log of BPI Challenge 2013, if it is available. Types are converted to words.

    Raises:
        Absent: The file does not exist.
    """
    if not LOG.exists():
        raise Absent(f"{LOG.name} is not in {LOG.parent.relative_to(ROOT.parent)} beside the checkout")
    events: list[Event] = read_events(LOG, ReaderOptions(lifecycle=True))
    for event in events:
        yield Row(re.sub(r"\W+", "_", event.type), event.time_us, event.key, None)


WORKLOADS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "w": w(),
    **{f"w-{keys}": w(keys) for keys in (1_000, 10_000, 100_000)},
    "orders-0": orders(0),
    "orders-50": orders(50),
    "orders-90": orders(90),
    "stocks": stocks,
    "clicks": clicks,
    "payments": payments,
    "sales": sales,
    "log": log,
}


def file_of(workload: str, events: int, folder: Path) -> Path:
    """Return the file with the first events of a workload. If the file is missing, write it.

    Raises:
        Absent: The workload is not available.
    """
    path = folder / f"{workload}-{events}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as file:
            for number, row in enumerate(islice(WORKLOADS[workload](), events)):
                file.write(line_of(number, row))
        unfinished.rename(path)
    return path


def line_of(number: int, row: Row) -> bytes:
    """Return the line of an event."""
    data = {} if row.value is None else {"value": row.value}
    whole = {"id": f"e{number}", "type": row.type, "time": row.time_us, "key": row.key, "data": data}
    return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE)

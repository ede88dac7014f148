"""Latency of questions to an aggregate, from when each is due to its answer, while events come at a steady rate.

The whole service runs as in production. The window holds 1,000,000 events with three attributes (10,000 users, 200
kinds, 50 regions) and a price; the questions are those of ``question_index``: of a user by kind, of a region and a
kind, of a kind by region in the last twentieth of the window, and of all events by region in the last hundredth. One
process posts events, another asks on some connections. A question counts from its due time, so one that waits for a
free connection is late.

    scripts/bench asked_aggregate --seconds=60 --questions=500

With ``--quiet`` no events come, and a rate beyond what is answered keeps all connections busy.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import orjson

from benchmarks.pipeline_latency import FIRST_SHARE, cpu_s
from service.processes.temporary import TemporaryService, running
from streams import format_time

SIZES = {"user": 10_000, "kind": 200, "region": 50}
AGGREGATE = {
    "name": "sales",
    "of": "shop",
    "by": ["key"],
    "values": {"n": "count()", "total": "sum(price)"},
    "having": "n > 1000000",
    "ask": {"by": list(SIZES)},
}
FILLED = 5_000  # events of a request
_QUIET_S = 2.0


def main() -> None:
    """Print the latencies of questions, the rates, and the CPU time of each process."""
    wanted = _arguments()
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        more = {"LIMITS__QUESTIONS_AT_ONCE": str(2 * wanted.connections)}
        with running(Path(name) / "data", lambda text: print(text, flush=True), more) as service:
            wanted.key, wanted.url = service.api_key, service.url
            wanted.port = int(service.url.rpartition(":")[2])
            service.client.post("/streams", {"name": "shop", "key": "data.user"})
            window = f"{wanted.window // wanted.rate} s"
            service.client.post("/aggregates", {**AGGREGATE, "window": window})
            _fill(service, wanted)
            _measure(service, wanted)


def _fill(service: TemporaryService, wanted: Namespace) -> None:
    """Fill the window, and wait until it is matched."""
    begun = time.time()
    post(wanted, 0, wanted.window, FILLED, None)
    while service.client.get("/pipeline")["backlog"]["waiting_volume"]["events"]:
        time.sleep(0.5)
    print(f"{wanted.window:,} events in the window after {time.time() - begun:.0f} s", flush=True)


def _measure(service: TemporaryService, wanted: Namespace) -> None:
    before = cpu_s(service)
    count = 0 if wanted.quiet else round(wanted.rate * wanted.seconds)
    posting = multiprocessing.get_context("spawn").Process(
        target=post, args=(wanted, wanted.window, count, wanted.request, wanted.rate)
    )
    posting.start()
    time.sleep(_QUIET_S)
    own = time.process_time()
    latencies, compared, took = asyncio.run(_ask_all(wanted))
    own = time.process_time() - own
    posting.join()
    spent = {part: seconds - before[part] for part, seconds in cpu_s(service).items()}
    p50, p99, most = np.percentile(latencies, [50, 99, 100]) * 1_000
    print(f"{wanted.rate:,} events/s and {wanted.questions:,} questions/s for {wanted.seconds:.0f} s")
    print(f"  {len(latencies):,} questions, {wanted.questions * wanted.seconds / took:,.0f}/s answered")
    print(f"  p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {most:.0f} ms; {np.mean(compared):,.0f} events compared each")
    print("  CPU seconds: " + ", ".join(f"{part} {seconds:.1f}" for part, seconds in (spent | {"asker": own}).items()))
    each = {part: seconds / (wanted.questions * wanted.seconds) * 1_000 for part, seconds in spent.items()}
    print("  CPU ms per question: " + ", ".join(f"{part} {taken:.2f}" for part, taken in each.items()))
    print(f"  backlog: {service.client.get('/pipeline')['backlog']['waiting_volume']}")
    index = service.client.post("/aggregates/sales/ask", {"explain": True})["indexes"][0]
    print({name: index[name] for name in ("events", "configuration", "migrations")})


def post(wanted: Namespace, first: int, count: int, request: int, rate: int | None) -> None:
    """Post events from a number on; with a rate, each request at its time."""
    start_us, begun = wanted.start_us, time.time()
    headers = {"Authorization": f"Bearer {wanted.key}", "Content-Type": "application/json"}
    late_s = 0.0
    with httpx.Client(base_url=f"{wanted.url}/v1", headers=headers, timeout=60.0) as http:
        for begin in range(first, first + count, request):
            rng = np.random.default_rng(begin)
            columns = {name: (rng.random(request) ** 2 * size).astype(int) for name, size in SIZES.items()}
            prices = rng.integers(1, 10_000, request) / 4
            events = [
                {
                    "id": f"e{begin + place}",
                    "type": "Sale",
                    "time": format_time(start_us + (begin + place) * 1_000_000 // wanted.rate),
                    "data": {**{name: f"{name} {codes[place]}" for name, codes in columns.items()}, "price": price},
                }
                for place, price in enumerate(prices.tolist())
            ]
            body = orjson.dumps(events)
            if rate is not None:
                late_s = time.time() - (begun + (begin - first) / rate)
                time.sleep(max(0.0, -late_s))
            http.post("/events", params={"stream": "shop"}, content=body).raise_for_status()
    if late_s > 1:
        print(f"  events are {late_s:.1f} s BEHIND at the end", flush=True)


def questions(window: int, rate: int) -> Iterator[dict[str, Any]]:
    """Questions of four kinds."""
    rng = np.random.default_rng(1)
    seconds = window / rate
    kinds: tuple[tuple[list[str], tuple[str, ...], float], ...] = (
        (["kind"], ("user",), seconds),
        ([], ("region", "kind"), seconds),
        (["region"], ("kind",), seconds / 20),
        (["region"], (), seconds / 100),
    )
    while True:
        by, names, length = kinds[rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
        where = {name: f"{name} {int(rng.random() ** 2 * SIZES[name])}" for name in names}
        yield {"by": by, "where": where, "window": f"{length:g} s"}


async def _ask_all(wanted: Namespace) -> tuple[list[float], list[int], float]:
    """Ask at the rate; the latencies after the first tenth of the time, the compared events, and the whole time."""
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(wanted.connections):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", wanted.port, limit=2**24))
    latencies: list[float] = []
    compared: list[int] = []
    count = round(wanted.questions * wanted.seconds)
    asked, begun = questions(wanted.window, wanted.rate), time.time()

    async def ask(number: int, body: bytes, due: float) -> None:
        reader, writer = await free.get()
        head = (
            f"POST /v1/aggregates/sales/ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {wanted.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        status, _, fields = answer.decode().partition("\r\n")
        size = next(
            line.partition(":")[2] for line in fields.split("\r\n") if line.lower().startswith("content-length")
        )
        found = await reader.readexactly(int(size))
        free.put_nowait((reader, writer))
        if " 200 " not in status:
            raise ValueError(found.decode())
        if number > FIRST_SHARE * count:
            latencies.append(time.time() - due)
            compared.append(orjson.loads(found)["compared"])

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = begun + number / wanted.questions
            await asyncio.sleep(max(0.0, due - time.time()))
            group.create_task(ask(number, orjson.dumps(next(asked)), due))
    return latencies, compared, time.time() - begun


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=5_000, help="events per second")
    parser.add_argument("--request", type=int, default=100, help="events of a request")
    parser.add_argument("--window", type=int, default=1_000_000, help="events in the window")
    parser.add_argument("--questions", type=int, default=500, help="questions per second")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--quiet", action="store_true", help="no events come while questions are asked")
    found = parser.parse_args()
    found.start_us = round(time.time() - 3_600) * 1_000_000
    return found


if __name__ == "__main__":
    main()

"""Latency of questions to an aggregate at a steady rate of events, from the due time of a question to its answer.

The whole service runs as in production. The window holds 1,000,000 events with three attributes (10,000 users, 200
kinds, 50 regions) and a price; the questions are those of ``question_index``. They ask for one user by kind, for one
region and kind, for one kind by region in the last twentieth of the window, and for all events by region in the last
hundredth. One process posts events, and another asks questions on several connections. The latency of a question starts
at its due time, so the wait for a free connection counts. Both processes prepare their requests beforehand and parse
the answers afterwards, because they share the cores with the service. Their CPU time is printed, too.

    scripts/bench asked_aggregate --seconds=60 --questions=500

With ``--quiet`` no events are posted. A rate that exceeds the capacity of the service keeps all connections busy.
"""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson

from benchmarks.pipeline_latency import FIRST_SHARE, cpu_s
from service.processes.temporary import TemporaryService, running
from streams import format_time

Sent = tuple[float, bytearray]  # the due time of a question, and the received part of its answer

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
_WRITTEN_PER_S = 20_000  # events that a process prepares


def main() -> None:
    """Print the latencies of questions, the rates, and the CPU time of each process."""
    wanted = _arguments()
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        more = {"LIMITS__QUESTIONS_AT_ONCE": str(2 * wanted.connections)}
        more |= {"SHARDS": str(wanted.shards)} if wanted.shards else {}
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
    post(wanted, 0, wanted.window)
    while service.client.get("/pipeline")["backlog"]["waiting_volume"]["events"]:
        time.sleep(0.5)
    print(f"{wanted.window:,} events in the window after {time.time() - begun:.0f} s", flush=True)


def _measure(service: TemporaryService, wanted: Namespace) -> None:
    count = 0 if wanted.quiet else round(wanted.rate * wanted.seconds)
    context = multiprocessing.get_context("spawn")
    begins, posted_s = context.Event(), context.Value("d", 0.0)
    posting = context.Process(target=post, args=(wanted, wanted.window, count, begins, posted_s))
    posting.start()
    asked = questions(wanted.window, wanted.rate)
    bodies = [orjson.dumps(next(asked)) for _ in range(round(wanted.questions * wanted.seconds))]
    time.sleep(_QUIET_S + count / _WRITTEN_PER_S)
    before, own = cpu_s(service), time.process_time()
    begins.set()
    latencies, answers, took = _ask_all(wanted, bodies)
    own = time.process_time() - own
    posting.join()
    spent = {part: seconds - before[part] for part, seconds in cpu_s(service).items()}
    spent |= {"asker": own, "poster": posted_s.value}
    p50, p99, most = np.percentile(latencies, [50, 99, 100]) * 1_000
    compared = np.mean([orjson.loads(body)["compared"] for body in answers])
    print(f"{wanted.rate:,} events/s and {wanted.questions:,} questions/s for {wanted.seconds:g} s")
    print(f"  {len(bodies):,} questions, {len(bodies) / took:,.0f}/s answered")
    print(f"  p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {most:.0f} ms; {compared:,.0f} events compared each")
    print("  CPU seconds: " + ", ".join(f"{part} {seconds:.1f}" for part, seconds in spent.items()))
    each = {part: seconds / len(bodies) * 1_000 for part, seconds in spent.items()}
    print("  CPU ms per question: " + ", ".join(f"{part} {taken:.2f}" for part, taken in each.items()))
    print(f"  backlog: {service.client.get('/pipeline')['backlog']['waiting_volume']}")
    index = service.client.post("/aggregates/sales/ask", {"explain": True})["indexes"][0]
    print({name: index[name] for name in ("events", "configuration", "migrations")})


def post(wanted: Namespace, first: int, count: int, begins: Event | None = None, spent_s: Any = None) -> None:
    """Post ``count`` events, from number ``first`` on, as fast as possible.

    With ``begins``, post each request at its due time.
    """
    request = FILLED if begins is None else wanted.request
    headers = {"Authorization": f"Bearer {wanted.key}", "Content-Type": "application/json"}
    bodies: Any = (events(wanted, begin, request) for begin in range(first, first + count, request))
    if begins is not None:
        bodies = list(bodies)
        begins.wait()
    begun, own, late_s = time.time(), time.process_time(), 0.0
    http = HTTPConnection("127.0.0.1", wanted.port)
    for number, body in enumerate(bodies):
        if begins is not None:
            late_s = time.time() - (begun + number * request / wanted.rate)
            time.sleep(max(0.0, -late_s))
        http.request("POST", "/v1/events?stream=shop", body, headers)
        with http.getresponse() as answer:
            found = answer.read()
            if answer.status >= 300:
                raise ValueError(found.decode())
    http.close()
    if spent_s is not None:
        spent_s.value = time.process_time() - own
    if late_s > 1:
        print(f"  events are {late_s:.1f} s BEHIND at the end", flush=True)


def events(wanted: Namespace, begin: int, count: int) -> bytes:
    """Return the body of a request with the events from number ``begin`` on."""
    rng = np.random.default_rng(begin)
    columns = {name: (rng.random(count) ** 2 * size).astype(int) for name, size in SIZES.items()}
    prices = rng.integers(1, 10_000, count) / 4
    return orjson.dumps(
        [
            {
                "id": f"e{begin + place}",
                "type": "Sale",
                "time": format_time(wanted.start_us + (begin + place) * 1_000_000 // wanted.rate),
                "data": {**{name: f"{name} {codes[place]}" for name, codes in columns.items()}, "price": price},
            }
            for place, price in enumerate(prices.tolist())
        ]
    )


def questions(window: int, rate: int) -> Iterator[dict[str, Any]]:
    """Yield questions of four kinds."""
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


def _ask_all(wanted: Namespace, bodies: Sequence[bytes]) -> tuple[list[float], list[bytes], float]:
    """Ask all questions at the rate.

    Returns the latencies and answers after the first tenth of the questions, and the total time.
    """
    head = (
        f"POST /v1/aggregates/sales/ask HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {wanted.key}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    waiting = selectors.DefaultSelector()
    free = deque(socket.create_connection(("127.0.0.1", wanted.port)) for _ in range(wanted.connections))
    for one in free:
        waiting.register(one, selectors.EVENT_READ)
    open_: dict[Any, Sent] = {}
    latencies: list[float] = []
    answers: list[bytes] = []
    begun, number = time.time(), 0
    while len(answers) < len(requests):
        while number < len(requests) and free and (due := begun + number / wanted.questions) <= time.time():
            free[0].sendall(requests[number])
            open_[free.popleft()] = due, bytearray()
            number += 1
        left_s = begun + number / wanted.questions - time.time() if free and number < len(requests) else None
        for key, _ in waiting.select(left_s if left_s is None else max(0.0, left_s)):
            due, answer = open_[key.fileobj]
            answer += key.fileobj.recv(2**18)  # type: ignore[union-attr]
            if (body := _whole(answer)) is not None:
                latencies.append(time.time() - due)
                answers.append(body)
                free.append(key.fileobj)  # type: ignore[arg-type]
    took, first = time.time() - begun, round(FIRST_SHARE * len(requests))
    waiting.close()
    return latencies[first:], answers[first:], took


def _whole(answer: bytearray) -> bytes | None:
    """Return the body of an answer, or None while it is incomplete. Raise an error if the question was refused."""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    if not length or len(body) < int(length):
        return None
    if b" 200 " not in head[:20]:
        raise ValueError(body.decode())
    return bytes(body)


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=5_000, help="events per second")
    parser.add_argument("--request", type=int, default=100, help="events of a request")
    parser.add_argument("--window", type=int, default=1_000_000, help="events in the window")
    parser.add_argument("--questions", type=int, default=500, help="questions per second")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--shards", type=int, help="default: as many as a new log has")
    parser.add_argument("--quiet", action="store_true", help="no events come while questions are asked")
    found = parser.parse_args()
    found.start_us = round(time.time() - 3_600) * 1_000_000
    return found


if __name__ == "__main__":
    main()

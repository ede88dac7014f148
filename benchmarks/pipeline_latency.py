"""Latency of alerts at a steady rate, from the acknowledgement of the completing event to the alert in the log.

The whole service runs as in production: Redis, API, pipeline and deliverer, each a process. The load generator is
another process. It posts prepared bodies at their due times on one connection. One of its threads watches the log's
index of alerts, so that both ends of a latency are read from one clock. An event is acknowledged when its request is
answered. If the rate is not reached, a line reports it, because the figures are then those of a service with a backlog.

    scripts/bench pipeline_latency --seconds=300
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from typing import Any

import httpx
import numpy as np
import orjson
import redis

from benchmarks.arrivals import alerts_at, index_of
from benchmarks.filled_log import STREAM
from benchmarks.pipeline_chaos import children_of
from benchmarks.workload import EP1, Q1, Q2, order_constraints, orders
from constraints import to_document
from service.processes.temporary import TemporaryService, running
from service.settings import WebhookSettings
from streams import render_plain
from workflows import OrderSettings

MADE_ORDERS = 5_000
PREFIX = b"order-"
GRACE_S = 60.0  # time to wait for the last alerts
_SETTLED_S = 5.0
_USUAL_POLL_S = str(WebhookSettings().poll_interval_s)  # a temporary service polls five times as often
FIRST_SHARE = 0.1  # share of the time at the start that is not counted


def main() -> None:
    """Print the latencies, their parts, and the CPU time of each process."""
    wanted = _arguments()
    if wanted.url:
        generate(wanted)
        return
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        folder = Path(name)
        with running(folder / "data", lambda text: print(text, flush=True), _settings(wanted)) as service:
            declare(service)
            if wanted.idle:
                _tell_idle(service, wanted.idle)
            before, cpu = service.client.get("/pipeline"), cpu_s(service)
            words = [sys.executable, "-P", "-m", "benchmarks.pipeline_latency", f"--url={service.url}"]
            words += [f"--redis={service.supervisor.redis_url}", f"--output={folder / 'latencies.json'}"]
            words += [f"--rate={wanted.rate}", f"--request={wanted.request}", f"--seconds={wanted.seconds}"]
            environment = os.environ | {"FORESTALL_API_KEY": service.api_key}
            subprocess.run(words, env=environment, check=True)
            spent = {part: seconds - cpu[part] for part, seconds in cpu_s(service).items()}
            _tell(orjson.loads((folder / "latencies.json").read_bytes()), wanted)
            tell_batches(before, service.client.get("/pipeline"))
            print("  CPU seconds: " + ", ".join(f"{part} {seconds:.1f}" for part, seconds in spent.items()))


def _settings(wanted: Namespace) -> dict[str, str]:
    master = {"SPARK_MASTER": wanted.master} if wanted.master else {}
    return {"RUNTIME": wanted.runtime, "WEBHOOKS__POLL_INTERVAL_S": _USUAL_POLL_S} | master


class Watcher:
    """A thread that records when alerts arrive in the log."""

    def __init__(self, url: str) -> None:
        self._server = redis.Redis.from_url(url)
        self.seen: list[tuple[float, bytes]] = []
        self.stop = Flag()

    def run(self) -> None:
        """Record when each block of alerts arrived, until ``stop`` is set."""
        key, last = index_of(STREAM), b"0"
        while not self.stop.is_set():
            found: Any = self._server.xread({key: last}, block=200, count=10_000)
            now = time.time()
            for _, entries in found:
                self.seen += [(now, place) for place, _ in entries]
                last = entries[-1][0]

    def event_ids(self) -> list[tuple[float, list[str]]]:
        """Return the arrival time of each alert, and the ids of its events."""
        return [
            (when, [event for events in alert["bindings"].values() for event in events])
            for when, place in self.seen
            for alert in alerts_at(self._server, place, STREAM)
        ]


def generate(wanted: Namespace) -> None:
    """Post at the rate, watch alerts, and write the measurements to a file."""
    bodies, request_of = ready_bodies(wanted.request)
    watcher = Watcher(wanted.redis)
    thread = Thread(target=watcher.run, name="watcher")
    thread.start()
    acknowledged, answers_s, begun, late_s = post_at_rate(bodies, wanted)
    took, cpu_s = time.time() - begun, time.process_time()
    deadline, known = time.time() + GRACE_S, -1
    while time.time() < deadline and known != len(watcher.seen):
        known = len(watcher.seen)
        Flag().wait(3.0)
    watcher.stop.set()
    thread.join()
    first = begun + FIRST_SHARE * took
    latencies = []
    found = watcher.event_ids()
    for when, events in found:
        done = max(acknowledged.get(_place(event, request_of, len(bodies)), 0.0) for event in events)
        latencies += [when - done] if done > first else []
    result = {
        "latencies": latencies,
        "answers_s": answers_s,
        "alerts": len(found),
        "posted": wanted.request * len(acknowledged),
        "took": took,
        "late_s": late_s,
        "cpu_s": cpu_s,
    }
    Path(wanted.output).write_bytes(orjson.dumps(result))


def ready_bodies(request: int) -> tuple[list[bytes], dict[str, int]]:
    """Return the bodies of requests, and the request number of each event.

    When the bodies are posted again, their keys and ids get another prefix.
    """
    events = orders(MADE_ORDERS, settings=OrderSettings(reject=0.0, cancel=0.1))
    starts = range(0, len(events) - request + 1, request)
    bodies = [orjson.dumps([render_plain(event) for event in events[start : start + request]]) for start in starts]
    return bodies, {event.id: number // request for number, event in enumerate(events)}


def post_at_rate(
    bodies: list[bytes], wanted: Namespace, streams: Sequence[str] = (STREAM,)
) -> tuple[dict[int, float], list[float], float, float]:
    """Post prepared bodies at the rate, to the streams in turn.

    Returns:
        The time of acknowledgement and the duration of each request, the due time of the first request, and the delay
        of the last request.
    """
    headers = {"Authorization": f"Bearer {os.environ['FORESTALL_API_KEY']}", "Content-Type": "application/json"}
    acknowledged: dict[int, float] = {}
    answers_s: list[float] = []
    begun, behind_s = time.time(), 0.0
    with httpx.Client(base_url=f"{wanted.url}/v1", headers=headers, timeout=60.0) as http:
        for number in range(round(wanted.seconds * wanted.rate / wanted.request)):
            copy, place = divmod(number, len(bodies))
            body = bodies[place].replace(PREFIX, b"%d-" % copy + PREFIX) if copy else bodies[place]
            behind_s = time.time() - (begun + number * wanted.request / wanted.rate)
            if behind_s < 0:
                time.sleep(-behind_s)
            if time.time() > begun + 1.5 * wanted.seconds:
                break  # the rate cannot be reached
            sent = time.time()
            stream = streams[number % len(streams)]
            http.post("/events", params={"stream": stream}, content=body).raise_for_status()
            acknowledged[number] = time.time()
            answers_s.append(acknowledged[number] - sent)
    return acknowledged, answers_s, begun, max(0.0, behind_s)


def _place(event: str, request_of: Mapping[str, int], requests: int) -> int:
    """Return the number of the request that contains an event."""
    copy, found, made = event.rpartition(PREFIX.decode())
    return int(copy.rstrip("-") or 0) * requests + request_of[found + made]


def declare(service: TemporaryService) -> None:
    """Declare the stream, upload its constraints, and register the patterns."""
    constraint_set = order_constraints()
    service.client.post("/streams", {"name": STREAM, "end_events": sorted(constraint_set.end_events)})
    service.client.post("/constraints", {"stream": STREAM, **to_document(constraint_set)})
    for text in (Q1, Q2, EP1):
        service.client.post("/patterns", {"stream": STREAM, "text": text})


def cpu_s(service: TemporaryService) -> dict[str, float]:
    """Return the CPU seconds of the service's processes so far, including their child processes."""
    supervisor = service.supervisor
    record = orjson.loads((supervisor.settings.data_dir / "redis" / "server.json").read_bytes())
    pids = {name: supervisor.pid(name) for name in ("api", "pipeline", "deliverer")} | {"redis": record["pid"]}
    return {name: 0.0 if pid is None else _tree_s(pid) for name, pid in pids.items()}


def _tree_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(_tree_s, children_of(pid)))


def _tell_idle(service: TemporaryService, seconds: float) -> None:
    """Print the share of a core that each process uses while no events arrive."""
    time.sleep(_SETTLED_S)
    before = cpu_s(service)
    time.sleep(seconds)
    shares = {part: 100 * (spent - before[part]) / seconds for part, spent in cpu_s(service).items()}
    parts = ", ".join(f"{part} {share:.1f}" for part, share in shares.items())
    print(f"idle for {seconds:.0f} s: {sum(shares.values()):.1f} % of a core ({parts})")


def _tell(found: Mapping[str, Any], wanted: Namespace) -> None:
    rate = found["posted"] / found["took"]
    behind = f", {found['late_s']:.1f} s BEHIND at the end" if found["late_s"] > 1 else ""
    print(f"{found['posted']:,} events in {found['took']:.0f} s: {rate:,.0f} events/s of {wanted.rate:,}{behind}")
    print(f"  load generator: {found['cpu_s'] / found['took']:.2f} cores (reading bodies before included)")
    p50, p99, most = np.percentile(found["answers_s"], [50, 99, 100]) * 1_000
    print(f"  requests of {wanted.request:,} events answered: p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {most:.1f} ms")
    if not found["latencies"]:
        print("  no alert completed in the time that counts")
        return
    p50, p90, p99, most = np.percentile(found["latencies"], [50, 90, 99, 100]) * 1_000
    count = len(found["latencies"])
    print(
        f"  acknowledged -> in the log, {count:,} of {found['alerts']:,} alerts, the first tenth of the time left out: "
        f"p50 {p50:,.0f} ms, p90 {p90:,.0f} ms, p99 {p99:,.0f} ms, most {most:,.0f} ms"
    )


def tell_batches(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Print how the micro-batches between two states of the pipeline spent their time."""
    batches = max(1, after["batches"] - before["batches"])
    parts = {
        part: 1_000 * (seconds - before["batch_parts_s"].get(part, 0.0)) / batches
        for part, seconds in after["batch_parts_s"].items()
    }
    whole = sum(parts.values())
    print(
        f"  {batches} micro-batches of {whole:.0f} ms: " + ", ".join(f"{part} {ms:.0f}" for part, ms in parts.items())
    )
    print(f"  an event waits for its micro-batch to begin about half of one: {whole / 2:.0f} ms")


def _arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--runtime", default="continuous", choices=["continuous", "micro-batch"])
    parser.add_argument("--master", default="", help="where Spark runs; as the service has it, if left out")
    parser.add_argument("--idle", type=float, default=0.0, help="seconds without events before, to measure")
    parser.add_argument("--rate", type=int, default=10_000, help="events per second")
    parser.add_argument("--request", type=int, default=250, help="events of a request")
    for name in ("url", "redis", "output"):
        parser.add_argument(f"--{name}", default="", help="given by this program to its load generator")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Latency of each hop of a chain of derived streams, at a steady rate.

The patterns are those of ``chain_workload``, per order, per customer and per region. The whole service runs as in
production. This process posts events at their due times and watches results arrive in Redis, so all times are read from
one clock. The latencies are:

- *found*: from the acknowledgement of an event to the derived event that it completes;
- *hop 1*, *hop 2*: from a derived event to the result that it completes in the shard of another key;
- *whole*: from the acknowledgement to the alert at the end of the chain.

    scripts/bench derived_latency --rate=2000 --seconds=60
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from time import time
from typing import Any, TypeAlias

import numpy as np
import orjson
import redis

from benchmarks.arrivals import alerts_at, index_of, records_of
from benchmarks.chain_workload import HABITS, ORDERS, PURCHASES, chain_events, declare_chain
from benchmarks.pipeline_latency import FIRST_SHARE, cpu_s, post_at_rate
from service.processes.temporary import running
from service.stores.results.recent import list_key
from shards import DERIVED
from streams import Event, format_time, render_plain

GRACE_S = 20.0

_Place: TypeAlias = tuple[str, str]  # key and time: of an event, or of the result that it completes


class Results:
    """A thread that records when derived events and alerts arrive in Redis."""

    def __init__(self, url: str) -> None:
        self._server = redis.Redis.from_url(url)
        self.events: list[tuple[float, Mapping[bytes, bytes]]] = []
        self.alerts: list[tuple[float, bytes]] = []
        self.stop = Flag()

    def run(self) -> None:
        """Record the arrival time of each result, until ``stop`` is set."""
        last: dict[Any, Any] = {list_key(DERIVED): b"0", index_of(HABITS): b"0"}
        while not self.stop.is_set():
            found: Any = self._server.xread(last, block=200, count=10_000)
            now = time()
            for key, entries in found:
                last[key.decode()] = entries[-1][0]
                if key.decode() == index_of(HABITS):
                    self.alerts += [(now, place) for place, _ in entries]
                else:
                    self.events += [(now, fields) for _, fields in entries]

    def seen(self) -> dict[str, dict[_Place, tuple[float, _Place]]]:
        """Return the results by stream, key and time: arrival time, and key and time of the completing event."""
        found: dict[str, dict[_Place, tuple[float, _Place]]] = {PURCHASES: {}, HABITS: {}, "alerts": {}}
        for when, fields in self.events:
            for event in records_of(fields):
                found[event["into"]][event["key"], event["time"]] = when, (event["source_key"], event["time"])
        for when, chunk in self.alerts:
            for alert in alerts_at(self._server, chunk, HABITS):
                place = alert["key"], alert["end"]
                found["alerts"][place] = when, place
        return found


def latencies(
    acknowledged: Mapping[_Place, float], seen: Mapping[str, Mapping[_Place, tuple[float, _Place]]]
) -> dict[str, list[float]]:
    """Return the latencies in seconds by name. Results that cannot be traced back to an event are left out."""
    found: dict[str, list[float]] = {"found": [], "hop 1": [], "hop 2": [], "whole": []}
    chain = (("found", PURCHASES, None), ("hop 1", HABITS, PURCHASES), ("hop 2", "alerts", HABITS))
    for name, stream, source in chain:
        for when, place in seen[stream].values():
            begun = acknowledged.get(place) if source is None else seen[source].get(place, (None,))[0]
            if begun is not None:
                found[name].append(when - begun)
    for when, place in seen["alerts"].values():
        habit = seen[HABITS].get(place)
        payment = None if habit is None else seen[PURCHASES].get(habit[1])
        begun = None if payment is None else acknowledged.get(payment[1])
        if begun is not None:
            found["whole"].append(when - begun)
    return found


def _measured(url: str, server: str, wanted: Namespace) -> None:
    events = chain_events(round(wanted.seconds * wanted.rate / 2))
    starts = range(0, len(events) - wanted.request + 1, wanted.request)
    parts = [events[start : start + wanted.request] for start in starts]
    bodies = [orjson.dumps([render_plain(event) for event in part]) for part in parts]
    results = Results(server)
    thread = Thread(target=results.run, name="results")
    thread.start()
    wanted.url = url
    answered, _, _, behind_s = post_at_rate(bodies, wanted, (ORDERS,))
    Flag().wait(GRACE_S)
    results.stop.set()
    thread.join()
    first = FIRST_SHARE * len(parts)
    acknowledged = _places([(answered[number], parts[number]) for number in answered if number >= first])
    count = len(answered) * wanted.request
    print(f"{count:,} events posted at {wanted.rate:,} events/s, at the end {behind_s:.1f} s behind")
    for name, seconds in latencies(acknowledged, results.seen()).items():
        if seconds:
            p50, p99, most = np.percentile(seconds, [50, 99, 100]) * 1_000
            print(f"  {name:6} {len(seconds):7,} results: p50 {p50:6,.0f} ms, p99 {p99:6,.0f} ms, most {most:6,.0f} ms")


def _places(answered: Sequence[tuple[float, Sequence[Event]]]) -> dict[_Place, float]:
    return {(event.key, format_time(event.time_us)): when for when, events in answered for event in events}


def main() -> None:
    """Print the latencies."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=2_000, help="events per second")
    parser.add_argument("--request", type=int, default=50, help="events of a request")
    wanted = parser.parse_args()
    more = {"LIMITS__RECENT_KEPT": "1000000"}
    with (
        TemporaryDirectory(prefix="forestall-bench-") as folder,
        running(Path(folder), lambda text: print(text, flush=True), more) as service,
    ):
        declare_chain(service.client)
        os.environ["FORESTALL_API_KEY"] = service.api_key
        redis_url = service.supervisor.redis_url
        assert redis_url is not None, "the service runs"
        before = cpu_s(service)
        _measured(service.url, redis_url, wanted)
        spent = {part: seconds - before[part] for part, seconds in cpu_s(service).items()}
        print("  CPU:", ", ".join(f"{part} {seconds:.1f} s" for part, seconds in spent.items()))


if __name__ == "__main__":
    main()

"""Latency of an alert of a pattern over a join of three streams, compared with an alert of a plain pattern.

Orders, payments and shipments share a key and arrive at a steady rate. The shipment comes last. It completes a match of
a plain pattern on the stream of shipments, and a combination of the join, for which a pattern over the join raises an
alert. The whole service runs as in production. This process posts events at their due times and watches results arrive
in Redis, so all times are read from one clock. Latencies start at the acknowledgement of the shipment:

- *plain*: to the alert of the plain pattern;
- *joined*: to the derived event of the join;
- *behind*: to the alert of the pattern over the join;
- *later*: *behind* less *plain*, of the same shipment.

Before that, *alone*: the plain pattern in a service without the join.

    scripts/bench join_latency --rate=5000 --seconds=60
"""

from __future__ import annotations

import os
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread
from time import time
from typing import Any

import numpy as np
import orjson
import redis

from benchmarks.arrivals import alerts_at, index_of, records_of
from benchmarks.pipeline_latency import FIRST_SHARE, post_at_rate, tell_batches
from service.client import Client
from service.processes.temporary import TemporaryService, running
from service.stores.results.recent import list_key
from shards import DERIVED
from streams import Event, render_plain

STREAMS = ("orders", "payments", "shipments")
JOIN = {
    "name": "ready",
    "inputs": [{"stream": stream, "as": stream[0]} for stream in STREAMS],
    "window": "5 s",
    "return": {"shipment": "id(s)", "order": "id(o)", "payment": "id(p)", "v": "s.v"},
}
PLAIN = "PATTERN plain EVENT shipments s [v < 5]"
BEHIND = "PATTERN behind EVENT ready r [v < 5]"
GRACE_S = 20.0
_START_US = 1_767_225_600_000_000
_LAST_US = 500_000  # longest time between consecutive events of an order


def made(seconds: float, rate: int, seed: int = 7) -> dict[str, list[Event]]:
    """Return the events of each stream by time, at a third of the rate each.

    Events at the same index of different streams have similar times.
    """
    chance = random.Random(seed)
    found: dict[str, list[Event]] = {stream: [] for stream in STREAMS}
    for number in range(round((seconds + 2.0) * rate / len(STREAMS))):
        time_us = _START_US + number * 1_000_000 * len(STREAMS) // rate
        for stream in STREAMS:
            data = {"v": chance.randrange(100)}
            identity = f"{stream}-{number}"
            found[stream].append(Event(id=identity, type=stream, time_us=time_us, key=f"o{number}", data=data))
            time_us += chance.randrange(1, _LAST_US)
    begin_us = _START_US + len(STREAMS) * _LAST_US  # from this time on, all streams have their full rate
    begun = {stream: [one for one in events if one.time_us >= begin_us] for stream, events in found.items()}
    least = min(map(len, begun.values()))
    return {stream: sorted(events, key=lambda one: one.time_us)[:least] for stream, events in begun.items()}


class Results:
    """A thread that records when derived events and alerts arrive in Redis."""

    def __init__(self, url: str) -> None:
        self._server = redis.Redis.from_url(url)
        self._events: list[tuple[float, Mapping[bytes, bytes]]] = []
        self._alerts: list[tuple[float, str, bytes]] = []
        self.stop = Flag()

    def run(self) -> None:
        """Record the arrival time of each result, until ``stop`` is set."""
        streams = {index_of(stream): stream for stream in (str(JOIN["name"]), STREAMS[-1])}
        last: dict[Any, Any] = dict.fromkeys([list_key(DERIVED), *streams], b"0")
        while not self.stop.is_set():
            found: Any = self._server.xread(last, block=200, count=10_000)
            now = time()
            for key, entries in found:
                last[key.decode()] = entries[-1][0]
                stream = streams.get(key.decode())
                if stream is None:
                    self._events += [(now, fields) for _, fields in entries]
                else:
                    self._alerts += [(now, stream, place) for place, _ in entries]

    def of_shipments(self) -> dict[str, dict[str, float]]:
        """Return the arrival time of each result, by kind and by the shipment that completed it."""
        found: dict[str, dict[str, float]] = {"plain": {}, "joined": {}, "behind": {}}
        shipments: dict[str, str] = {}
        for when, fields in self._events:
            for event in records_of(fields):
                shipments[event["id"]] = event["data"]["shipment"]
                found["joined"][event["data"]["shipment"]] = when
        for when, stream, place in self._alerts:
            for body in alerts_at(self._server, place, stream):
                ((bound,),) = body["bindings"].values()
                found[body["pattern"]][shipments.get(bound, bound)] = when
        return found


def measured(service: TemporaryService, wanted: Namespace, *, is_joined: bool) -> dict[str, list[float]]:
    """Return the latencies in seconds by name."""
    declare(service.client, is_joined=is_joined)
    parts = [
        [events[start : start + wanted.request] for start in range(0, len(events), wanted.request)]
        for events in made(wanted.seconds, wanted.rate).values()
    ]
    posted = [part for some in zip(*parts, strict=True) for part in some]
    bodies = [orjson.dumps([render_plain(event) for event in part]) for part in posted]
    assert service.supervisor.redis_url is not None, "the service runs"
    results = Results(service.supervisor.redis_url)
    thread = Thread(target=results.run, name="results")
    thread.start()
    wanted.url = service.url
    before = service.client.get("/pipeline")
    answered, _, _, behind_s = post_at_rate(bodies, wanted, STREAMS)
    after = service.client.get("/pipeline")
    Flag().wait(GRACE_S)
    results.stop.set()
    thread.join()
    first = FIRST_SHARE * len(posted)
    acknowledged = {event.id: when for number, when in answered.items() if number >= first for event in posted[number]}
    count = len(answered) * wanted.request
    print(f"{count:,} events posted at {wanted.rate:,} events/s, at the end {behind_s:.1f} s behind")
    tell_batches(before, after)
    return latencies(acknowledged, results.of_shipments())


def latencies(acknowledged: Mapping[str, float], seen: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the latencies in seconds by name. Shipments that were acknowledged during the warm-up are left out."""
    found = {
        name: [when - acknowledged[shipment] for shipment, when in some.items() if shipment in acknowledged]
        for name, some in seen.items()
    }
    plain, behind = seen["plain"], seen["behind"]
    found["later"] = [behind[one] - plain[one] for one in behind if one in plain and one in acknowledged]
    return found


def declare(client: Client, *, is_joined: bool) -> None:
    """Declare the streams and register the plain pattern.

    If ``is_joined``, also register the join with a pattern over it.
    """
    for stream in STREAMS:
        client.post("/streams", {"name": stream})
    client.post("/patterns", {"stream": STREAMS[-1], "text": PLAIN})
    if is_joined:
        client.post("/joins", JOIN)
        client.post("/patterns", {"stream": str(JOIN["name"]), "text": BEHIND})


def tell(found: Mapping[str, Sequence[float]]) -> None:
    """Print the latencies."""
    for name, seconds in found.items():
        if seconds:
            p50, p99, most = np.percentile(seconds, [50, 99, 100]) * 1_000
            print(f"  {name:6} {len(seconds):7,} results: p50 {p50:6,.0f} ms, p99 {p99:6,.0f} ms, most {most:6,.0f} ms")


def main() -> None:
    """Print the latencies."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=5_000, help="events per second, of all streams")
    parser.add_argument("--request", type=int, default=50, help="events of a request")
    wanted = parser.parse_args()
    for is_joined in (False, True):
        more = {"LIMITS__RECENT_KEPT": "1000000"}
        with TemporaryDirectory(prefix="forestall-bench-") as folder, running(Path(folder), more=more) as service:
            os.environ["FORESTALL_API_KEY"] = service.api_key
            found = measured(service, wanted, is_joined=is_joined)
        tell(found if is_joined else {"alone": found["plain"]})


if __name__ == "__main__":
    main()

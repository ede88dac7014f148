"""Auctions count their bids: one webhook for each when it is over, with the right count, whatever dies meanwhile.

Source: the worked example 6.4 e of the specification of punctuation-aware joins.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from threading import Event as Pause

import orjson
import pytest

from benchmarks.pipeline_chaos import workers_of
from service.processes.temporary import TemporaryService, require_ready
from service.sending import send_events
from streams import Event, parse_time
from tests.builders.service import HandReceiver, receiving
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

QUIET_S = 4.0  # in which nothing may come
HOUR_US = 3_600_000_000
OPENED_US = parse_time("2026-03-02T09:00:00Z")
BIDS = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4]  # of each auction, in its first hour
SOLD = {
    "name": "closed_lots",
    "inputs": [
        {"stream": "lots", "as": "a", "type": "Opened", "closed_by": "unique", "window": "24 h"},
        {"stream": "offers", "as": "b", "type": "Bid", "closed_by": "punctuation"},
    ],
    "emit": "on_close",
    "outer": ["b"],
    "return": {"auction": "id(a)", "bids": "count(b)", "best": "max(b.price)"},
}


class Auctions:
    """A service with auctions, and what its webhook has said."""

    def __init__(self, service: TemporaryService, receiver: HandReceiver) -> None:
        self.service, self.receiver = service, receiver
        self.sent = 0

    def send(self, stream: str, rows: Iterable[tuple[str, str, int]]) -> None:
        """Post events: type, key, time."""
        events = []
        for kind, key, time_us in rows:
            self.sent += 1
            data = {"price": self.sent}
            events.append(Event(id=f"e{self.sent}", type=kind, time_us=time_us, key=key, data=data))
        answer = send_events(self.service.client, stream, events, f"{stream}-{self.sent}")
        assert answer["rejected"] == []

    def pass_time(self, hours: float) -> None:
        """Let time come so far in both streams."""
        for stream in ("lots", "offers"):
            self.send(stream, [("Time", "none", OPENED_US + round(hours * HOUR_US))])

    def counts(self) -> dict[str, int]:
        """The bids of each auction that is over; a webhook that is sent again says the same under the same id."""
        bodies = {body["id"]: body for body in map(orjson.loads, self.receiver.bodies)}
        found = {body["key"]: body["data"]["bids"] for body in bodies.values()}
        assert len(found) == len(bodies)  # one for each auction
        return found

    def settled(self) -> dict[str, int]:
        """The counts once everything is matched and nothing more comes."""
        require_ready(self.service.client, self.service.supervisor)
        until(
            lambda: self.service.client.get("/pipeline")["backlog"]["waiting_volume"]["events"] == 0,
            "the backlog",
            self.service,
        )
        Pause().wait(QUIET_S)
        return self.counts()

    def kill_worker(self) -> None:
        """Kill a Python process of Spark."""
        driver = self.service.supervisor.pid("pipeline")
        assert driver is not None
        os.kill(workers_of(driver)[0], signal.SIGKILL)

    def kill_driver(self) -> None:
        """Kill the pipeline."""
        driver = self.service.supervisor.pid("pipeline")
        assert driver is not None
        os.kill(driver, signal.SIGKILL)


def test_an_auction_that_is_over_sends_one_webhook_with_its_count(service: TemporaryService) -> None:
    with receiving() as receiver:
        for stream in ("lots", "offers"):
            service.client.post("/streams", {"name": stream})
        service.client.post("/joins", SOLD)
        service.client.post("/webhooks", {"url": receiver.url, "kinds": ["derived"], "pattern": "closed_lots"})
        auctions = Auctions(service, receiver)
        keys = [f"{number}" for number in range(len(BIDS))]
        auctions.pass_time(-0.001)
        auctions.send("lots", [("Opened", key, OPENED_US + place) for place, key in enumerate(keys)])
        bids = [(key, part) for key, count in zip(keys, BIDS, strict=True) for part in range(count)]
        auctions.send("offers", [("Bid", key, OPENED_US + 1_000 + place) for place, (key, _) in enumerate(bids)])
        auctions.pass_time(1)
        assert auctions.settled() == {}  # none is over

        auctions.kill_worker()
        for key in keys[:3]:
            service.client.post(f"/traces/offers/{key}/end", {})
        service.client.post("/streams/offers/punctuations", {"range": {"from": 3, "to": 5}})
        auctions.kill_driver()
        auctions.pass_time(2)
        closed = dict(zip(keys[:6], BIDS[:6], strict=True))
        until(lambda: auctions.counts() == closed, "the auctions that are closed", service)

        auctions.send("offers", [("Bid", key, OPENED_US + 25 * HOUR_US) for key in keys[6:8]])  # after 24 hours
        auctions.pass_time(26)
        everything = dict(zip(keys, BIDS, strict=True))
        until(lambda: auctions.counts() == everything, "the auctions that took bids for 24 hours", service)
        for key in keys:
            service.client.post(f"/traces/offers/{key}/end", {})
        auctions.pass_time(60)
        assert auctions.settled() == everything
        found = (one for one in service.client.pages("/derived-events") if one["into"] == "closed_lots")
        times = {one["key"]: parse_time(one["time"]) for one in found}
        letters = [one for stream in ("lots", "offers") for one in service.client.pages("/dead-letters", stream=stream)]
    assert letters == []
    assert all(times[key] < OPENED_US + 3 * HOUR_US for key in keys[:6])
    assert [times[key] - OPENED_US for key in keys[6:]] == [24 * HOUR_US + place for place in range(6, len(keys))]

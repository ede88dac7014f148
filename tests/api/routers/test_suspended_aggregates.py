"""An aggregate beyond its memory: suspended in all shards, listed, delivered, measured, and resumed from nothing."""

import asyncio
import random

import orjson
import pytest

from service import AlertSink
from service.delivery.deliverer import Deliverer
from service.processes.cluster import job_options
from shards import RESULT_KINDS
from tests.builders.delivering import deliver_due
from tests.builders.job import match_log
from tests.builders.service import receiving

pytestmark = pytest.mark.redis

BUSY = {"name": "busy", "of": "clicks", "by": ["user"], "values": {"n": "count()"}, "window": "1 h"}
BUSY |= {"having": "n > 2", "memory": {"rows": 3}}


@pytest.fixture
def send(http, stores, clock, settings, tmp_path):
    """Posts events of one user at some minutes of a day, and matches the log to its end."""
    assert http.post("/v1/streams", json={"name": "clicks", "key": "data.user"}).status_code == 201
    assert http.post("/v1/aggregates", json=BUSY).status_code == 201
    own = settings.model_copy(update={"data_dir": tmp_path})

    def sent(*minutes):
        times = [f"2025-12-31T{minute // 60:02}:{minute % 60:02}:00Z" for minute in minutes]
        events = [{"id": time, "type": "Click", "time": time, "data": {"user": "ann"}} for time in times]
        assert http.post("/v1/events?stream=clicks", json=events).json()["accepted"] == len(events)
        match_log(job_options(own, stores.log.layout.read(), stores.url, tasks=1), AlertSink(stores, clock))

    return sent


def counted(http):
    """The counts of the aggregate in the metrics, by name, and whether it is suspended."""
    lines = [line.rpartition(" ") for line in http.get("/metrics").text.splitlines()]
    begin, end = 'forestall_operator_counts{count="', '",operator="aggregate",stream="clicks"}'
    counts = {
        name.removeprefix(begin).removesuffix(end): float(number)
        for name, _, number in lines
        if name.startswith(begin) and name.endswith(end)
    }
    return counts, ('forestall_operator_suspended{name="busy",operator="aggregate"}', " ", "1.0") in lines


def test_an_aggregate_beyond_its_memory_is_suspended_listed_delivered_and_resumed(http, send, stores, clock, settings):
    send(600, 601, 300)
    assert counted(http) == ({"groups": 1, "held": 2, "late": 1}, False)
    with receiving() as receiver:
        assert "aggregate.suspended" in http.post("/v1/webhooks", json={"url": receiver.url}).json()["kinds"]
        send(602, 603, 604)
        asyncio.run(deliver_due(Deliverer(stores, settings.webhooks, clock, random.Random(7))))
    shown = http.get("/v1/aggregates/busy").json()
    (listed,) = http.get("/v1/aggregates/busy/results/aggregate-suspensions").json()["items"]
    assert (shown["state"], shown["suspension"]["id"]) == ("suspended", listed["id"])
    assert listed.keys() == RESULT_KINDS["aggregate-suspension"].members
    assert "hold more than 3 events in one shard" in listed["reason"]
    (body,) = map(orjson.loads, receiver.bodies)
    assert (body["type"], body["id"], body["reason"]) == ("aggregate.suspended", listed["id"], listed["reason"])
    assert counted(http) == ({"groups": 0, "held": 0, "late": 1}, True)
    assert "suspended" in http.get("/v1/aggregates/busy/explanation").json()["sentences"][-1]
    resumed = http.post("/v1/aggregates/busy/resume").json()
    assert (resumed["state"], resumed["version"], resumed["suspension"]) == ("active", 2, None)
    assert resumed["is_continued"] is False
    send(605)
    assert counted(http) == ({"groups": 1, "held": 1, "late": 0}, False)

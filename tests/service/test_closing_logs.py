"""A derived stream in Redis: an operator with another key stops while another one feeds the stream directly."""

import random

import orjson
import pytest

from service import Registration, Stores
from service.intake.posting import Intake
from streams import CLOSED_US, DERIVED_PROMISES_KEY, StreamDeclaration, log_key
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, settings_for
from tests.service.test_continuous import Continuous
from tests.service.test_derived_chain import Job, settled

pytestmark = [pytest.mark.redis, pytest.mark.slow]

PATTERNS = {
    "far": ("s", "PATTERN far EVENT A a RETURN a.c AS c, a.n AS n INTO d KEY c TYPE M"),
    "near": ("t", "PATTERN near EVENT A a RETURN a.n AS n INTO d TYPE M"),
    "pairs": ("d", "PATTERN pairs EVENT SEQ(M a, STRICT M b) RETURN a.n AS a, b.n AS b"),
}


@pytest.mark.parametrize("is_continuous", [False, True])
def test_events_in_the_log_are_matched_in_order_and_the_log_is_closed(client, server_url, tmp_path, is_continuous):
    runtime = "continuous" if is_continuous else "micro-batch"
    settings = settings_for(server_url, data_dir=tmp_path / "data", shards=3, runtime=runtime)
    stores, chance = Stores(client, server_url, settings), random.Random(1)
    registration = Registration(stores, settings, HandClock())
    for name in "st":
        registration.declare_stream(StreamDeclaration(name=name, key="data.k"))
    for stream, text in PATTERNS.values():
        register_pattern(registration, stream, text)
    intake = Intake(stores.log, stores.registry, settings.limits, HandClock())

    def post(stream, *numbers):
        for number in numbers:
            data = {"k": "k" if stream == "t" else "other", "c": "k", "n": number}
            intake.ingest(stream, [{"id": f"e{number}", "type": "A", "time": number * 1_000_000, "data": data}])

    def pairs():
        return sorted(tuple(alert["returns"].values()) for alert in stores.alerts.page(limit=100).items)

    post("s", 1, 3)
    registration.delete_pattern("far")
    post("t", 2, 4, 5)
    job = Continuous(settings, stores, kills=0) if is_continuous else Job(settings, stores)
    try:
        settled(job, stores, chance)
        assert pairs() == [(1, 2), (2, 3), (3, 4), (4, 5)]
        post("t", 6)
        settled(job, stores, chance)
        assert (5, 6) in pairs()
    finally:
        if isinstance(job, Continuous):
            job.end()
    assert [name for name in client.hkeys(DERIVED_PROMISES_KEY) if name.endswith(b":d")] == []
    for shard in range(3):
        ticks = [
            orjson.loads(entry[b"body"]) for _, entry in client.xrange(log_key(shard)) if entry[b"kind"] == b"tick"
        ]
        assert [tick["time"] for tick in ticks if tick["time"] >= CLOSED_US] == [CLOSED_US + 1, CLOSED_US + 2]

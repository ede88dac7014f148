"""Open transactions over HTTP, answered by a Spark job that runs."""

import httpx
import pytest

from api import create_app
from pipeline.job import JobOptions, start_query
from pipeline.sources import EventLogOptions
from service import AlertSink, Stores
from tests.builders.api import serving
from tests.builders.service import HandClock, empty_client, private_server, settings_for

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

PATIENCE_S = 600.0


def test_the_shards_say_which_orders_are_stuck(spark, tmp_path):
    clock = HandClock()
    with private_server(tmp_path / "redis") as url, empty_client(url) as client:
        settings = settings_for(url, limits={"question_wait_s": PATIENCE_S})
        stores = Stores(client, url, settings)
        log = EventLogOptions(redis_url=url, shards=settings.shards, snapshots=str(tmp_path / "saved"), wait_ms=20)
        options = JobOptions(log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handed")
        with (
            serving(create_app(settings, clock)) as address,
            httpx.Client(base_url=address, timeout=PATIENCE_S) as http,
        ):
            declaration = {"name": "orders", "key": "data.id", "end_events": ["Ship"]}
            assert http.post("/v1/streams", json=declaration).status_code == 201
            body = {"stream": "orders", "text": "PATTERN unpaid EVENT SEQ(Order o, Remind r, Cancel c)"}
            assert http.post("/v1/patterns", json=body).status_code == 201
            query = start_query(spark, options, AlertSink(stores, clock))
            try:
                stores.heartbeat.beat(clock.now_us())
                events = [
                    {
                        "id": f"{name}{number}",
                        "type": name,
                        "time": 60_000_000 * number,
                        "data": {"id": f"o{number % 5}"},
                    }
                    for number, name in enumerate(["Order"] * 5 + ["Remind"] * 3 + ["Ship"] * 7)
                ]
                assert http.post("/v1/events?stream=orders", json=events[:8]).json()["accepted"] == 8
                found = http.get("/v1/traces", params={"stream": "orders", "pattern": "unpaid", "limit": 3}).json()
                assert http.post("/v1/events?stream=orders", json=events[10:12]).json()["accepted"] == 2
                after = http.get("/v1/traces", params={"stream": "orders"}).json()
            finally:
                query.stop()
    assert (found["open_count"], found["matching_count"]) == (5, 5)
    assert len(found["positions"]) == settings.shards
    assert [trace["key"] for trace in found["items"]] == ["o0", "o1", "o2"]
    (pattern,) = found["items"][0]["patterns"]
    assert pattern["furthest"]["waits_for"] == ["Cancel c"]
    assert [trace["key"] for trace in after["items"]] == ["o2", "o3", "o4"]

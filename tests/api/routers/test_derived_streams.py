"""Derived streams over HTTP: which operators feed and read them, and which requests are refused."""

from typing import Any

import orjson
import pytest

from service import AlertSink
from tests.builders.service import sink_row, stats_row

pytestmark = pytest.mark.redis

LATE = "PATTERN late EVENT A a RETURN a.c AS c INTO hints KEY c"


@pytest.fixture
def hints(http, orders):
    """The stream that a pattern on orders feeds, and another listens to."""
    late = http.post("/v1/patterns", json={"stream": "orders", "text": LATE})
    assert (late.status_code, late.json()["into"]) == (201, "hints")
    assert http.post("/v1/patterns", json={"stream": "hints", "text": "PATTERN q EVENT late a"}).json()["into"] is None
    return "hints"


def test_a_derived_stream_names_who_feeds_it_and_who_listens(http, hints):
    found = http.get("/v1/streams/hints").json()
    assert found["derived"]
    assert (found["producers"], found["consumers"], found["held_back_by"]) == (["late"], ["q"], None)
    assert http.get("/v1/streams/orders").json()["consumers"] == ["late"]
    assert http.get("/v1/patterns/late").json()["into"] == "hints"


def test_nobody_posts_to_it(http, hints, check_problem):
    event = {"id": "1", "type": "A", "time": 5, "key": "k"}
    body = check_problem(http.post("/v1/events?stream=hints", json=event), 409, "stream-derived")
    assert "the stream 'hints' is derived: operators make its events" in body["detail"]
    promise = {"before": "2026-01-01T00:00:00Z"}
    check_problem(http.post("/v1/streams/hints/punctuations", json=promise), 409, "stream-derived")


def test_what_cannot_be_derived_is_refused(http, orders, hints, check_problem):
    into = {"stream": "hints", "text": "PATTERN r EVENT late a INTO orders"}
    check_problem(http.post("/v1/patterns", json=into), 409, "stream-not-derived")
    into["text"] = "PATTERN r EVENT late a INTO hints"
    check_problem(http.post("/v1/patterns", json=into), 400, "derivation-refused")
    check_problem(
        http.post("/v1/streams", json={"name": "s", "derived": True, "lateness": 5}), 400, "stream-declaration"
    )


def test_a_restricted_key_feeds_only_streams_that_it_may_touch(http, orders, holder, check_problem):
    mine = holder("patterns", "read", streams=["orders"])
    body = check_problem(mine.post("/v1/patterns", json={"stream": "orders", "text": LATE}), 403, "forbidden")
    assert "'hints', which INTO names" in body["detail"]
    assert http.get("/v1/streams/hints").status_code == 404
    both = holder("patterns", "read", streams=["orders", "hints"])
    assert both.post("/v1/patterns", json={"stream": "orders", "text": LATE}).status_code == 201


def test_its_events_are_listed_and_its_state_is_shown(http, hints, stores, clock):
    event: dict[str, Any] = {
        "id": "d1",
        "stream": "orders",
        "into": "hints",
        "type": "late",
        "time": "2026-01-01T00:00:01Z",
    }
    event |= {"key": "c1", "data": {"c": "c1"}, "pattern": "late", "version": 1, "source_key": "k", "rekeyed": True}
    row = sink_row(kind="derived", stream="orders", id="d1", body=orjson.dumps(event))
    streams = {"hints": {"watermark_us": 5, "waiting": 1}, "orders": {"watermark_us": 7}}
    AlertSink(stores, clock)([row, stats_row(0, "1-0", after="0-0", streams=streams)], 1)
    page = http.get("/v1/derived-events?stream=orders").json()
    newer = http.get("/v1/derived-events", params={"stream": "orders", "after": page.pop("after")}).json()
    assert newer["items"] == []
    assert page == {
        "items": [event],
        "counts": [{"stream": "orders", "pattern": "late", "into": "hints", "count": 1}],
        "next": None,
    }
    assert http.get("/v1/streams/hints").json()["held_back_by"] == (
        "1 event is held until stream 'orders' passes 1970-01-01T00:00:00.000007Z in shard 0; no newer event has "
        "arrived there"
    )
    AlertSink(stores, clock)([stats_row(0, "2-0", after="1-0", streams={"hints": {"waiting": 2}, "orders": {}})], 2)
    assert http.get("/v1/streams/hints").json()["held_back_by"] == (
        "2 events wait for the first event of orders; without one, a punctuation ends the wait (forestall streams "
        "punctuate), and so does quiet_after"
    )
    states = {one["name"]: one for one in http.get("/v1/pipeline").json()["streams"]}
    assert (states["hints"]["derived"], states["orders"]["derived"]) == (True, False)
    assert "forestall_derived_events_total" in http.get("/metrics").text

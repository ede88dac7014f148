"""The events of a stream: in pages, and over a real connection as they come."""

import pytest
from httpx_sse import connect_sse

from streams import log_key

pytestmark = pytest.mark.redis


def post(http, *numbers, key="k", type_="A"):
    events = [
        {"id": f"e{number}", "type": type_, "time": f"2026-01-01T00:00:{number:02}Z", "data": {"id": key, "n": number}}
        for number in numbers
    ]
    assert http.post("/v1/events?stream=orders", json=events).status_code == 202


def taken(http, count, query="", **headers):
    """The first messages of an answer."""
    with connect_sse(http, "GET", f"/v1/streams/orders/events/live{query}", headers=headers) as source:
        assert source.response.status_code == 200
        events = source.iter_sse()
        return [next(events) for _ in range(count)]


def ids(http, query=""):
    return [event["id"] for event in http.get(f"/v1/streams/orders/events{query}").json()["items"]]


def test_the_newest_events_are_listed_and_all_from_a_cursor_on(orders):
    post(orders, 1, 2, 3)
    page = orders.get("/v1/streams/orders/events?limit=2").json()
    assert [event["id"] for event in page["items"]] == ["e2", "e3"]
    assert page["items"][0] == {
        "id": "e2",
        "type": "A",
        "time": "2026-01-01T00:00:02.000000Z",
        "key": "k",
        "data": {"id": "k", "n": 2},
    }
    assert (page["next"], page["trimmed_until"]) == (None, None)
    post(orders, 4)
    assert ids(orders, f"?after={page['after']}") == ["e4"]
    first = orders.get("/v1/streams/orders/events?after=0&limit=3").json()
    assert [event["id"] for event in first["items"]] == ["e1", "e2", "e3"]
    assert ids(orders, f"?after={first['next']}") == ["e4"]


def test_events_are_chosen_by_key_and_type(orders):
    post(orders, 1, 2)
    post(orders, 3, key="other")
    post(orders, 4, type_="B")
    assert ids(orders, "?after=0&key=other") == ["e3"]
    assert ids(orders, "?after=0&type=B") == ["e4"]


def test_wrong_questions_are_refused(orders, check_problem):
    check_problem(orders.get("/v1/streams/nobody/events"), 404, "unknown-stream")
    for path in ("events", "events/live"):
        check_problem(orders.get(f"/v1/streams/orders/{path}?after=x"), 400, "invalid-cursor")


def test_a_restricted_key_reads_its_own_streams_only(orders, holder, check_problem):
    orders.post("/v1/streams", json={"name": "mine"})
    own = holder("read", streams=["mine"])
    assert own.get("/v1/streams/mine/events").status_code == 200
    check_problem(own.get("/v1/streams/orders/events"), 403, "forbidden")


def test_events_come_with_their_cursors(orders):
    post(orders, 1, 2)
    begin, *events = taken(orders, 3, "?after=0")
    assert (begin.id, begin.retry, begin.data) == ("0", 2_000, "")
    assert [(event.event, event.json()["id"]) for event in events] == [("event", "e1"), ("event", "e2")]
    assert events[0].json() == orders.get("/v1/streams/orders/events?after=0").json()["items"][0]
    _, event = taken(orders, 2, "?after=0", **{"Last-Event-ID": events[0].id})
    assert event.json()["id"] == "e2"


def test_a_listener_that_falls_behind_is_sent_the_gap(orders, stores):
    post(orders, 1)
    (first,) = taken(orders, 1)
    post(orders, 2)
    post(orders, 3)
    for shard in range(stores.log.shards()):
        stores.client.xtrim(log_key(shard), maxlen=1, approximate=False)
    start, gap, event = taken(orders, 3, **{"Last-Event-ID": first.id})
    assert (start.event, gap.event, event.event) == ("message", "gap", "event")
    assert gap.json() == {
        "trimmed_until": orders.get(f"/v1/streams/orders/events?after={first.id}").json()["trimmed_until"]
    }
    assert event.json()["id"] == "e3"


def test_what_comes_while_somebody_listens_is_sent(orders):
    post(orders, 1)
    with connect_sse(orders, "GET", "/v1/streams/orders/events/live") as source:
        events = source.iter_sse()
        assert next(events).data == ""
        post(orders, 2)
        assert next(events).json()["id"] == "e2"


def test_nothing_is_shown_of_a_stream_that_had_the_name(orders):
    post(orders, 1)
    orders.delete("/v1/streams/orders")
    orders.post("/v1/streams", json={"name": "orders", "key": "data.id"})
    post(orders, 1, key="new")
    assert [event["key"] for event in orders.get("/v1/streams/orders/events?after=0").json()["items"]] == ["new"]
    assert orders.get("/v1/traces/orders/k").status_code == 404

"""A pause before the backlog, and what an operator warns of, over HTTP."""

import orjson
import pytest

from streams import stops_key

pytestmark = pytest.mark.redis

JOIN = {
    "name": "paid",
    "inputs": [{"stream": "orders", "as": "o"}, {"stream": "orders", "as": "p", "key": "data.order"}],
    "window": "24 h",
    "return": {"o": "id(o)", "p": "id(p)"},
}


@pytest.fixture
def stopped(stores):
    """The records by which operators stop, with the position of the last one; and the log's last position."""

    def read():
        found = stores.client.hgetall(stops_key(0))
        ((position, records),) = found.items()
        return position.decode(), [(stream, kind) for stream, kind, _ in orjson.loads(records)]

    return read


def test_a_pattern_stops_before_the_backlog_also_where_it_is_paused_already(orders, stores, stopped):
    orders.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT A a"})
    for place in range(3):
        sent = {"id": f"e{place}", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}}
        assert orders.post("/v1/events?stream=orders", json=sent).status_code == 202
    plain = orders.post("/v1/patterns/p/pause").json()
    assert (plain["state"], plain["skipped"]) == ("paused", None)
    assert not stores.client.exists(stops_key(0))
    found = orders.post("/v1/patterns/p/pause?now=true")
    assert (found.status_code, found.json()["state"]) == (200, "paused")
    assert found.json()["skipped"] == {"events": 3, "positions": {}}
    last = list(stores.log.read_range(0))[-1]
    assert stopped() == (last.position, [("orders", "pattern-pause")])
    assert orders.get("/v1/patterns/p").json()["skipped"] is None


def test_a_join_stops_with_its_inputs_and_warns_where_nothing_bounds_its_results(orders, stores, stopped):
    answer = orders.post("/v1/joins", json=JOIN)
    assert answer.status_code == 201
    (warning,) = answer.json()["warnings"]
    assert warning.startswith("Nothing bounds how many events of one key o and p have at a time")
    assert orders.get("/v1/joins/paid").json()["warnings"] == [warning]
    assert warning in orders.get("/v1/joins/paid/explanation").json()["sentences"]
    found = orders.post("/v1/joins/paid/pause?now=true").json()
    assert (found["state"], found["skipped"]["events"]) == ("paused", 0)
    last = list(stores.log.read_range(0))[-1]
    parts = [("paid.inputs", "operator-pause"), ("orders", "operator-pause"), ("orders", "operator-pause")]
    assert stopped() == (last.position, parts)


def test_nothing_else_takes_effect_before_the_backlog(orders, stores):
    orders.post("/v1/joins", json=JOIN)
    for action in ("retire", "activate"):
        orders.post(f"/v1/joins/paid/{action}?now=true")
    assert not stores.client.exists(stops_key(0))

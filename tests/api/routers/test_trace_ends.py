import pytest

from streams import TraceEnd, decode_control, key_hash, shard_of

pytestmark = pytest.mark.redis


def ends(stores):
    return {
        shard: decode_control(one.kind, one.body)
        for shard in range(stores.log.shards())
        for one in stores.log.read_range(shard)
        if one.kind == "trace-end"
    }


@pytest.mark.parametrize(("path", "key"), [("t7", "t7"), ("a/b", "a/b"), ("%C3%85se%20x", "Åse x"), ("7/end", "7/end")])
def test_the_shard_of_the_key_is_told(orders, stores, path, key):
    answer = orders.post(f"/v1/traces/orders/{path}/end")
    assert (answer.status_code, answer.json()) == (202, {"stream": "orders", "key": key, "time": None})
    assert ends(stores) == {shard_of(key_hash(key), stores.log.shards()): TraceEnd(key=key)}


def test_a_time_may_be_told(orders, stores):
    answer = orders.post("/v1/traces/orders/t7/end", json={"time": "2026-01-01T01:00:00+01:00"})
    assert answer.json()["time"] == "2026-01-01T00:00:00.000000Z"
    assert list(ends(stores).values()) == [TraceEnd(key="t7", time_us=1_767_225_600_000_000)]


def test_an_odd_time_and_an_unknown_stream_are_refused(orders, stores, check_problem):
    answer = orders.post("/v1/traces/orders/t7/end", json={"time": "now"})
    assert "is not RFC 3339" in check_problem(answer, 422, "wrong-shape")["detail"]
    check_problem(orders.post("/v1/traces/none/t7/end"), 404, "unknown-stream")
    assert ends(stores) == {}

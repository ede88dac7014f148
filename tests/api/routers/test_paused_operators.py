"""Paused operators of every kind: what the log says about them, and that shards can apply it."""

from typing import Any

import pytest

from shards import ShardState
from streams import RecordKind

pytestmark = pytest.mark.redis

FIRST: dict[str, dict[str, Any]] = {
    "patterns": {"stream": "orders", "text": "PATTERN o EVENT SEQ(A a, B b)"},
    "joins": {
        "name": "o",
        "inputs": [{"stream": "orders", "as": "a"}, {"stream": "payments", "as": "b"}],
        "window": "1 d",
        "return": {"v": "a.v"},
    },
    "aggregates": {"name": "o", "of": "orders", "by": ["key"], "values": {"n": "count()"}, "window": "1 d"},
}
SECOND: dict[str, dict[str, Any]] = {
    "patterns": {**FIRST["patterns"], "text": "PATTERN o EVENT SEQ(A a, C c)"},
    "joins": {**FIRST["joins"], "inputs": [{"stream": "orders", "as": "a"}, {"stream": "refunds", "as": "b"}]},
    "aggregates": {**FIRST["aggregates"], "window": "2 d"},
}


@pytest.fixture(params=FIRST)
def plural(request):
    return request.param


@pytest.fixture
def http(orders):
    for name in ("payments", "refunds"):
        assert orders.post("/v1/streams", json={"name": name}).status_code == 201
    return orders


def controls(stores):
    """The control records of operators in the log, each with its stream."""
    others = (RecordKind.STREAM_ON, RecordKind.STREAM_OFF)
    return [(one.kind.value, one.stream) for one in stores.log.read_range(0) if one.kind not in others]


def applied(stores):
    """The rows of a shard that applies the whole log: dead letters, if it cannot apply a record."""
    return ShardState(0).apply(list(stores.log.read_range(0)))


def test_a_paused_operator_is_deleted_without_dead_letters(http, stores, plural):
    assert http.post(f"/v1/{plural}", json=FIRST[plural]).status_code == 201
    assert http.post(f"/v1/{plural}/o/pause").status_code == 200
    before = controls(stores)
    assert http.delete(f"/v1/{plural}/o").status_code == 204
    assert (controls(stores), applied(stores)) == (before, [])


def test_the_next_version_of_a_paused_operator_starts_without_dead_letters(http, stores, plural):
    assert http.post(f"/v1/{plural}", json=FIRST[plural]).status_code == 201
    assert http.post(f"/v1/{plural}/o/pause").status_code == 200
    assert http.put(f"/v1/{plural}/o", json=SECOND[plural]).json()["state"] == "active"
    assert applied(stores) == []

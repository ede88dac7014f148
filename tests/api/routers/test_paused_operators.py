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


def registered(answer):
    assert answer.is_success
    return answer.json()["state"], answer.json()["version"]


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


def test_a_new_operator_is_paused_at_once(http, stores, plural):
    answer = http.post(f"/v1/{plural}", json={**FIRST[plural], "state": "paused"})
    assert (answer.status_code, *registered(answer)) == (201, "paused", 1)
    assert http.post(f"/v1/{plural}", json={**FIRST[plural], "state": "paused"}).status_code == 200
    assert registered(http.post(f"/v1/{plural}", json=FIRST[plural])) == ("paused", 1)  # only ``resume`` resumes it
    assert controls(stores) == []
    assert registered(http.post(f"/v1/{plural}/o/resume")) == ("active", 1)
    assert {kind for kind, _ in controls(stores)} <= {"pattern-on", "operator-on"}
    assert (controls(stores) != [], applied(stores)) == (True, [])


def test_another_version_of_a_paused_operator_stays_paused(http, stores, plural):
    assert registered(http.put(f"/v1/{plural}/o", json={**FIRST[plural], "state": "paused"})) == ("paused", 1)
    assert registered(http.put(f"/v1/{plural}/o", json={**SECOND[plural], "state": "paused"})) == ("paused", 2)
    assert controls(stores) == []
    assert registered(http.put(f"/v1/{plural}/o", json=FIRST[plural])) == ("active", 3)
    before = controls(stores)
    assert registered(http.post(f"/v1/{plural}/o/pause")) == ("paused", 3)
    paused = controls(stores)
    assert {kind for kind, _ in paused[len(before) :]} <= {"pattern-pause", "operator-pause"}
    assert registered(http.put(f"/v1/{plural}/o", json={**SECOND[plural], "state": "paused"})) == ("paused", 4)
    assert (controls(stores), applied(stores)) == (paused, [])


def test_a_paused_version_follows_an_active_one(http, stores, plural):
    assert registered(http.post(f"/v1/{plural}", json=FIRST[plural])) == ("active", 1)
    before = controls(stores)
    assert registered(http.put(f"/v1/{plural}/o", json={**SECOND[plural], "state": "paused"})) == ("paused", 2)
    added = controls(stores)[len(before) :]
    assert sorted(stream for _, stream in added) == sorted(stream for _, stream in before)  # each that ran is stopped
    assert not {kind for kind, _ in added} & {"pattern-on", "operator-on"}
    assert registered(http.post(f"/v1/{plural}/o/resume")) == ("active", 2)
    assert http.delete(f"/v1/{plural}/o").status_code == 204
    assert applied(stores) == []


@pytest.mark.parametrize("first", ["draft", "active"])
def test_the_same_document_pauses_an_operator(http, stores, plural, first):
    assert registered(http.post(f"/v1/{plural}", json={**FIRST[plural], "state": first})) == (first, 1)
    before = controls(stores)
    paused = {**FIRST[plural], "state": "paused", "severity": "high"}
    answer = http.put(f"/v1/{plural}/o", json=paused)
    assert (*registered(answer), answer.json()["severity"]) == ("paused", 1, "high")
    assert [stream for _, stream in controls(stores)] == 2 * [stream for _, stream in before]
    assert registered(http.post(f"/v1/{plural}/o/resume")) == ("active", 1)
    assert applied(stores) == []

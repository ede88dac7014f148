"""Taps over HTTP: what may be declared, what uses their streams, and how they are explained."""

import pytest

pytestmark = pytest.mark.redis

STOPPED = {"name": "stopped", "of": "orders", "results": "endings"}
READER = {"name": "reasons", "of": "stopped", "by": ["reason"], "values": {"n": "count()"}, "window": "1 h"}


def test_what_a_tap_feeds_is_used_as_of_patterns(http, orders, check_problem):
    made = http.post("/v1/taps", json=STOPPED)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/taps/stopped")
    assert ["no constraints" in one for one in made.json()["warnings"]] == [True]
    assert http.post("/v1/aggregates", json=READER).status_code == 201
    assert http.get("/v1/streams/stopped").json()["producers"] == ["stopped"]
    check_problem(http.delete("/v1/streams/orders"), 409, "stream-in-use")
    check_problem(http.delete("/v1/streams/stopped"), 409, "stream-in-use")
    explained = http.get("/v1/taps/stopped/explanation").json()["sentences"]
    assert explained[0].startswith("The endings of the stream 'orders' become events of the type 'stopped'")
    circle = {"name": "orders.more", "of": "stopped", "results": "deviations"}
    assert http.post("/v1/taps", json=circle).status_code == 201
    check_problem(http.post("/v1/taps", json={**STOPPED, "of": "orders.more"}), 400, "derivation-refused")
    assert http.delete("/v1/taps/stopped").status_code == 204
    assert http.get("/v1/streams/stopped").json()["producers"] == []


@pytest.mark.parametrize(
    ("changed", "member"),
    [
        ({"results": "alerts"}, "results"),
        ({"key": "region"}, "key"),
        ({"results": "timeouts", "route": "region"}, "route"),
        ({"type": 3}, "type"),
    ],
)
def test_a_wrong_tap_is_refused_by_its_member(http, orders, check_problem, changed, member):
    body = check_problem(http.post("/v1/taps", json={**STOPPED, **changed}), 422, "operator-refused")
    assert body["field"] == member

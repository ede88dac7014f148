from typing import Any

import pytest

pytestmark = pytest.mark.redis

ORDERS = {
    "name": "orders",
    "key": "data.id",
    "keys": {"customer": "data.customer_id"},
    "event_types": ["A", "Z"],
    "end_events": ["Z"],
    "ties": "simultaneous",
    "lateness": None,
    "late": "dead_letter",
    "idle_timeout": None,
    "quiet_after": None,
    "mapping": {"id": "nr", "type": "type", "time": "at", "data": None},
    "duplicates": "keep",
    "derived": False,
}
ALONE: dict[str, Any] = {"producers": [], "consumers": [], "waits_for": None}


def test_a_stream_is_declared_and_shown(http):
    answer = http.post("/v1/streams", json=ORDERS)
    assert (answer.status_code, answer.json()) == (201, ORDERS)
    assert http.get("/v1/streams/orders").json() == {**ORDERS, **ALONE}
    assert http.get("/v1/streams").json() == {"items": [ORDERS]}


def test_most_of_a_declaration_has_defaults(http):
    body = http.post("/v1/streams", json={"name": "s"}).json()
    assert (body["key"], body["event_types"], body["ties"], body["mapping"]["data"]) == ("subject", [], "log", "data")


def test_the_same_declaration_again_is_fine_and_another_is_not(http, check_problem):
    http.post("/v1/streams", json=ORDERS)
    assert http.post("/v1/streams", json=ORDERS).status_code == 200
    check_problem(http.post("/v1/streams", json={**ORDERS, "key": "data.other"}), 409, "stream-exists")


def test_an_unknown_stream_is_a_404(http, check_problem):
    body = check_problem(http.get("/v1/streams/orders"), 404, "unknown-stream")
    assert body["stream"] == "orders"


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"name": "two words"}, "name"), ({"key": ""}, "key"), ({"end_events": ["Q"]}, "end_events")],
)
def test_a_declaration_that_contradicts_itself_is_refused(http, check_problem, changes, field):
    body = check_problem(http.post("/v1/streams", json={**ORDERS, **changes}), 400, "stream-declaration")
    assert body["field"] == field


@pytest.mark.parametrize("body", [{}, {"name": 3}, {"name": "s", "colour": "red"}, {"name": "s", "ties": "no"}, []])
def test_a_body_of_another_shape_is_a_422(http, check_problem, body):
    assert check_problem(http.post("/v1/streams", json=body), 422, "wrong-shape")["errors"]


def test_a_further_key_that_means_two_things_is_refused(http, check_problem):
    body = {"name": "orders", "key": "data.id", "keys": {"id": "data.other"}}
    problem = check_problem(http.post("/v1/streams", json=body), 400, "stream-declaration")
    assert problem["field"] == "keys"

"""Schemas of event types, and events that do not keep them."""

import pytest

pytestmark = pytest.mark.redis

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["price"],
    "properties": {"price": {"$ref": "#/$defs/amount"}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"}},
    "$defs": {"amount": {"type": "number", "minimum": 0}},
}
PATH = "/v1/streams/orders/event-types"
STREAM = "/v1/streams/orders"


def send(http, **data):
    event = {"id": "e", "type": "Quoted", "time": 1, "data": {"id": "k", **data}}
    answer = http.post("/v1/events?stream=orders", json=[event, {**event, "type": "Other"}])
    assert answer.status_code == 202
    return answer.json()


@pytest.fixture
def checked(orders):
    """A service whose stream ``orders`` has a schema for ``Quoted`` and checks it."""
    assert orders.put(f"{PATH}/Quoted", json=SCHEMA).status_code == 201
    assert orders.patch(STREAM, json={"schemas": "check"}).json()["schemas"] == "check"
    return orders


def test_schemas_are_kept(orders, check_problem):
    first = orders.put(f"{PATH}/Quoted", json=SCHEMA)
    assert (first.status_code, first.json()["version"], first.json()["json_schema"]) == (201, 1, SCHEMA)
    assert orders.put(f"{PATH}/Quoted", json=SCHEMA).json() == first.json()
    second = orders.put(f"{PATH}/Quoted", json={}, headers={"content-type": "application/schema+json"})
    assert (second.status_code, second.json()["version"]) == (200, 2)
    assert orders.get(f"{PATH}/Quoted").json() == second.json()
    assert orders.get(PATH).json() == {"items": [second.json()], "next": None}
    orders.put(f"{PATH}/Other", json={})
    assert orders.get(f"{PATH}/Quoted/versions").json() == {"items": [first.json(), second.json()], "next": None}
    page = orders.get(f"{PATH}/Quoted/versions?limit=1").json()
    assert (page["items"], page["next"]) == ([first.json()], "1")
    check_problem(orders.get(f"{PATH}/Unknown/versions"), 404, "unknown-event-type")
    assert orders.delete(f"{PATH}/Quoted").status_code == 204
    for answer in (orders.get(f"{PATH}/Quoted"), orders.delete(f"{PATH}/Quoted")):
        check_problem(answer, 404, "unknown-event-type")
    for answer in (
        orders.get("/v1/streams/nowhere/event-types"),
        orders.put(PATH.replace("orders", "x") + "/A", json={}),
    ):
        check_problem(answer, 404, "unknown-stream")


def test_the_tag_of_a_stream_covers_its_checks(orders, check_problem):
    before = orders.get(STREAM).headers["etag"]
    on = orders.patch(STREAM, json={"schemas": "check"}, headers={"If-Match": before})
    assert (on.status_code, on.headers["etag"] in before) == (200, False)
    check_problem(
        orders.patch(STREAM, json={"schemas": "off"}, headers={"If-Match": before}), 412, "precondition-failed"
    )
    check_problem(orders.delete(STREAM, headers={"If-Match": before}), 412, "precondition-failed")
    both = {"schemas": "off", "description": "d"}
    assert orders.patch(STREAM, json=both, headers={"If-Match": on.headers["etag"]}).json().items() >= both.items()
    assert orders.patch(STREAM, json=both).headers["etag"] == orders.patch(STREAM, json={}).headers["etag"]


def test_a_declaration_says_whether_events_are_checked(http, check_problem):
    assert http.post("/v1/streams", json={"name": "s", "schemas": "check"}).json()["schemas"] == "check"
    assert http.post("/v1/streams", json={"name": "s"}).json()["schemas"] == "check"
    check_problem(http.post("/v1/streams", json={"name": "s", "schemas": "off"}), 409, "stream-exists")


def test_a_type_that_would_hide_the_versions_of_another_is_refused(orders, check_problem):
    check_problem(orders.put(f"{PATH}/Quoted/versions", json=SCHEMA), 422, "wrong-shape")
    assert orders.put(f"{PATH}/Quoted/2", json=SCHEMA).status_code == 201


def test_words_that_json_schema_has_not_are_named(orders):
    schema = {"requird": ["price"], "properties": {"price": {"typ": "number", "x-unit": "EUR"}}, "schema": {}}
    warnings = orders.put(f"{PATH}/Quoted", json=schema).json()["warnings"]
    assert [warning.partition(" is not a word")[0] for warning in warnings] == ["'requird'", "'schema'", "'typ'"]
    assert "(did you mean required?)" in warnings[0]
    assert orders.put(f"{PATH}/Quoted", json=SCHEMA).json()["warnings"] == []


def test_a_stream_checks_only_when_it_says_so(orders):
    orders.put(f"{PATH}/Quoted", json=SCHEMA)
    assert send(orders, price=-1)["rejected"] == []


def test_an_event_that_breaks_its_schema_is_told_and_kept(checked):
    answer = send(checked, price=-1, code="eur")
    assert answer["accepted"] == 1
    (rejected,) = answer["rejected"]
    assert (rejected["index"], rejected["code"]) == (0, "schema-broken")
    assert "data.price: -1 is less than the minimum of 0" in rejected["detail"]
    assert "data.code: " in rejected["detail"]
    assert rejected["detail"].endswith("(schema of the type 'Quoted', version 1)")
    (letter,) = checked.get("/v1/dead-letters?code=schema-broken").json()["items"]
    assert letter["reason"] == rejected["detail"]
    assert send(checked, price=1)["rejected"] == []


def test_the_newest_schema_counts(checked):
    assert len(send(checked, price=-1)["rejected"]) == 1
    checked.put(f"{PATH}/Quoted", json={})
    assert send(checked, price=-1)["rejected"] == []
    checked.put(f"{PATH}/Quoted", json={"maxProperties": 1})
    assert len(send(checked, price=-1)["rejected"]) == 1
    (letter, *_) = checked.get("/v1/dead-letters").json()["items"]
    checked.patch(STREAM, json={"schemas": "off"})
    assert send(checked, price=-1)["rejected"] == []
    assert checked.post(f"/v1/dead-letters/{letter['id']}/replay").json()["is_accepted"] is True


def test_a_stream_that_is_declared_again_is_checked_against_its_own_schemas(orders):
    for required, other in (("price", "amount"), ("amount", "price")):
        assert orders.post("/v1/streams", json={"name": "orders", "key": "data.id", "end_events": ["Z"]}).is_success
        orders.put(f"{PATH}/Quoted", json={"required": [required]})
        orders.patch(STREAM, json={"schemas": "check"})
        assert send(orders, **{required: 1})["accepted"] == 1
        assert len(send(orders, **{other: 1})["rejected"]) == 1
        assert orders.delete(f"{STREAM}?cascade=true").status_code == 200


def test_a_checked_stream_is_declared_as_before(checked):
    again = checked.post("/v1/streams", json={"name": "orders", "key": "data.id", "end_events": ["Z"]})
    assert again.status_code == 200
    assert checked.get(STREAM).json()["schemas"] == "check"


def doubling(times):
    defs = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(times)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{times}": {}}}


def nested(times):
    return {} if times == 0 else {"not": nested(times - 1)}


BAD = {
    "no object": [],
    "no schema": {"type": "numbers"},
    "another draft": {"$schema": "http://json-schema.org/draft-07/schema#"},
    "remote": {"$ref": "https://example.com/schema.json"},
    "file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "elsewhere": {"properties": {"a": {"$ref": "#/$defs/none"}}},
    "own base": {"properties": {"a": {"$id": "http://x/", "$ref": "y"}}},
    "anchor": {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
    "dynamic": {"$dynamicRef": "#"},
    "itself": {"$ref": "#"},
    "recursive": {"properties": {"a": {"$ref": "#"}}},
    "in a round": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "doubling": doubling(20),
    "deep": nested(90),
    "large": {"enum": ["x" * 66_000]},
    "look-around": {"pattern": "(?=a)b"},
    "back-reference": {"pattern": "(a)\\1"},
    "regex bomb": {"pattern": "((a{1000}){1000}){1000}"},
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_read_is_refused(orders, check_problem, name):
    check_problem(orders.put(f"{PATH}/Quoted", json=BAD[name]), 400, "schema-refused")
    assert orders.get(PATH).json()["items"] == []


def test_a_slow_expression_is_read_in_no_time(orders):
    orders.put(f"{PATH}/Quoted", json={"properties": {"code": {"pattern": "^(a+)+$"}}})
    orders.patch(STREAM, json={"schemas": "check"})
    assert len(send(orders, code="a" * 20_000 + "!")["rejected"]) == 1


def test_other_bodies_are_refused(orders, check_problem):
    check_problem(orders.put(f"{PATH}/Quoted", content="{"), 415, "unsupported-media-type")
    headers = {"content-type": "application/json"}
    check_problem(orders.put(f"{PATH}/Quoted", content="{", headers=headers), 400, "malformed-body")
    check_problem(orders.patch(STREAM, json={"schemas": "maybe"}), 422, "wrong-shape")

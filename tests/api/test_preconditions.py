"""ETags, and changes that are only made to what was read."""

import pytest

from tests.builders.api import tag

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT SEQ(A a, B b)"
RULES = {"stream": "orders", "constraints": ["exclusive(B, C)"]}


def pattern(http, text=TEXT, headers=None):
    return http.post("/v1/patterns", json={"stream": "orders", "text": text}, headers=headers or {})


def create_pattern(http, headers):
    return pattern(http, headers=headers)


def change_pattern(http, headers):
    return pattern(http, TEXT + " WITHIN 1 h", headers or {"If-Match": "*"})


def create_rules(http, headers):
    return http.post("/v1/constraints", json=RULES, headers=headers)


def change_rules(http, headers):
    return http.post("/v1/constraints", json={**RULES, "constraints": ["exclusive(B, D)"]}, headers=headers)


def create_schema(http, headers):
    return http.put("/v1/streams/orders/event-types/A", json={}, headers=headers)


def change_schema(http, headers):
    return http.put("/v1/streams/orders/event-types/A", json={"type": "object"}, headers=headers)


def create_workflow(http, headers):
    headers = {"content-type": "application/yaml", **headers}
    return http.put("/v1/workflows/w", content="tree: {sequence: [A, B]}", headers=headers)


def change_workflow(http, headers):
    headers = {"content-type": "application/yaml", **headers}
    return http.put("/v1/workflows/w", content="tree: {sequence: [A, C]}", headers=headers)


KINDS = {
    "pattern": ("/v1/patterns/p", create_pattern, change_pattern),
    "constraints": ("/v1/constraints/orders", create_rules, change_rules),
    "event type": ("/v1/streams/orders/event-types/A", create_schema, change_schema),
    "workflow": ("/v1/workflows/w", create_workflow, change_workflow),
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_read_is_changed(orders, check_problem, kind):
    path, create, change = KINDS[kind]
    created = create(orders, {})
    assert created.status_code == 201, created.text
    first = tag(orders.get(path))
    assert created.headers["etag"] == first
    changed = change(orders, {"If-Match": first})
    assert changed.is_success
    second = tag(orders.get(path))
    assert second == changed.headers["etag"] != first
    body = check_problem(create(orders, {"If-Match": first}), 412, "precondition-failed")
    assert body["etag"] == second.strip('"')
    assert tag(orders.get(path)) == second
    assert create(orders, {"If-Match": f'"other", {second}'}).is_success


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_not_there_is_created(orders, check_problem, kind):
    path, create, change = KINDS[kind]
    check_problem(create(orders, {"If-Match": "*"}), 412, "precondition-failed")
    assert create(orders, {"If-None-Match": "*"}).status_code == 201
    before = tag(orders.get(path))
    for call in (create, change):
        check_problem(call(orders, {"If-None-Match": "*"}), 412, "precondition-failed")
    assert tag(orders.get(path)) == before


@pytest.mark.parametrize("kind", ["pattern", "event type", "workflow"])
def test_only_what_was_read_is_deleted(orders, check_problem, kind):
    path, create, change = KINDS[kind]
    first = create(orders, {}).headers["etag"]
    second = change(orders, {}).headers["etag"]
    check_problem(orders.delete(path, headers={"If-Match": first}), 412, "precondition-failed")
    assert orders.delete(path, headers={"If-Match": second}).status_code == 204


@pytest.fixture
def webhook(orders):
    answer = orders.post("/v1/webhooks", json={"url": "http://127.0.0.1:1/"})
    return f"/v1/webhooks/{answer.json()['id']}", answer.headers["etag"]


def test_only_the_webhook_that_was_read_is_changed(orders, check_problem, webhook):
    path, first = webhook
    assert tag(orders.get(path)) == first
    changed = orders.patch(path, json={"description": "on call"}, headers={"If-Match": first})
    second = changed.headers["etag"]
    assert tag(orders.get(path)) == second != first
    stale = {"If-Match": first}
    for answer in (
        orders.patch(path, json={"enabled": False}, headers=stale),
        orders.post(f"{path}/rotate-secret", json={}, headers=stale),
        orders.delete(path, headers=stale),
    ):
        assert check_problem(answer, 412, "precondition-failed")["etag"] == second.strip('"')
    assert tag(orders.get(path)) == second
    rotated = orders.post(f"{path}/rotate-secret", json={}, headers={"If-Match": second})
    assert rotated.headers["etag"] == tag(orders.get(path)) != second
    assert orders.delete(path, headers={"If-Match": rotated.headers["etag"]}).status_code == 204
    check_problem(orders.delete(path, headers={"If-Match": "*"}), 404, "unknown-webhook")


def test_only_the_key_that_was_read_is_changed(orders, check_problem):
    made = orders.post("/v1/keys", json={"name": "shop", "scopes": ["read"]})
    path, first = f"/v1/keys/{made.json()['id']}", made.headers["etag"]
    assert tag(orders.get(path)) == first
    rotated = orders.post(f"{path}/rotate", headers={"If-Match": first}).headers["etag"]
    for answer in (
        orders.post(f"{path}/rotate", headers={"If-Match": first}),
        orders.delete(path, headers={"If-Match": first}),
    ):
        check_problem(answer, 412, "precondition-failed")
    assert orders.delete(path, headers={"If-Match": rotated}).status_code == 204
    assert orders.get(path).json()["revoked"]


def test_checks_are_switched_where_the_stream_is_as_it_was_read(orders, check_problem):
    path = "/v1/streams/orders"
    first = tag(orders.get(path))
    assert orders.patch(path, json={"lateness": 5, "schemas": "check"}, headers={"If-Match": first}).status_code == 200
    answer = orders.patch(path, json={"schemas": "off"}, headers={"If-Match": first})
    check_problem(answer, 412, "precondition-failed")
    assert orders.get(path).json()["schemas"] == "check"


def test_a_stream_follows_where_its_rules_are_as_they_were_read(orders, check_problem):
    create_workflow(orders, {})
    rules = create_rules(orders, {}).headers["etag"]
    path, wanted = "/v1/streams/orders/workflow", {"workflow": "w"}
    check_problem(orders.put(path, json=wanted, headers={"If-None-Match": "*"}), 412, "precondition-failed")
    followed = orders.put(path, json=wanted, headers={"If-Match": rules})
    assert followed.status_code == 200, followed.text
    current = followed.headers["etag"]
    assert tag(orders.get(path)) == tag(orders.get("/v1/constraints/orders")) == current != rules
    check_problem(orders.put(path, json=wanted, headers={"If-Match": rules}), 412, "precondition-failed")
    check_problem(orders.delete(path, headers={"If-Match": rules}), 412, "precondition-failed")
    assert orders.delete(path, headers={"If-Match": current}).status_code == 204


def test_a_pattern_changes_with_its_state(orders, check_problem):
    first = pattern(orders).headers["etag"]
    paused = orders.post("/v1/patterns/p/pause", headers={"If-Match": first})
    assert paused.headers["etag"] != first
    check_problem(orders.post("/v1/patterns/p/retire", headers={"If-Match": first}), 412, "precondition-failed")
    assert orders.post("/v1/patterns/p/resume").headers["etag"] == first


def test_a_stream_is_declared_once(orders, check_problem):
    declaration = {"name": "other"}
    created = orders.post("/v1/streams", json=declaration, headers={"If-None-Match": "*"})
    assert created.status_code == 201
    assert tag(orders.get("/v1/streams/other")) == created.headers["etag"]
    again = orders.post("/v1/streams", json=declaration, headers={"If-None-Match": "*"})
    check_problem(again, 412, "precondition-failed")


def test_a_weak_tag_is_none_that_counts(orders, check_problem):
    first = pattern(orders).headers["etag"]
    check_problem(orders.delete("/v1/patterns/p", headers={"If-Match": f"W/{first}"}), 412, "precondition-failed")


@pytest.mark.parametrize("header", ["x", '"a" "b"', '"a",', "W/x", '"' + "a" * 3_000 + '"'])
def test_what_is_no_tag_is_refused(orders, check_problem, header):
    pattern(orders)
    check_problem(orders.delete("/v1/patterns/p", headers={"If-Match": header}), 422, "wrong-shape")


INTO = TEXT + " RETURN a.v AS v INTO fresh"
AGGREGATE = {"name": "g", "of": "orders", "by": ["region"], "values": {"n": "count()"}, "window": "1 h"}


def names_of_streams(http):
    return [stream["name"] for stream in http.get("/v1/streams").json()["items"]]


@pytest.mark.parametrize("stored", [None, "active", "draft"])
def test_a_refused_registration_declares_no_stream(orders, check_problem, stored):
    if stored is not None:
        draft = {"stream": "orders", "text": TEXT if stored == "active" else INTO, "state": stored}
        assert orders.post("/v1/patterns", json=draft).status_code == 201
    stale = {"If-Match": '"stale"'}
    check_problem(pattern(orders, INTO, stale), 412, "precondition-failed")
    path = "/v1/patterns/p"
    body = {"stream": "orders", "text": INTO}
    check_problem(orders.put(path, json=body, headers=stale), 412, "precondition-failed")
    if stored == "active":
        check_problem(pattern(orders, INTO), 409, "operator-exists")
    if stored == "draft":
        check_problem(orders.post(f"{path}/activate", headers=stale), 412, "precondition-failed")
    assert names_of_streams(orders) == ["orders"]
    assert orders.put(path, json=body).is_success
    assert names_of_streams(orders) == ["fresh", "orders"]


def test_a_refused_aggregate_declares_no_inner_stream(orders, check_problem):
    stale = {"If-Match": '"stale"'}
    check_problem(orders.post("/v1/aggregates", json=AGGREGATE, headers=stale), 412, "precondition-failed")
    assert names_of_streams(orders) == ["orders"]
    assert orders.post("/v1/aggregates", json={**AGGREGATE, "state": "draft"}).status_code == 201
    check_problem(orders.post("/v1/aggregates/g/activate", headers=stale), 412, "precondition-failed")
    assert names_of_streams(orders) == ["orders"]
    assert orders.post("/v1/aggregates/g/activate").status_code == 200
    assert len(names_of_streams(orders)) > 1

"""The audit log: who asked for which change, and what came of it."""

import pytest

pytestmark = pytest.mark.redis


def noted(http, **parameters):
    return http.get("/v1/audit", params=parameters).json()["items"]


def test_changes_are_noted_newest_first(orders, clock):
    clock.forward(1)
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT A a"}).status_code == 201
    assert orders.delete("/v1/patterns/p").status_code == 204
    entries = noted(orders)
    assert [(entry["method"], entry["route"], entry["resource"], entry["http_status"]) for entry in entries] == [
        ("DELETE", "/v1/patterns/{name}", "/v1/patterns/p", 204),
        ("POST", "/v1/patterns", "/v1/patterns", 201),
        ("POST", "/v1/streams", "/v1/streams", 201),
    ]
    assert {(entry["key"], entry["key_name"]) for entry in entries} == {("environment", "FORESTALL_API_KEY")}
    assert {entry["client"] for entry in entries} == {"127.0.0.1"}
    assert entries[0]["at"] == "2026-01-01T00:00:01.000000Z"


def test_the_key_is_named(http, holder):
    changer = holder("patterns", name="deploy")
    assert changer.post("/v1/streams", json={"name": "more"}).status_code == 201
    entry = noted(http)[0]
    assert entry["key_name"] == "deploy"
    assert entry["key"] == http.get("/v1/keys").json()["items"][0]["id"]


def test_what_is_refused_is_noted_too(http, holder):
    assert holder("read").delete("/v1/patterns/p").status_code == 403
    assert http.delete("/v1/patterns/p").status_code == 404
    assert http.post("/v1/streams", json={"name": "a b"}).status_code == 400
    assert [entry["http_status"] for entry in noted(http)[:3]] == [400, 404, 403]


def test_a_bug_is_noted_as_one(http, monkeypatch):
    def fail(*_):
        raise ValueError("a bug")

    monkeypatch.setattr("service.stores.Registry.declare_stream", fail)
    assert http.post("/v1/streams", json={"name": "more"}, headers={"Connection": "close"}).status_code == 500
    (entry,) = noted(http)
    assert (entry["resource"], entry["http_status"]) == ("/v1/streams", 500)


def test_questions_and_events_are_not(orders):
    before = noted(orders)
    assert orders.post("/v1/events?stream=orders", json=[]).status_code == 202
    assert orders.get("/v1/streams").status_code == 200
    assert orders.post("/v1/traces/orders/k/end").status_code == 202
    assert noted(orders) == before


def test_no_secret_is_in_it(http):
    token = http.post("/v1/keys", json={"name": "n", "scopes": ["read"]}).json()["token"]
    secret = http.post("/v1/webhooks", json={"url": "http://127.0.0.1:1/?password=hidden"}).json()["secret"]
    shown = http.get("/v1/audit?token=hidden").text
    for hidden in (token.rpartition("_")[2], secret, "hidden", "a-key-for-tests"):
        assert hidden not in shown


def test_it_comes_in_pages(http, check_problem):
    for number in range(5):
        assert http.post("/v1/streams", json={"name": f"s{number}"}).status_code == 201
    first = http.get("/v1/audit?limit=2").json()
    second = http.get("/v1/audit", params={"limit": 3, "after": first["next"]}).json()
    assert len(first["items"]) == 2
    assert len(second["items"]) == 3
    assert second["next"] is None
    check_problem(http.get("/v1/audit?after=yesterday"), 400, "invalid-cursor")


def test_a_long_path_is_cut(http):
    assert http.delete("/v1/patterns/" + "x" * 2_000).status_code == 404
    assert len(noted(http)[0]["resource"]) == 500

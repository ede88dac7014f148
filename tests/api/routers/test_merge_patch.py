"""PATCH is a JSON merge patch: what is left out stays, null resets a member to its default, if it has one."""

import pytest

pytestmark = pytest.mark.redis

URL = "http://127.0.0.1:1/alerts"
MERGE = {"Content-Type": "application/merge-patch+json"}
WEBHOOK = {"url": URL, "kinds": ["deviation"], "description": "d", "headers": {"X-A": "b"}, "min_severity": "high"}
EMAIL = {"kind": "email", "host": "mail.example.org", "port": 587, "security": "starttls"}
EMAIL |= {"sender": "a@example.org", "recipients": ["b@example.org"], "description": "d"}


def test_null_resets_members_of_a_webhook(http):
    path = f"/v1/webhooks/{http.post('/v1/webhooks', json=WEBHOOK).json()['id']}"
    usual = http.post("/v1/webhooks", json={"url": URL}).json()
    assert http.patch(path, json={"enabled": False}).json()["enabled"] is False
    members = ("kinds", "description", "headers", "min_severity", "enabled")
    answer = http.patch(path, json=dict.fromkeys(members), headers=MERGE)
    assert answer.status_code == 200, answer.text
    shown = {**answer.json(), "headers": answer.json()["header_names"]}
    assert {name: shown[name] for name in members} == {**{name: usual.get(name) for name in members}, "headers": []}


def test_null_resets_members_of_streams_sinks_and_patterns(orders):
    changed = {"lateness": 5, "late": "drop", "idle_timeout_s": 9, "schemas": "check", "description": "d"}
    assert orders.patch("/v1/streams/orders", json=changed).json()["late"] == "drop"
    reset = orders.patch("/v1/streams/orders", json=dict.fromkeys([*changed, "end_events"])).json()
    assert (reset["lateness"], reset["late"], reset["idle_timeout_s"]) == (None, "dead_letter", None)
    assert (reset["schemas"], reset["description"], reset["end_events"]) == ("off", "", [])
    sink = f"/v1/sinks/{orders.post('/v1/sinks', json=EMAIL).json()['id']}"
    found = orders.patch(sink, json={"port": None, "security": None, "description": None}).json()
    assert (found["port"], found["security"], found["description"]) == (465, "tls", "")
    body = {"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)", "severity": "high"}
    assert orders.post("/v1/patterns", json=body).status_code == 201
    assert orders.patch("/v1/patterns/p", json={"severity": None}).json()["severity"] == "medium"


def test_members_without_a_default_cannot_be_null(http, check_problem):
    path = f"/v1/webhooks/{http.post('/v1/webhooks', json=WEBHOOK).json()['id']}"
    problem = check_problem(http.patch(path, json={"url": None, "kinds": None}), 422, "wrong-shape")
    assert "url cannot be null, as there is no default" in problem["detail"]
    sink = f"/v1/sinks/{http.post('/v1/sinks', json=EMAIL).json()['id']}"
    for name in ("host", "secret", "recipients"):
        check_problem(http.patch(sink, json={name: None}), 422, "wrong-shape")
    check_problem(http.post("/v1/webhooks", json=WEBHOOK, headers=MERGE), 415, "unsupported-media-type")

"""Sinks over HTTP: the three kinds, what they show, and what a webhook has beside them."""

import pytest

from tests.builders.service import sink_row

EMAIL = {
    "kind": "email",
    "host": "127.0.0.1",
    "user": "forestall",
    "secret": "very secret",
    "sender": "forestall@example.org",
    "recipients": ["ann@example.org"],
}
KAFKA = {"kind": "kafka", "servers": "127.0.0.1:1", "topic": "alerts", "options": {"client.id": "f"}}


def test_a_sink_is_registered_shown_changed_and_deleted(orders, check_problem):
    made = orders.post("/v1/sinks", json={**EMAIL, "name": "desk", "stream": "orders", "min_severity": "high"})
    assert made.status_code == 201, made.text
    sink = made.json()
    assert made.headers["location"].endswith(f"/v1/sinks/{sink['id']}")
    assert (sink["kind"], sink["address"], sink["recipients"]) == (
        "email",
        "smtp://127.0.0.1:465/ann@example.org",
        EMAIL["recipients"],
    )
    assert "very secret" not in made.text + orders.get("/v1/sinks").text + orders.get(f"/v1/sinks/{sink['id']}").text
    shown = orders.get(f"/v1/sinks/{sink['id']}")
    assert (shown.json()["waiting"], shown.json()["circuit"], shown.json()["security"]) == (0, "closed", "tls")
    changes = {"recipients": ["bob@example.org"], "security": "starttls", "kinds": ["deviation"], "secret": "new"}
    changed = orders.patch(f"/v1/sinks/{sink['id']}", json=changes, headers={"if-match": shown.headers["etag"]}).json()
    assert (changed["recipients"], changed["security"], changed["kinds"], changed["host"]) == (
        ["bob@example.org"], "starttls", ["deviation"], "127.0.0.1",
    )  # fmt: skip
    strange = orders.patch(f"/v1/sinks/{sink['id']}", json={"topic": "x"})
    check_problem(strange, 400, "webhook-refused")
    assert strange.json()["detail"].startswith("a sink of the kind 'email' has no member 'topic'; it has ")
    check_problem(orders.patch(f"/v1/sinks/{sink['id']}", json={"recipients": None}), 422, "wrong-shape")
    assert orders.delete(f"/v1/sinks/{sink['id']}").status_code == 204
    check_problem(orders.get(f"/v1/sinks/{sink['id']}"), 404, "unknown-sink")


def test_webhooks_and_sinks_do_not_meet(orders, check_problem):
    hook = orders.post("/v1/webhooks", json={"url": "http://127.0.0.1:1/"}).json()["id"]
    sink = orders.post("/v1/sinks", json=KAFKA).json()["id"]
    assert [one["id"] for one in orders.get("/v1/webhooks").json()["items"]] == [hook]
    assert [one["id"] for one in orders.get("/v1/sinks").json()["items"]] == [sink]
    for verb, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries")):
        check_problem(orders.request(verb, f"/v1/webhooks/{sink}{path}"), 404, "unknown-webhook")
        check_problem(orders.request(verb, f"/v1/sinks/{hook}{path}"), 404, "unknown-sink")
    check_problem(orders.patch(f"/v1/webhooks/{sink}", json={"enabled": False}), 404, "unknown-webhook")
    check_problem(orders.post(f"/v1/webhooks/{sink}/rotate-secret", json={}), 404, "unknown-webhook")


def test_deliveries_are_tested_listed_and_sent_again(orders, stores):
    sink = orders.post("/v1/sinks", json={**EMAIL, "port": 1}).json()["id"]
    answer = orders.post(f"/v1/sinks/{sink}/test").json()
    assert (answer["is_delivered"], answer["error"].partition(":")[0]) == (False, "ConnectionRefusedError")
    row = sink_row(kind="alert", stream="orders", id="a1", body=b'{"type":"alert","id":"a1","pattern":"p"}')
    stores.alerts.append([row], stores.webhooks.all(), 0)
    (one,) = stores.deliveries.claim(1, 1, 9)
    assert orders.get(f"/v1/sinks/{sink}/deliveries").json()["items"] == []
    stores.deliveries.claim(10, 1, 0)
    again = orders.post(f"/v1/sinks/{sink}/deliveries/{one.id}/redeliver")
    assert (again.status_code, again.json()["remaining"]) == (202, 0)
    since = {"since": "2026-01-01T00:00:00Z"}
    assert orders.post(f"/v1/sinks/{sink}/redeliver", json=since).json() == {"queued": 0, "remaining": 0}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "smoke"}, 422),
        ({"kind": "parquet"}, 422),
        ({**KAFKA, "path": "x"}, 422),
        ({"kind": "parquet", "path": "x"}, 400),  # there is no folder
        ({**KAFKA, "options": {"ssl.key.location": "/etc/passwd"}}, 400),
        ({**EMAIL, "template": {"html": "x"}}, 400),
        ({**EMAIL, "kinds": ["timeout"]}, 422),
    ],
)
def test_what_cannot_be_is_refused(orders, body, status):
    assert orders.post("/v1/sinks", json=body).status_code == status


def test_a_key_of_other_streams_sees_none(orders, holder, check_problem):
    orders.post("/v1/streams", json={"name": "payments"})
    sink = orders.post("/v1/sinks", json={**KAFKA, "stream": "orders"}).json()["id"]
    stranger = holder("read", "patterns", streams=["payments"])
    check_problem(stranger.get(f"/v1/sinks/{sink}"), 404, "unknown-sink")
    check_problem(stranger.post("/v1/sinks", json={**KAFKA, "stream": "orders"}), 403, "forbidden")
    assert stranger.get("/v1/sinks").json()["items"] == []

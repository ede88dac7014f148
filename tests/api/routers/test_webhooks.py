from dataclasses import replace

import orjson
import pytest
from standardwebhooks import Webhook

from api.schemas.alerts import AlertModel, SuppressedAlertModel
from api.schemas.incidents import IncidentModel
from api.schemas.results import CorrectionModel, DerivedEventModel, DeviationModel, EndingModel, SuspensionModel
from service import AlertSink
from service.stores import DeliveryOutcome
from shards import RESULT_KINDS
from streams import SystemClock
from tests.builders.service import receiving, sink_row

USUAL_KINDS = ["alert", "correction", "pattern.suspended", "join.suspended", "aggregate.suspended"]
pytestmark = pytest.mark.redis

URL = "http://127.0.0.1:1/alerts"
PATTERN = "PATTERN p EVENT SEQ(A a, B b)"


@pytest.fixture
def created(http):
    return http.post("/v1/webhooks", json={"url": URL}).json()


@pytest.fixture
def receiver():
    with receiving() as receiver:
        receiver.usual_status = 204
        yield receiver


def queue_alerts(stores, count, now_us=0):
    rows = [sink_row(kind="alert", stream="s", id=f"a{n}", body=b'{"pattern":"p"}') for n in range(count)]
    stores.alerts.append(rows, stores.webhooks.all(), now_us)
    return stores.deliveries.claim(now_us, 10**9, count)


def test_a_secret_is_told_once(http):
    answer = http.post("/v1/webhooks", json={"url": URL})
    assert answer.status_code == 201
    created = answer.json()
    secret = created.pop("secret")
    assert secret.startswith("whsec_")
    shown = http.get(f"/v1/webhooks/{created['id']}")
    assert http.get("/v1/webhooks").json() == {"items": [shown.json()], "next": None}
    assert created.items() <= shown.json().items()
    assert secret not in shown.text
    assert (shown.json()["delivered"], shown.json()["enabled"], shown.json()["last_attempt_at"]) == (0, True, None)


def test_a_webhook_is_deleted(http, created, check_problem):
    assert http.delete(f"/v1/webhooks/{created['id']}").status_code == 204
    check_problem(http.get(f"/v1/webhooks/{created['id']}"), 404, "unknown-webhook")
    check_problem(http.delete(f"/v1/webhooks/{created['id']}"), 404, "unknown-webhook")


@pytest.mark.parametrize(
    "body",
    [
        {"url": "ftp://example.org/"},
        {"url": URL, "secret": "weak"},
        {"url": URL, "headers": {"Host": "example.org"}},
        {"url": URL, "headers": {"X-A": "b\r\nX-Injected: 1"}},
        {"url": URL, "template": {"text": "{{id|upper}}"}},
        {"url": URL, "template": {"text": "{{nothing}}"}},
    ],
)
def test_what_cannot_be_used_is_refused(http, check_problem, body):
    check_problem(http.post("/v1/webhooks", json=body), 400, "webhook-refused")


def test_a_webhook_may_ask_only_for_what_exists(orders, check_problem):
    check_problem(orders.post("/v1/webhooks", json={"url": URL, "stream": "nowhere"}), 404, "unknown-stream")
    check_problem(orders.post("/v1/webhooks", json={"url": URL, "pattern": "nothing"}), 404, "unknown-pattern")
    assert orders.post("/v1/webhooks", json={"url": URL, "stream": "orders"}).json()["stream"] == "orders"


def test_a_webhook_gets_alerts_corrections_and_suspensions_unless_it_asks_for_something_else(http, check_problem):
    assert http.post("/v1/webhooks", json={"url": URL}).json()["kinds"] == USUAL_KINDS
    created = http.post("/v1/webhooks", json={"url": URL, "kinds": ["deviation", "alert", "deviation"]}).json()
    assert http.get(f"/v1/webhooks/{created['id']}").json()["kinds"] == ["deviation", "alert"]
    for kinds in ([], ["timeout"]):
        check_problem(http.post("/v1/webhooks", json={"url": URL, "kinds": kinds}), 422, "wrong-shape")


def test_a_body_of_another_shape_is_a_422(http, check_problem):
    check_problem(http.post("/v1/webhooks", json={"address": URL}), 422, "wrong-shape")


def test_values_of_headers_are_not_told(http):
    answer = http.post("/v1/webhooks", json={"url": URL, "headers": {"Authorization": "Bearer very-secret"}})
    assert answer.json()["header_names"] == ["Authorization"]
    assert "very-secret" not in answer.text + http.get("/v1/webhooks").text


def test_a_webhook_is_changed_in_parts(orders, created):
    path = f"/v1/webhooks/{created['id']}"
    changes = {"stream": "orders", "min_severity": "high", "description": "on call", "template": {"t": "{{id}}"}}
    changed = orders.patch(path, json=changes).json()
    assert {name: changed[name] for name in changes} == changes
    assert (changed["url"], changed["kinds"]) == (URL, USUAL_KINDS)
    back = orders.patch(path, json={"stream": None, "template": None}).json()
    assert (back["stream"], back["template"], back["min_severity"]) == (None, None, "high")
    assert orders.patch(path, json={}).json() == back


@pytest.mark.parametrize(
    "body", [{"url": None}, {"kinds": []}, {"enabled": "no"}, {"secret": "x"}, {"min_severity": "x"}]
)
def test_changes_of_another_shape_are_a_422(http, created, check_problem, body):
    check_problem(http.patch(f"/v1/webhooks/{created['id']}", json=body), 422, "wrong-shape")


def test_changes_are_checked_like_a_new_webhook(http, created, check_problem):
    path = f"/v1/webhooks/{created['id']}"
    check_problem(http.patch(path, json={"url": "http://2130706433/"}), 400, "webhook-refused")
    check_problem(http.patch(path, json={"pattern": "nothing"}), 404, "unknown-pattern")
    check_problem(http.patch("/v1/webhooks/none", json={}), 404, "unknown-webhook")


def test_a_webhook_of_a_key_gets_results_of_this_key_only(http, stores, clock):
    one, other, every = (
        http.post("/v1/webhooks", json={"url": URL, **more}).json() for more in ({"key": "k1"}, {}, {})
    )
    changed = http.patch(f"/v1/webhooks/{other['id']}", json={"key": "k2"}).json()
    assert (one["key"], changed["key"], every["key"]) == ("k1", "k2", None)
    body = b'{"id":"a","pattern":"p","key":"k1","stream":"s"}'
    AlertSink(stores, clock)([sink_row(kind="alert", stream="s", id="a", body=body)], 0)
    claimed = stores.deliveries.claim(clock.now_us(), 10**9, 9)
    assert sorted(one.webhook for one in claimed) == sorted([one["id"], every["id"]])


@pytest.mark.parametrize("path", ["/v1/webhooks", "/v1/sinks"])
def test_a_new_receiver_is_disabled_until_it_is_enabled(http, stores, path):
    own = {"url": URL} if path == "/v1/webhooks" else {"kind": "kafka", "servers": "127.0.0.1:9092", "topic": "alerts"}
    receiver = http.post(path, json={**own, "enabled": False}).json()
    assert (receiver["enabled"], receiver["disabled_because"]) == (False, "by request")
    assert queue_alerts(stores, 2) == []
    enabled = http.patch(f"{path}/{receiver['id']}", json={"enabled": True}).json()
    assert (enabled["enabled"], enabled["disabled_because"]) == (True, None)
    assert http.post(path, json={**own, "enabled": None}).status_code == 422


def test_a_webhook_is_disabled_and_enabled(http, created, stores):
    path = f"/v1/webhooks/{created['id']}"
    queue_alerts(stores, 2)
    shown = http.patch(path, json={"enabled": False}).json()
    assert (shown["enabled"], shown["disabled_because"], shown["waiting"]) == (False, "by request", 2)
    assert http.patch(path, json={"enabled": True}).json()["disabled_because"] is None


def test_an_open_circuit_is_shown(http, created, stores, settings, clock):
    now_us = clock.now_us()
    for delivery in queue_alerts(stores, 12, now_us)[: settings.webhooks.target_concurrency]:
        stores.deliveries.settle(delivery, DeliveryOutcome(verdict="retry", at_us=now_us, error="x", next_us=now_us))
    path = f"/v1/webhooks/{created['id']}"
    assert http.get(path).json()["circuit"] == "closed"
    for delivery in stores.deliveries.claim(now_us, 10**9, 9)[:2]:
        stores.deliveries.settle(delivery, DeliveryOutcome(verdict="retry", at_us=now_us, error="x", next_us=now_us))
    shown = http.get(path).json()
    assert (shown["circuit"], shown["waiting"], shown["failing_since"]) == ("open", 12, "2026-01-01T00:00:00.000000Z")
    assert shown["next_probe_at"] == "2026-01-01T00:01:00.000000Z"
    assert http.patch(path, json={"enabled": False}).json()["circuit"] == "open"
    assert http.patch(path, json={"enabled": True}).json()["circuit"] == "closed"


def test_a_secret_is_rotated(http, created, check_problem):
    path = f"/v1/webhooks/{created['id']}"
    rotated = http.post(f"{path}/rotate-secret", json={}).json()
    assert rotated["secret"] != created["secret"]
    assert http.get(path).json()["secrets_until"] == ["2026-01-02T00:00:00.000000Z"]
    check_problem(http.post(f"{path}/rotate-secret", json={"secret": "weak"}), 400, "webhook-refused")
    check_problem(http.post(f"{path}/rotate-secret", json={"grace_s": -1}), 422, "wrong-shape")


def test_a_test_is_signed_and_tells_what_came_of_it(http, clock, receiver):
    clock.time_us = SystemClock().now_us()  # receivers refuse what is older than minutes
    created = http.post("/v1/webhooks", json={"url": receiver.url}).json()
    told = http.post(f"/v1/webhooks/{created['id']}/test").json()
    assert (told["is_delivered"], told["http_status"], told["error"]) == (True, 204, None)
    assert told["duration_s"] >= 0
    ((headers, body),) = receiver.received
    ping = Webhook(created["secret"]).verify(body, headers)
    assert (ping["type"], ping["webhook"], ping["id"]) == ("ping", created["id"], headers["webhook-id"])
    receiver.usual_status = 503
    told = http.post(f"/v1/webhooks/{created['id']}/test").json()
    assert (told["is_delivered"], told["http_status"], told["error"]) == (False, 503, "the receiver answered 503")


def test_a_test_has_the_webhooks_form_and_works_while_it_is_disabled(http, receiver):
    body = {"url": receiver.url, "template": {"text": "{{type}} {{pattern}}"}, "headers": {"X-A": "b"}}
    created = http.post("/v1/webhooks", json=body).json()
    http.patch(f"/v1/webhooks/{created['id']}", json={"enabled": False})
    assert http.post(f"/v1/webhooks/{created['id']}/test").json()["is_delivered"]
    ((headers, sent),) = receiver.received
    assert (orjson.loads(sent), headers["x-a"]) == ({"text": "ping "}, "b")


def test_a_test_of_who_does_not_listen_says_so(http, created, check_problem):
    told = http.post(f"/v1/webhooks/{created['id']}/test").json()
    assert (told["is_delivered"], told["http_status"]) == (False, None)
    assert "ConnectError" in told["error"]
    check_problem(http.post("/v1/webhooks/none/test"), 404, "unknown-webhook")


def test_attempts_are_listed_in_pages_newest_first(http, created, stores, clock, check_problem):
    now_us = clock.now_us()
    one, two, three = queue_alerts(stores, 3, now_us)
    failed = DeliveryOutcome(
        verdict="dead", at_us=now_us, status=500, error="the receiver answered 500", duration_ms=12
    )
    stores.deliveries.settle(one, replace(failed, verdict="retry", next_us=now_us + 5_000_000))
    stores.deliveries.settle(two, DeliveryOutcome(verdict="delivered", at_us=now_us, status=200, duration_ms=3))
    stores.deliveries.settle(three, failed)
    path = f"/v1/webhooks/{created['id']}/deliveries"
    page = http.get(path, params={"limit": 2}).json()
    assert [(item["result_id"], item["verdict"]) for item in page["items"]] == [
        ("a2", "abandoned"),
        ("a1", "delivered"),
    ]
    (first,) = http.get(path, params={"after": page["next"]}).json()["items"]
    assert first == {
        "delivery_id": f"{created['id']}:a0",
        "kind": "alert",
        "result_id": "a0",
        "attempt": 1,
        "verdict": "retry",
        "at": "2026-01-01T00:00:00.000000Z",
        "http_status": 500,
        "duration_s": 0.012,
        "error": "the receiver answered 500",
        "next_at": "2026-01-01T00:00:05.000000Z",
    }
    check_problem(http.get(path, params={"after": "x"}), 400, "invalid-cursor")
    check_problem(http.get("/v1/webhooks/none/deliveries"), 404, "unknown-webhook")


def test_a_delivery_is_sent_again(http, created, stores, clock, check_problem):
    (delivery,) = queue_alerts(stores, 1, clock.now_us())
    path = f"/v1/webhooks/{created['id']}/deliveries/{delivery.id}/redeliver"
    assert http.post(path).json() == {"queued": 0, "remaining": 0}  # it is on its way
    stores.deliveries.settle(delivery, DeliveryOutcome(verdict="delivered", at_us=1, status=200))
    answer = http.post(path)
    assert (answer.status_code, answer.json()) == (202, {"queued": 1, "remaining": 0})
    (again,) = stores.deliveries.claim(clock.now_us(), 1, 9)
    assert (again.id, again.alert) == (delivery.id, "a0")
    unknown = f"/v1/webhooks/{created['id']}/deliveries/none/redeliver"
    check_problem(http.post(unknown), 404, "unknown-delivery")


def test_a_delivery_is_looked_up_within_its_webhook(http, created, stores, clock, check_problem):
    (delivery,) = queue_alerts(stores, 1, clock.now_us())
    stores.deliveries.settle(delivery, DeliveryOutcome(verdict="dead", at_us=1, status=500))
    other = http.post("/v1/webhooks", json={"url": URL}).json()["id"]
    for webhook, taken in ((other, False), (created["id"], True)):
        answer = http.post(f"/v1/webhooks/{webhook}/deliveries/{delivery.id}/redeliver")
        if taken:
            assert answer.json()["queued"] == 1
        else:
            check_problem(answer, 404, "unknown-delivery")


def test_what_was_given_up_is_sent_again(http, created, stores, clock, check_problem):
    for delivery in queue_alerts(stores, 3, clock.now_us()):
        stores.deliveries.settle(delivery, DeliveryOutcome(verdict="dead", at_us=clock.now_us(), error="x"))
    path = f"/v1/webhooks/{created['id']}/redeliver"
    answer = http.post(path, json={"since": "2026-01-01T00:00:00Z", "limit": 2})
    assert (answer.status_code, answer.json()) == (202, {"queued": 2, "remaining": 1})
    assert http.post(path, json={"since": "2026-01-01T00:00:01Z"}).json() == {"queued": 0, "remaining": 0}
    assert http.post(path).json() == {"queued": 1, "remaining": 0}
    for body in (
        {"until": "2026-01-01T00:00:00Z"},
        {"since": "yesterday"},
        {"since": "2026-01-01T00:00:00Z", "limit": 1001},
    ):
        check_problem(http.post(path, json=body), 422, "wrong-shape")


def test_alerts_say_how_grave_they_are_and_webhooks_may_ask_for_that(orders, stores, clock):
    orders.post("/v1/patterns", json={"stream": "orders", "text": PATTERN, "severity": "high"})
    assert orders.get("/v1/patterns/p").json()["severity"] == "high"
    wanted = [
        orders.post("/v1/webhooks", json={"url": URL, "min_severity": least}).json()["id"]
        for least in ("low", "high", "critical")
    ]
    fields = {"stream": "orders", "key": "k", "version": 1, "start": "", "end": "", "detected_at": ""}
    body = orjson.dumps({"id": "a", "pattern": "p", "bindings": {}, "why": "", **fields})
    found = sink_row(kind="alert", stream="orders", id="a", body=body)
    AlertSink(stores, clock)([found], 1)
    assert orders.get("/v1/alerts/a").json()["severity"] == "high"
    claimed = stores.deliveries.claim(clock.now_us(), 1, 9)
    assert {delivery.webhook for delivery in claimed} == set(wanted[:2])


def test_templates_know_the_members_of_bodies():
    members = {
        "alert": AlertModel.model_fields,
        "alert.suppressed": SuppressedAlertModel.model_fields,
        "correction": CorrectionModel.model_fields,
        "deviation": DeviationModel.model_fields,
        "pattern.suspended": SuspensionModel.model_fields,
        "derived": DerivedEventModel.model_fields,
        "ending": {"type", *EndingModel.model_fields},
        **{
            f"incident.{change}": {"type", "incident", *IncidentModel.model_fields}
            for change in ("opened", "updated", "closed")
        },
    }
    without = ("join", "aggregate")  # have no models of lists; tests of their kinds check members
    delivered = {
        kind.delivered_as: kind.members
        for kind in RESULT_KINDS.values()
        if kind.delivered_as and kind.delivered_as.partition(".")[0] not in without
    }
    assert {kind: set(names) for kind, names in members.items()} == delivered

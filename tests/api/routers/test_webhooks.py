import pytest

pytestmark = pytest.mark.redis

URL = "http://127.0.0.1:1/alerts"


def test_a_secret_is_told_once(http):
    answer = http.post("/v1/webhooks", json={"url": URL})
    assert answer.status_code == 201
    created = answer.json()
    secret = created.pop("secret")
    assert secret.startswith("whsec_")
    assert http.get("/v1/webhooks").json() == {"items": [created]}
    shown = http.get(f"/v1/webhooks/{created['id']}")
    assert secret not in shown.text
    assert (shown.json()["delivered"], shown.json()["enabled"], shown.json()["last_attempt_at"]) == (0, True, None)


def test_a_webhook_is_deleted(http, check_problem):
    created = http.post("/v1/webhooks", json={"url": URL}).json()
    assert http.delete(f"/v1/webhooks/{created['id']}").status_code == 204
    check_problem(http.get(f"/v1/webhooks/{created['id']}"), 404, "unknown-webhook")
    check_problem(http.delete(f"/v1/webhooks/{created['id']}"), 404, "unknown-webhook")


@pytest.mark.parametrize("body", [{"url": "ftp://example.org/"}, {"url": URL, "secret": "weak"}])
def test_what_cannot_be_used_is_refused(http, check_problem, body):
    check_problem(http.post("/v1/webhooks", json=body), 400, "webhook-refused")


def test_a_webhook_may_ask_only_for_what_exists(orders, check_problem):
    check_problem(orders.post("/v1/webhooks", json={"url": URL, "stream": "nowhere"}), 404, "unknown-stream")
    check_problem(orders.post("/v1/webhooks", json={"url": URL, "pattern": "nothing"}), 404, "unknown-pattern")
    assert orders.post("/v1/webhooks", json={"url": URL, "stream": "orders"}).json()["stream"] == "orders"


def test_a_webhook_gets_alerts_and_corrections_unless_it_asks_for_something_else(http, check_problem):
    assert http.post("/v1/webhooks", json={"url": URL}).json()["kinds"] == ["alert", "correction"]
    created = http.post("/v1/webhooks", json={"url": URL, "kinds": ["deviation", "alert", "deviation"]}).json()
    assert http.get(f"/v1/webhooks/{created['id']}").json()["kinds"] == ["deviation", "alert"]
    for kinds in ([], ["ending"]):
        check_problem(http.post("/v1/webhooks", json={"url": URL, "kinds": kinds}), 422, "wrong-shape")


def test_a_body_of_another_shape_is_a_422(http, check_problem):
    check_problem(http.post("/v1/webhooks", json={"address": URL}), 422, "wrong-shape")

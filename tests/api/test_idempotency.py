"""Creation once, however often a request is sent."""

import orjson
import pytest
import redis

from service.stores import IdempotentRequest
from service.stores.registry.registry import Registry
from tests.builders.service import sink_row
from tests.builders.waiting import until

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT SEQ(A a, B b)"
MOMENT = "2026-01-01T00:00:00Z"


def register(http, text=TEXT, key="k1"):
    return http.post("/v1/patterns", json={"stream": "orders", "text": text}, headers={"Idempotency-Key": key})


def test_the_same_request_has_the_same_answer(orders):
    first = register(orders)
    assert (first.status_code, first.headers.get("idempotency-replayed")) == (201, None)
    orders.delete("/v1/patterns/p")
    again = register(orders)
    assert (again.status_code, again.json(), again.headers["etag"]) == (201, first.json(), first.headers["etag"])
    assert (again.headers["content-type"], again.headers["idempotency-replayed"]) == ("application/json", "true")
    assert orders.get("/v1/patterns").json()["items"] == []
    assert register(orders, key="k2").json()["version"] == 2


def test_a_key_is_for_one_request(orders, check_problem):
    register(orders)
    check_problem(register(orders, TEXT + " WITHIN 1 h"), 422, "idempotency-key-mismatch")
    assert orders.get("/v1/patterns/p").json()["version"] == 1


def test_what_failed_may_be_sent_again(orders, check_problem):
    check_problem(register(orders, "PATTERN p"), 400, "pattern-refused")
    assert register(orders).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_wrong_key_is_refused(orders, check_problem, key):
    check_problem(register(orders, key=key), 400, "idempotency-key")


def test_callers_do_not_see_one_another(orders, stranger, check_problem):
    register(orders)
    answer = stranger.post(
        "/v1/patterns",
        json={"stream": "orders", "text": TEXT},
        headers={"Idempotency-Key": "k1", "Authorization": "Bearer wrong-key"},
    )
    check_problem(answer, 401, "unauthorized")
    key = orders.headers["Authorization"].removeprefix("Bearer ")
    other = orders.post(
        "/v1/patterns",
        json={"stream": "orders", "text": TEXT},
        headers={"Idempotency-Key": "k1", "X-API-Key": key},
    )
    assert (other.status_code, "idempotency-replayed" in other.headers) == (200, False)


def test_a_request_on_its_way_is_not_made_twice(orders, stores, check_problem, monkeypatch):
    def refuse(*_):
        raise ValueError("the process dies here")

    orders.headers["Connection"] = "close"  # as the server does after a bug, which the client may not see in time
    with monkeypatch.context() as patch:
        patch.setattr("service.stores.AnswerStore.keep", refuse)
        check_problem(register(orders), 500, "internal")
    check_problem(register(orders), 409, "idempotency-key-in-use")
    check_problem(register(orders, "PATTERN q EVENT A a"), 422, "idempotency-key-mismatch")


def test_a_request_that_takes_long_stays_in_progress(orders, server_url, monkeypatch):
    put_pattern = Registry.put_pattern
    left_ms = []

    def put_slowly(*inputs, **members):
        with redis.Redis.from_url(server_url) as client:
            (name,) = client.scan_iter("*answer:*")
            client.pexpire(name, 30_000)  # as after half a minute
            until(lambda: client.pttl(name) > 30_000, "the mark of the request is renewed")
            left_ms.append(client.pttl(name))
        return put_pattern(*inputs, **members)

    monkeypatch.setattr("service.stores.AnswerStore.renewal_s", 0.01)
    monkeypatch.setattr(Registry, "put_pattern", put_slowly)
    assert register(orders).status_code == 201
    assert left_ms
    assert register(orders).headers["idempotency-replayed"] == "true"


def test_a_backtest_is_asked_for_once(orders):
    example = {"stream": "orders", "pattern": TEXT, "source": {"log": True}}
    first = orders.post("/v1/backtests", json=example, headers={"Idempotency-Key": "b"})
    again = orders.post("/v1/backtests", json=example, headers={"Idempotency-Key": "b"})
    assert first.status_code == 202, first.text
    assert again.json() == first.json()
    assert len(orders.get("/v1/backtests").json()["items"]) == 1


CREATIONS: dict[str, tuple[str, str, dict[str, object]]] = {
    "stream": ("POST", "/v1/streams", {"name": "payments"}),
    "constraints": ("POST", "/v1/constraints", {"stream": "orders", "constraints": ["exclusive(B, C)"]}),
    "event type": ("PUT", "/v1/streams/orders/event-types/A", {"type": "object"}),
    "workflow": ("PUT", "/v1/workflows/w", {"content": {"tree": {"sequence": ["A", "B"]}}}),
    "webhook": ("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/"}),
    "key": ("POST", "/v1/keys", {"name": "shop", "scopes": ["read"]}),
}


@pytest.mark.parametrize("kind", CREATIONS)
def test_whatever_creates_does_so_once(orders, check_problem, kind):
    method, path, body = CREATIONS[kind]
    headers = {"Idempotency-Key": kind}
    first = orders.request(method, path, json=body, headers=headers)
    assert (first.status_code, "idempotency-replayed" in first.headers) == (201, False), first.text
    again = orders.request(method, path, json=body, headers={**headers, "If-None-Match": "*"})
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert (again.headers["etag"], again.headers.get("location")) == (
        first.headers["etag"],
        first.headers.get("location"),
    )
    told = first.json()
    assert again.json() == {**told, **{name: None for name in ("secret", "token") if name in told}}
    other = orders.request(method, path, json={**body, "more": 1}, headers=headers)
    check_problem(other, 422, "idempotency-key-mismatch")


def test_a_note_is_written_once(orders, stores):
    alert = orjson.dumps({"id": "a", "stream": "orders", "pattern": "p", "key": "k", "detected_at": MOMENT})
    stores.alerts.append([sink_row(kind="alert", stream="orders", id="a", body=alert)], [], 0)
    for _ in range(2):
        answer = orders.post("/v1/alerts/a/notes", json={"text": "called"}, headers={"Idempotency-Key": "n"})
        assert answer.status_code == 201
    assert len(stores.alerts.marks.notes("a")) == 1


@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("/v1/webhooks", {"url": "http://127.0.0.1:1/"}, "secret"),
        ("/v1/keys", {"name": "shop", "scopes": ["read"]}, "token"),
    ],
)
def test_secrets_are_not_kept_with_answers(orders, server_url, path, body, member):
    headers = {"Idempotency-Key": "once"}
    first = orders.post(path, json=body, headers=headers).json()
    again = orders.post(path, json=body, headers=headers).json()
    assert (len(first[member]) > 20, again[member], again["id"]) == (True, None, first["id"])
    assert len(orders.get(path).json()["items"]) == 1
    with redis.Redis.from_url(server_url) as client:
        (kept,) = [client.get(key) for key in client.scan_iter("*answer:*")]
    assert first[member].encode() not in kept
    assert first["id"].encode() in kept


def test_a_try_whose_reply_was_lost_is_the_same_try(stores):
    asked = IdempotentRequest(name="n", fingerprint="f", token="t")
    assert stores.answers.begin(asked) is None
    assert stores.answers.begin(asked) is None
    found = stores.answers.begin(IdempotentRequest(name="n", fingerprint="f", token="other"))
    assert (found.status, found.fingerprint) == (0, "f")
    stores.answers.release(IdempotentRequest(name="n", fingerprint="f", token="other"))
    assert stores.answers.begin(IdempotentRequest(name="n", fingerprint="f", token="other")) is not None
    stores.answers.release(asked)
    assert stores.answers.begin(IdempotentRequest(name="n", fingerprint="f", token="other")) is None

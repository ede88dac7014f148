"""What a key that is restricted to streams reaches: by path, query, body, id and list; what it learns of the rest."""

import re

import httpx
import orjson
import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from api.access.door import OPEN_PATHS
from api.access.reach import OWNED_PLACES, _members
from shards import DOCUMENT_KINDS
from tests.builders.api import unserved_app
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

RECENT = ("timeouts", "endings", "deviations", "corrections", "dead-letters", "suspensions")
URL = "http://127.0.0.1:1/alerts"
TEXT = "PATTERN {} EVENT SEQ(A a, Z z)"
ALERT = {
    "version": 1,
    "key": "k",
    "start": "2026-01-01T00:00:00Z",
    "end": "2026-01-01T00:00:00Z",
    "detected_at": "2026-01-01T00:00:00Z",
    "bindings": {"a": ["e"]},
    "why": "e is A a",
}
FOUND = {
    "kind": "order",
    "form": "order",
    "event_type": "A",
    "code": "late",
    "reason": "too late",
    "missing": "d",
    "constraints": ["c"],
}


@pytest.fixture
def made(http, stores):
    """Two streams with all that a stream can have; ids by kind, of ``payments``."""
    ids = {}
    for number, stream in enumerate(("orders", "payments")):
        pattern = f"of_{stream}"
        assert http.post("/v1/streams", json={"name": stream, "end_events": ["Z"]}).status_code == 201
        for path, body in (
            ("constraints", {"stream": stream, "constraints": ["prior(A, C)"]}),
            ("patterns", {"stream": stream, "text": TEXT.format(pattern)}),
            ("webhooks", {"stream": stream, "url": URL}),
            ("backtests", {"stream": stream, "pattern": {"name": pattern}, "source": {"log": True}}),
        ):
            answer = http.post(f"/v1/{path}", json=body)
            assert answer.status_code in (201, 202), answer.text
            ids[path, stream] = answer.json().get("id")
        alert = {**ALERT, "id": str(number) * 32, "stream": stream, "pattern": pattern}
        stores.alerts.append(
            [sink_row(kind="alert", stream=stream, id=str(number) * 32, body=orjson.dumps(alert))], [], 0
        )
        ids["alerts", stream] = alert["id"]
        told = orjson.dumps({"id": f"r{number}", "stream": stream, **FOUND, "pattern": pattern})
        for kind, store in stores.results.items():
            store.append([sink_row(kind=kind, stream=stream, id=f"r{number}", body=told)], number)
    return ids


@pytest.fixture
def clerk(made, holder):
    """A client that may read, write and send, on ``orders`` only."""
    return holder("read", "patterns", "ingest", streams=["orders"])


def test_what_is_of_the_stream_is_reached(made, clerk):
    alert, backtest, webhook = (made[kind, "orders"] for kind in ("alerts", "backtests", "webhooks"))
    for path in (
        "/v1/streams/orders",
        "/v1/constraints/orders",
        "/v1/constraints/orders/versions",
        "/v1/patterns/of_orders",
        "/v1/patterns?stream=orders",
        "/v1/constraints?stream=orders",
        "/v1/alerts?stream=orders&pattern=of_orders",
        f"/v1/alerts/{alert}",
        "/v1/backtests?stream=orders",
        f"/v1/backtests/{backtest}",
        f"/v1/backtests/{backtest}/alerts",
        f"/v1/webhooks/{webhook}",
        "/v1/endings/summary?stream=orders",
        "/v1/schemas/pattern",
        "/v1/schemas/project",
    ):
        assert clerk.get(path).status_code == 200, path
    sent = clerk.post("/v1/events?stream=orders", json={"id": "e", "type": "A", "time": 1, "subject": "k", "data": {}})
    assert sent.status_code == 202
    changed = clerk.post("/v1/patterns", json={"stream": "orders", "text": TEXT.format("more")})
    assert changed.status_code == 201
    assert clerk.post("/v1/patterns/more/pause").status_code == 200
    assert clerk.delete("/v1/patterns/more").status_code == 204
    assert clerk.post("/v1/webhooks", json={"stream": "orders", "url": URL}).status_code == 201
    punctuation = {"before": "2026-01-01T00:00:00Z"}
    assert clerk.post("/v1/streams/orders/punctuations", json=punctuation).status_code == 202
    assert clerk.post("/v1/constraints?stream=orders", json={"constraints": ["prior(A, D)"]}).status_code == 201


def test_lists_show_one_stream(made, clerk):
    for path in ("patterns", "constraints", "backtests", "webhooks", "alerts"):
        items = clerk.get(f"/v1/{path}?stream=orders").json()["items"]
        assert {item["stream"] for item in items} == {"orders"}, path


def test_lists_that_are_not_paged_show_what_the_key_may_touch(made, clerk, http):
    assert http.post("/v1/webhooks", json={"url": URL}).status_code == 201
    for path, count in (("patterns", 2), ("constraints", 2), ("backtests", 2), ("webhooks", 3)):
        (item,) = clerk.get(f"/v1/{path}").json()["items"]
        assert item["stream"] == "orders", path
        assert len(http.get(f"/v1/{path}").json()["items"]) == count
        assert clerk.get(f"/v1/{path}?stream=payments").status_code == 403
    assert [stream["name"] for stream in clerk.get("/v1/streams").json()["items"]] == ["orders"]


def test_pages_without_a_stream_are_refused_in_words(made, clerk, check_problem):
    for path in ("alerts", "workflows", *RECENT):
        problem = check_problem(clerk.get(f"/v1/{path}"), 403, "forbidden")
        assert "name the stream" in problem["detail"]
        assert "orders" in problem["detail"]


def test_recent_lists_of_another_stream_are_refused(made, clerk):
    for path in RECENT:
        assert clerk.get(f"/v1/{path}?stream=payments").status_code == 403, path


def test_counters_of_a_list_follow_its_filter(orders, holder):
    assert orders.post("/v1/streams", json={"name": "payments"}).status_code == 201
    for stream in ("orders", "payments"):
        assert orders.post(f"/v1/events?stream={stream}", json=[{"id": "bad"}]).status_code == 422
    shown = holder("read", streams=["orders"]).get("/v1/dead-letters?stream=orders").json()
    assert shown["counts"] == [{"stream": "orders", "code": "event-rejected", "count": 1}]
    assert [letter["stream"] for letter in shown["items"]] == ["orders"]


FOREIGN: list[tuple[str, str, object]] = [
    ("GET", "/v1/streams/payments", None),
    ("GET", "/v1/streams/nowhere", None),
    ("GET", "/v1/constraints/payments", None),
    ("GET", "/v1/constraints/payments/analysis", None),
    ("GET", "/v1/patterns?stream=payments", None),
    ("GET", "/v1/alerts?stream=nowhere", None),
    ("GET", "/v1/endings/summary?stream=payments", None),
    ("GET", "/v1/webhooks?stream=payments", None),
    ("GET", "/v1/streams/payments/workflow", None),
    ("DELETE", "/v1/streams/payments/workflow", None),
    ("PUT", "/v1/streams/orders/workflow", {"workflow": "order"}),
    ("POST", "/v1/streams", {"name": "payments"}),
    ("POST", "/v1/streams", {"name": "more"}),
    ("POST", "/v1/patterns", {"stream": "payments", "text": TEXT.format("p")}),
    ("POST", "/v1/constraints", {"stream": "orders", "constraints": []}),
    ("POST", "/v1/constraints?stream=payments", {"constraints": []}),
    ("POST", "/v1/webhooks", {"url": URL}),
    ("POST", "/v1/webhooks", {"url": URL, "stream": None}),
    ("POST", "/v1/webhooks", {"url": URL, "stream": "payments"}),
    ("POST", "/v1/backtests", {"stream": "payments", "pattern": TEXT.format("p"), "source": {"log": True}}),
    ("POST", "/v1/backtests", {"stream": "orders", "pattern": TEXT.format("p"), "source": {"path": "of-payments"}}),
    ("POST", "/v1/events?stream=payments", []),
    ("POST", "/v1/streams/payments/punctuations", {"key": "k"}),
    ("POST", "/v1/traces/payments/k/end", None),
    ("GET", "/v1/workflows/order", None),
    ("GET", "/v1/pipeline", None),
    ("GET", "/v1/pipeline/plan", None),
    ("GET", "/metrics", None),
]


def test_other_streams_and_what_is_of_none_are_forbidden(made, clerk, check_problem):
    for method, path, body in FOREIGN:
        assert clerk.request(method, path, json=body).status_code == 403, (method, path, body)
    check_problem(clerk.get("/v1/pipeline?stream=orders"), 422, "wrong-shape")  # there is no such filter
    check_problem(clerk.get("/v1/streams/payments"), 403, "forbidden")


def test_a_document_that_names_another_stream_than_the_query_is_refused(made, clerk, http, check_problem):
    before = http.get("/v1/constraints/payments").json()
    for body, kind in (
        (b'{"stream": "payments", "constraints": []}', "application/json"),
        (b"stream: payments\nconstraints: []\n", "application/yaml"),
    ):
        answer = clerk.post("/v1/constraints?stream=orders", content=body, headers={"content-type": kind})
        check_problem(answer, 400, "stream-missing")
    assert http.get("/v1/constraints/payments").json() == before


BY_ID = [
    ("GET", "/v1/alerts/{}", "alerts"),
    ("GET", "/v1/backtests/{}", "backtests"),
    ("GET", "/v1/backtests/{}/alerts", "backtests"),
    ("DELETE", "/v1/backtests/{}", "backtests"),
    ("GET", "/v1/webhooks/{}", "webhooks"),
    ("DELETE", "/v1/webhooks/{}", "webhooks"),
    ("GET", "/v1/patterns/{}", "patterns"),
    ("POST", "/v1/patterns/{}/pause", "patterns"),
    ("POST", "/v1/patterns/{}/resume", "patterns"),
    ("DELETE", "/v1/patterns/{}", "patterns"),
]


def test_what_is_of_another_stream_is_not_there(made, clerk, http):
    before = [http.get(f"/v1/{kind}").json() for kind in ("alerts", "backtests", "webhooks", "patterns")]
    for method, path, kind in BY_ID:
        foreign = made[kind, "payments"] or "of_payments"
        found = clerk.request(method, path.format(foreign), headers={"X-Request-Id": "same"})
        missing = clerk.request(method, path.format("x" * len(foreign)), headers={"X-Request-Id": "same"})
        assert found.status_code == missing.status_code == 404, (method, path)
        assert found.text.replace(foreign, "") == missing.text.replace("x" * len(foreign), ""), (method, path)
    assert [http.get(f"/v1/{kind}").json() for kind in ("alerts", "backtests", "webhooks", "patterns")] == before


@pytest.mark.parametrize("streams", ["stream=payments&stream=orders", "stream=orders&stream=payments"])
def test_a_stream_is_named_once(made, clerk, check_problem, streams):
    check_problem(clerk.get(f"/v1/patterns?{streams}"), 422, "wrong-shape")


def test_a_webhook_for_all_streams_is_not_there(made, clerk, http):
    everything = http.post("/v1/webhooks", json={"url": URL}).json()["id"]
    assert clerk.get(f"/v1/webhooks/{everything}").status_code == 404
    assert clerk.delete(f"/v1/webhooks/{everything}").status_code == 404


@pytest.mark.parametrize("changes", [{"stream": None}, {"stream": "payments"}, {"stream": None, "enabled": True}])
def test_a_webhook_is_not_widened_beyond_the_key(made, clerk, http, check_problem, changes):
    path = f"/v1/webhooks/{made['webhooks', 'orders']}"
    before = http.get(path).json()
    check_problem(clerk.patch(path, json=changes), 403, "forbidden")
    assert http.get(path).json() == before
    assert clerk.patch(path, json={"stream": "orders", "description": "mine"}).status_code == 200


def test_patterns_of_another_stream_are_not_named_by_the_way(made, clerk, check_problem):
    for pattern in ("of_payments", "nothing"):
        check_problem(clerk.get(f"/v1/alerts?stream=orders&pattern={pattern}"), 404, "unknown-pattern")
        body = {"url": URL, "stream": "orders", "pattern": pattern}
        check_problem(clerk.post("/v1/webhooks", json=body), 404, "unknown-pattern")
        for member in ("pattern", "against"):
            asked = {"stream": "orders", "pattern": TEXT.format("p"), "source": {"log": True}}
            check_problem(
                clerk.post("/v1/backtests", json={**asked, member: {"name": pattern}}), 404, "unknown-pattern"
            )


def test_a_dry_run_of_a_pattern_of_another_stream_is_not_there(made, clerk, check_problem):
    for name in ("of_payments", "nothing"):
        check_problem(
            clerk.post("/v1/patterns/dry-run", json={"stream": "orders", "name": name}), 404, "unknown-pattern"
        )
    assert clerk.post("/v1/patterns/dry-run", json={"stream": "orders", "name": "of_orders"}).status_code == 200


RESOLVES = "PATTERN closes EVENT A a RETURN a.who AS who"


@pytest.mark.parametrize("by", [{"by": ["who"]}, {}])
def test_incidents_of_a_pattern_of_another_stream_are_not_resolved(made, clerk, http, check_problem, by):
    body = {"stream": "orders", "text": RESOLVES}
    for name in ("of_payments", "nothing"):
        resolves = {**body, "resolves": {"pattern": name, **by}}
        check_problem(clerk.post("/v1/patterns", json=resolves), 404, "unknown-pattern")
        check_problem(clerk.put("/v1/patterns/closes", json=resolves), 404, "unknown-pattern")
    assert http.get("/v1/patterns/closes").status_code == http.get("/v1/streams/of_payments.alerts").status_code == 404
    own = clerk.post("/v1/patterns", json={**body, "resolves": {"pattern": "of_orders", **by}})
    assert own.status_code == 201, own.text
    foreign = {**body, "resolves": {"pattern": "of_payments", **by}}
    check_problem(clerk.put("/v1/patterns/closes", json=foreign), 404, "unknown-pattern")
    assert http.put("/v1/patterns/closes", json=foreign).status_code == 200


def declare_aggregate(http, name, stream):
    body = {"name": name, "of": stream, "by": ["key"], "values": {"n": "count()"}, "window": "1 h"}
    answer = http.post("/v1/aggregates", json=body)
    assert (answer.status_code, answer.json()["stream"]) == (201, stream)


def test_an_operator_of_the_same_name_opens_no_pattern_of_another_stream(made, clerk, http, check_problem):
    declare_aggregate(http, "of_payments", "orders")
    for method, path in (("GET", ""), ("POST", "/pause"), ("DELETE", "")):
        check_problem(clerk.request(method, f"/v1/patterns/of_payments{path}"), 404, "unknown-pattern")
    assert http.get("/v1/patterns/of_payments").json()["state"] == "active"
    named = {"stream": "orders", "name": "of_payments"}
    check_problem(clerk.post("/v1/patterns/dry-run", json=named), 404, "unknown-pattern")
    backtest = {"stream": "orders", "pattern": {"name": "of_payments"}, "source": {"log": True}}
    check_problem(clerk.post("/v1/backtests", json=backtest), 404, "unknown-pattern")


def test_an_operator_of_the_same_name_hides_no_pattern_of_the_own_stream(made, clerk, http):
    declare_aggregate(http, "of_orders", "payments")
    assert clerk.get("/v1/patterns/of_orders").json()["stream"] == "orders"
    assert clerk.post("/v1/patterns/dry-run", json={"stream": "orders", "name": "of_orders"}).status_code == 200
    backtest = {"stream": "orders", "pattern": {"name": "of_orders"}, "source": {"log": True}}
    assert clerk.post("/v1/backtests", json=backtest).status_code == 202
    text = TEXT.format("of_orders") + " WITHIN 1 h"
    assert clerk.put("/v1/patterns/of_orders", json={"stream": "orders", "text": text}).status_code == 200


def test_a_filter_by_a_shared_name_shows_only_the_own_stream(made, clerk, http):
    for name, stream in (("of_orders", "payments"), ("of_payments", "orders")):
        declare_aggregate(http, name, stream)
        shown = clerk.get(f"/v1/alerts?stream=orders&pattern={name}").json()["items"]
        assert {alert["stream"] for alert in shown} <= {"orders"}
        webhook = {"url": URL, "stream": "orders", "pattern": name}
        assert clerk.post("/v1/webhooks", json=webhook).json()["stream"] == "orders"
        for path in (f"/v1/alerts?pattern={name}", f"/v1/alerts?stream=payments&pattern={name}"):
            assert clerk.get(path).status_code == 403
        assert clerk.post("/v1/webhooks", json={"url": URL, "pattern": name}).status_code == 403


def test_every_name_in_a_body_is_checked():
    """A member of a body that names something registered is known to the rules; this makes somebody think about it."""
    known = {"stream", "streams", "pattern", "against", "workflow"}  # looked up wherever they are
    own = {"/keys", "/patterns", "/streams", "/webhooks", "/webhooks/{webhook_id}"}  # name what they make
    own |= {f"/{kind.plural}{rest}" for kind in DOCUMENT_KINDS for rest in ("", "/{name:path}")}
    found = set()
    for route in iter_route_contexts(unserved_app().routes):
        if isinstance(route.original_route, APIRoute):
            path = route.original_route.path
            texts = {
                name
                for name in _members(route.original_route)
                if re.fullmatch(r"name|.*(pattern|stream|join|hook).*", name)
            }
            found |= {(path, name) for name in texts - known if path not in own}
    assert found == {("/patterns/dry-run", "name")}


def test_a_name_that_is_taken_elsewhere_does_not_tell_where(made, clerk, check_problem):
    answer = clerk.post("/v1/patterns", json={"stream": "orders", "text": TEXT.format("of_payments")})
    check_problem(answer, 409, "pattern-on-other-stream")
    assert "payments'" not in answer.text
    assert "stream" not in answer.json()


def test_alerts_of_a_pattern_that_is_gone_are_found(made, clerk, http):
    assert http.delete("/v1/patterns/of_orders").status_code == 204
    assert len(clerk.get("/v1/alerts?stream=orders&pattern=of_orders").json()["items"]) == 1


def test_a_restricted_key_declares_its_own_stream(holder):
    founder = holder("patterns", "read", streams=["later"])
    assert founder.post("/v1/streams", json={"name": "later"}).status_code == 201
    assert founder.get("/v1/streams/later").json()["name"] == "later"


SPELLINGS = [
    b'{"stream": "orders", "stream": "payments", "text": "PATTERN p EVENT A a"}',
    b'{"\\u0073tream": "payments", "text": "PATTERN p EVENT A a"}',
    '{"stream": "payments", "text": "PATTERN p EVENT A a"}'.encode("utf-16"),
    b'[{"stream": "orders"}]',
    b'"orders"',
    b"null",
    b"[" * 50_000,
    b'{"stream": {"a": ' * 5_000,
    b'{"stream": ["orders"]}',
]


def test_no_spelling_of_a_body_gets_around(made, clerk, http):
    for body in SPELLINGS:
        answer = clerk.post("/v1/patterns", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 403, 422), body[:80]
    assert len(http.get("/v1/patterns").json()["items"]) == 2


def test_every_path_says_whose_it_is():
    """A path parameter that the tables do not know shuts out restricted keys; this makes somebody think about it."""
    app = unserved_app()
    of_no_stream = {
        ("keys", "key_id"),
        ("projects", "name"),
        ("tables", "name"),
        ("workflows", "name"),
        ("calendars", "name"),
    }
    parts = {"delivery_id", "event_type", "key", "version"}
    found = set()
    for route in iter_route_contexts(app.routes):
        if isinstance(route.original_route, APIRoute) and route.path not in OPEN_PATHS:
            resource = route.original_route.path.split("/")[1]
            names = re.findall(r"\{(\w+)", route.original_route.path)
            found |= {(resource, name) for name in names if name not in parts}
    of_operators = {(kind.plural, "name") for kind in DOCUMENT_KINDS}
    assert found == OWNED_PLACES | of_no_stream | of_operators


def test_an_unrestricted_key_sees_everything(made, holder):
    everybody: httpx.Client = holder("read")
    assert len(everybody.get("/v1/alerts").json()["items"]) == 2
    assert {counter["stream"] for counter in everybody.get("/v1/dead-letters").json()["counts"]} == {
        "orders",
        "payments",
    }

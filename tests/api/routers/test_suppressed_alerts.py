"""Patterns that suppress alerts, over HTTP."""

import pytest

from service.backtests.run import BacktestRun
from service.delivery.sink import AlertSink
from streams import SystemClock
from tests.builders.service import sink_row

TEXT = "PATTERN p EVENT SEQ(A a, B b) RETURN a.customer AS customer"
QUIET = {"stream": "orders", "text": TEXT, "suppress": {"by": ["customer"], "for": "1 h"}}


def test_it_is_shown_and_another_one_is_the_next_version(orders):
    answer = orders.post("/v1/patterns", json=QUIET)
    assert answer.status_code == 201
    assert (answer.json()["suppress"], answer.json()["into"]) == (QUIET["suppress"], None)
    assert orders.post("/v1/patterns", json=QUIET).status_code == 200
    other = orders.post("/v1/patterns", json={**QUIET, "suppress": {"for": "5 min"}}, headers={"If-Match": "*"}).json()
    assert (other["version"], other["suppress"]) == (2, {"by": [], "for": "5 min"})
    assert orders.put("/v1/patterns/p", json={**QUIET, "suppress": None}).json()["suppress"] is None
    versions = orders.get("/v1/patterns/p/versions").json()["items"]
    assert [one["suppress"] for one in versions] == [QUIET["suppress"], {"by": [], "for": "5 min"}, None]
    assert orders.get("/v1/patterns/p").json()["version"] == 3


@pytest.mark.parametrize(
    ("suppress", "words"),
    [({"by": ["shop"], "for": "1 h"}, "there are customer, key, id"), ({"for": "soon"}, "'soon' is not a duration")],
)
def test_what_alerts_do_not_have_is_refused(orders, suppress, words):
    answer = orders.post("/v1/patterns", json={**QUIET, "suppress": suppress})
    assert answer.status_code == 422
    assert answer.json()["code"] == "operator-refused"
    assert words in answer.json()["detail"]


def test_the_inner_stream_belongs_to_the_pattern(orders):
    orders.post("/v1/patterns", json=QUIET)
    assert orders.delete("/v1/streams/p.alerts").status_code == 409
    assert orders.delete("/v1/patterns/p").status_code == 204
    assert orders.get("/v1/streams/p.alerts").status_code == 404
    assert orders.post("/v1/patterns", json=QUIET).json()["version"] == 2


def test_a_stream_that_takes_posted_events_is_in_the_way(orders):
    orders.post("/v1/streams", json={"name": "p.alerts"})
    answer = orders.post("/v1/patterns", json=QUIET)
    assert (answer.status_code, answer.json()["code"]) == (409, "stream-not-derived")


def test_a_draft_begins_when_it_is_activated(orders):
    assert orders.post("/v1/patterns", json={**QUIET, "state": "draft"}).status_code == 201
    assert orders.get("/v1/streams/p.alerts").status_code == 404
    assert orders.post("/v1/patterns/p/activate").status_code == 200
    assert orders.get("/v1/streams/p.alerts").status_code == 200


def test_suppressed_alerts_are_listed_and_counted(orders, stores):
    orders.post("/v1/patterns", json=QUIET)
    body = b"""{"type":"alert.suppressed","id":"a1","stream":"orders","pattern":"p","version":1,"key":"k",
        "start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:00:00Z","detected_at":"2026-01-01T00:00:00Z",
        "bindings":{"a":["e1"]},"returns":{},"why":"","suppressed_by":"a0"}""".replace(b"\n", b"")
    AlertSink(stores, SystemClock())([sink_row(kind="suppressed-alert", stream="orders", id="a1", body=body)], 1)
    answer = orders.get("/v1/suppressed-alerts?stream=orders").json()
    assert [(one["id"], one["suppressed_by"], one["severity"]) for one in answer["items"]] == [("a1", "a0", "medium")]
    assert answer["counts"] == [{"stream": "orders", "pattern": "p", "count": 1}]
    statistics = orders.get("/v1/patterns/p/statistics").json()
    assert (statistics["alerts"], statistics["suppressed_alerts"]) == (0, 1)
    assert orders.get("/v1/alerts").json()["items"] == []
    assert 'forestall_suppressed_alerts_total{pattern="p",stream="orders"} 1.0' in orders.get("/metrics").text


ONE = "PATTERN p EVENT A a RETURN a.customer AS customer"


def post_three(http):
    events = [
        {
            "id": f"e{n}",
            "type": "A",
            "time": f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z",
            "data": {"id": "k", "customer": "c"},
        }
        for n in (1, 30, 90)
    ]
    assert http.post("/v1/events?stream=orders", json=events).json()["rejected"] == []


def test_dry_runs_suppress_as_the_pattern_would(orders, check_problem):
    post_three(orders)
    wanted = {"stream": "orders", "text": ONE}

    def counts(**members):
        found = orders.post("/v1/patterns/dry-run", json={**wanted, **members}).json()
        return found["matched"], found["suppressed"], [one["bindings"]["a"] for one in found["matches"]]

    assert counts() == (3, 0, [["e1"], ["e30"], ["e90"]])
    assert counts(suppress={"by": ["customer"], "for": "1 h"}) == (2, 1, [["e1"], ["e90"]])
    orders.post("/v1/patterns", json={**QUIET, "text": ONE})
    wanted = {"name": "p"}
    assert counts() == (2, 1, [["e1"], ["e90"]])
    assert counts(suppress={"for": "2 h"}) == (1, 2, [["e1"]])
    answer = orders.post("/v1/patterns/dry-run", json={"name": "p", "suppress": {"by": ["who"], "for": "1 h"}})
    assert "who is neither a column of RETURN" in check_problem(answer, 422, "operator-refused")["detail"]


def test_a_backtest_of_a_text_suppresses_its_alerts(orders, stores, settings, check_problem):
    post_three(orders)
    clock = SystemClock()

    def ask(pattern):
        wanted = {"stream": "orders", "pattern": pattern, "source": {"log": True}, "is_open": False}
        return orders.post("/v1/backtests", json=wanted)

    asked = ask({"text": ONE, "suppress": {"by": ["customer"], "for": "1 h"}}).json()["id"]
    stores.backtests.advance(asked, ("queued",), status="running")
    BacktestRun(stores=stores, settings=settings, clock=clock).run(asked)
    (found,) = orders.get(f"/v1/backtests/{asked}").json()["result"]["variants"]
    assert (found["alerts"], found["suppressed_alerts"]) == (2, 1)
    assert [one["bindings"]["a"] for one in orders.get(f"/v1/backtests/{asked}/alerts").json()["items"]] == [
        ["e1"],
        ["e90"],
    ]
    for wrong in ({}, {"name": "p", "text": ONE}, {"text": ONE, "version": 1}):
        check_problem(ask(wrong), 422, "wrong-shape")
    refused = ask({"text": ONE, "suppress": {"by": ["who"], "for": "1 h"}})
    assert "who is neither" in check_problem(refused, 422, "operator-refused")["detail"]

"""Alerts, timeouts, endings, deviations and dead letters, as the pipeline writes them."""

import orjson
import pytest

from pipeline import ShardState
from pipeline.testing import Step, event, log_of
from service import AlertSink
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn

pytestmark = pytest.mark.redis

STEPS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders")),
    PatternOn(name="p", version=1, text="PATTERN p EVENT SEQ(A a, B b)"),
    PatternOn(name="late", version=1, text="PATTERN late EVENT SEQ(A a, D d) WITHIN 2 s LIMIT 5 EMIT TIMEOUTS"),
    ConstraintsOn(name="orders", version=1, document={"constraints": ["exclusive(B, C)", "prior(A, C)"]}),
    [event(1, "A"), event(2, "B"), event(3, "A", "j"), event(4, "C", "j"), event(5, "A", "j"), event(6, "B")],
]


@pytest.fixture
def found(orders, stores, clock):
    """A service whose pipeline has worked; the entry at the end of the log is damaged."""
    (entries,) = log_of(STEPS).values()
    damaged = [type(entries[0])(position="9-0", kind=entries[-1].kind, stream="orders", body=b"damaged")]
    rows = ShardState(0).apply([*entries, *damaged])
    AlertSink(stores, clock)(rows, 0)
    return orders


def test_alerts_are_listed_in_pages(found):
    page = found.get("/v1/alerts?limit=1").json()
    (first,) = page["items"]
    assert (first["key"], first["bindings"], first["stream"]) == ("k", {"a": ["e1"], "b": ["e2"]}, "orders")
    assert first["why"]
    rest = found.get("/v1/alerts", params={"after": page["next"]}).json()
    assert [alert["bindings"]["b"] for alert in rest["items"]] == [["e6"]]
    assert rest["next"] is None
    later = found.get("/v1/alerts", params={"after": rest["after"]}).json()
    assert later == {"items": [], "next": None, "after": rest["after"]}


def test_alerts_are_filtered(found):
    assert len(found.get("/v1/alerts?stream=orders&pattern=p").json()["items"]) == 2


@pytest.mark.parametrize("resource", ["alerts", "timeouts", "endings", "deviations", "dead-letters", "patterns"])
def test_a_filter_by_an_unknown_stream_is_a_404(orders, check_problem, resource):
    check_problem(orders.get(f"/v1/{resource}?stream=nowhere"), 404, "unknown-stream")
    assert orders.get(f"/v1/{resource}?stream=orders").json()["items"] == []


def test_a_filter_by_an_unknown_pattern_is_a_404(orders, check_problem):
    check_problem(orders.get("/v1/alerts?pattern=q"), 404, "unknown-pattern")
    text = "PATTERN q EVENT SEQ(A a, B b)"
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": text}).status_code == 201
    assert orders.get("/v1/alerts?pattern=q").json()["items"] == []


def test_an_alert_is_shown(found, stores, check_problem):
    alert = found.get("/v1/alerts").json()["items"][0]
    assert found.get(f"/v1/alerts/{alert['id']}").json() == alert
    assert orjson.loads(stores.alerts.body(alert["id"])) == alert
    check_problem(found.get("/v1/alerts/nothing"), 404, "unknown-alert")


@pytest.mark.parametrize(
    ("query", "status", "code"), [("after=x", 400, "invalid-cursor"), ("limit=0", 422, "wrong-shape")]
)
def test_wrong_pages_are_refused(orders, check_problem, query, status, code):
    check_problem(orders.get(f"/v1/alerts?{query}"), status, code)


def test_timeouts_are_told_and_counted(found):
    shown = found.get("/v1/timeouts").json()
    (timeout,) = [one for one in shown["items"] if one["key"] == "k"]
    assert {name: timeout[name] for name in ("pattern", "key", "start", "due", "bindings", "missing")} == {
        "pattern": "late",
        "key": "k",
        "start": "1970-01-01T00:00:01Z",
        "due": "1970-01-01T00:00:03Z",
        "bindings": {"a": ["e1"]},
        "missing": ["d"],
    }
    assert shown["counts"] == [{"stream": "orders", "pattern": "late", "missing": "d", "count": len(shown["items"])}]


def test_endings_are_explained_and_counted(found):
    shown = found.get("/v1/endings").json()
    (ending,) = shown["items"]
    assert (ending["key"], ending["event"], ending["event_type"], ending["form"]) == ("j", "e4", "C", "p2")
    assert (ending["constraints"], ending["atom"]) == (["exclusive(B, C)"], "B b")
    assert "B b can no longer come" in ending["reason"]
    (counter,) = shown["counts"]
    assert (counter["pattern"], counter["constraints"], counter["count"]) == ("p", "exclusive(B, C)", 1)


def test_deviations_are_told_and_counted(found):
    shown = found.get("/v1/deviations").json()
    assert [(deviation["event"], deviation["event_type"]) for deviation in shown["items"]] == [("e5", "A")]
    assert shown["counts"] == [{"stream": "orders", "event_type": "A", "count": 1}]


def test_entries_that_the_pipeline_cannot_read_are_dead_letters(found):
    shown = found.get("/v1/dead-letters").json()
    (letter,) = shown["items"]
    assert (letter["position"], letter["shard"], letter["kind"], letter["index"]) == ("9-0", 0, "events", None)
    assert shown["counts"] == [{"stream": "orders", "code": "batch-format", "count": 1}]

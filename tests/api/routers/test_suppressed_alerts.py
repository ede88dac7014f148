"""Patterns that suppress alerts, over HTTP."""

import pytest

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

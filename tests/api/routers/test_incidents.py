"""Incidents over HTTP: what changes of incidents leave, and what people request."""

import orjson
import pytest

from service.delivery.sink import AlertSink
from streams import EventBatch, SystemClock, parse_time
from tests.builders.service import sink_row

TEXT = "PATTERN p EVENT SEQ(A a, B b) RETURN a.customer AS customer"
OPENS = {"stream": "orders", "text": TEXT, "severity": "high", "incident": {"by": ["customer"], "close_after": "2 h"}}
CLOSES = {
    "stream": "orders",
    "text": "PATTERN r EVENT C c RETURN c.customer AS who",
    "resolves": {"pattern": "p", "by": ["who"]},
}
CHANGE = {
    "type": "incident.opened",
    "incident": "i1",
    "stream": "orders",
    "pattern": "p",
    "version": 1,
    "group": {"customer": "ann"},
    "state": "open",
    "revision": 1,
    "opened_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "closed_at": None,
    "closed_by": None,
    "acknowledged": None,
    "alerts": 1,
    "suppressed_alerts": 0,
    "first_alert": "a1",
    "last_alert": "a1",
    "key": "k",
    "why": "e1 is A a",
}


def write(stores, kind="opened", epoch=1, **changes):
    body = {**CHANGE, "type": f"incident.{kind}", **changes}
    identity = f"{body['incident']}-{body['revision']}"
    row = sink_row(kind=f"{kind}-incident", stream="orders", id=identity, body=orjson.dumps({**body, "id": identity}))
    AlertSink(stores, SystemClock())([row], epoch)


def requests(stores):
    """The requests of people in the log, with their keys."""
    entries = [one for shard in range(stores.log.shards()) for one in stores.log.read_range(shard)]
    return [
        event
        for one in entries
        if one.kind == "events" and one.stream == "p.alerts"
        for event in EventBatch.from_bytes(one.body).to_events()
    ]


@pytest.fixture
def opened(orders, stores):
    """A client of a service with a pattern and an open incident."""
    assert orders.post("/v1/patterns", json=OPENS).status_code == 201
    write(stores)
    return orders


def test_patterns_show_how_their_alerts_become_incidents(orders):
    answer = orders.post("/v1/patterns", json=OPENS)
    assert (answer.json()["incident"], answer.json()["suppress"], answer.json()["into"]) == (
        OPENS["incident"],
        None,
        None,
    )
    closes = orders.post("/v1/patterns", json=CLOSES).json()
    assert (closes["resolves"], closes["incident"], closes["into"]) == (CLOSES["resolves"], None, None)
    both = {**OPENS, "suppress": {"by": ["customer"], "for": "1 h"}, "incident": {"close_after": "2 h"}}
    second = orders.post("/v1/patterns", json=both, headers={"If-Match": "*"}).json()
    assert (second["version"], second["suppress"], second["incident"]) == (2, both["suppress"], OPENS["incident"])
    versions = orders.get("/v1/patterns/p/versions").json()["items"]
    assert [one["incident"] for one in versions] == [OPENS["incident"], OPENS["incident"]]


def test_a_pattern_that_resolves_may_come_first_and_go_last(orders):
    (warning,) = orders.post("/v1/patterns", json=CLOSES).json()["warnings"]
    assert "no pattern 'p' with 'incident' is registered" in warning
    assert orders.post("/v1/patterns", json=OPENS).status_code == 201
    assert orders.post("/v1/patterns", json=CLOSES).json()["warnings"] == []
    other = {**CLOSES, "resolves": {"pattern": "p"}}
    (warning,) = orders.put("/v1/patterns/r", json=other).json()["warnings"]
    assert "are by customer, so none here closes none" in warning
    assert orders.delete("/v1/patterns/p").status_code == 204
    assert orders.get("/v1/streams/p.alerts").status_code == 200
    assert orders.delete("/v1/patterns/r").status_code == 204
    assert orders.get("/v1/streams/p.alerts").status_code == 404


def test_a_deleted_pattern_leaves_no_stream_of_a_misspelt_resolved_pattern(orders):
    misspelt = {**CLOSES, "resolves": {"pattern": "pp", "by": ["who"]}}
    (warning,) = orders.post("/v1/patterns", json=misspelt).json()["warnings"]
    assert "no pattern 'pp' with 'incident' is registered" in warning
    orders.put("/v1/patterns/r", json=CLOSES)
    assert orders.delete("/v1/patterns/r").status_code == 204
    assert [orders.get(f"/v1/streams/{name}.alerts").status_code for name in ("pp", "p")] == [404, 404]


def test_the_warning_about_groups_is_read_with_patterns_of_the_same_stream_only(orders):
    assert orders.post("/v1/streams", json={"name": "other"}).status_code == 201
    assert orders.post("/v1/patterns", json=OPENS).status_code == 201
    for stream, is_read in (("orders", True), ("other", False)):
        text = f"PATTERN {stream}_r EVENT C c"
        document = {"stream": stream, "text": text, "resolves": {"pattern": "p"}}
        (warning,) = orders.post("/v1/patterns", json=document).json()["warnings"]
        assert "are by customer, so none here closes none" in warning
        assert orders.get(f"/v1/patterns/{stream}_r").json()["warnings"] == [warning] * is_read


def suppress(stores, epoch, *counts, **members):
    """Writes suppressed alerts of the open incident, which is then of as many alerts."""
    about = {"type": "alert.suppressed", "stream": "orders", "pattern": "p", "incident": "i1", **members}
    rows = [
        sink_row(
            kind="suppressed-alert",
            stream="orders",
            id=f"s{count}",
            body=orjson.dumps({**about, "id": f"s{count}", "incident_alerts": count}),
        )
        for count in counts
    ]
    AlertSink(stores, SystemClock())(rows, epoch)


def counted(http):
    incident = http.get("/v1/incidents/i1").json()
    return incident["revision"], incident["alerts"], incident["suppressed_alerts"]


def test_suppressed_alerts_are_counted_at_once_in_an_open_incident(opened, stores):
    suppress(stores, 2, 2, 3)
    assert counted(opened) == (1, 3, 2)
    suppress(stores, 3, 2)  # a repetition of an earlier one
    suppress(stores, 4, 7, incident="unknown")
    write(stores, epoch=5)
    assert counted(opened) == (1, 3, 2)
    write(stores, "updated", 6, revision=2, alerts=5, suppressed_alerts=3)
    assert counted(opened) == (2, 5, 3)
    suppress(stores, 7, 4, 6)
    assert counted(opened) == (2, 6, 4)
    assert opened.get("/v1/incidents?state=open").json()["items"][0]["alerts"] == 6


def test_the_newest_change_is_listed(opened, stores):
    write(stores, "closed", 2, revision=3, state="closed", closed_at="2026-01-01T02:00:00Z", closed_by={"how": "time"})
    write(stores, "updated", 3, revision=2, alerts=2)
    write(stores, "opened", 4, incident="i2", group={"customer": "bob"})
    found = opened.get("/v1/incidents").json()
    assert [(one["id"], one["state"], one["severity"]) for one in found["items"]] == [
        ("i2", "open", "high"),
        ("i1", "closed", "high"),
    ]
    assert opened.get("/v1/incidents/i1").json()["closed_by"] == {
        "how": "time",
        "by": None,
        "at": None,
        "pattern": None,
        "alert": None,
    }
    for query, ids in (("state=open", ["i2"]), ("pattern=p&limit=1", ["i2"]), ("stream=orders", ["i2", "i1"])):
        assert [one["id"] for one in opened.get(f"/v1/incidents?{query}").json()["items"]] == ids
    first = opened.get("/v1/incidents?limit=1").json()
    assert [one["id"] for one in opened.get(f"/v1/incidents?after={first['next']}").json()["items"]] == ["i1"]
    assert 'forestall_opened_incidents_total{pattern="p",stream="orders"} 2.0' in opened.get("/metrics").text


def test_what_people_request_is_in_the_log(opened, stores, check_problem):
    answer = opened.post("/v1/incidents/i1/acknowledge", json={"by": "eve"})
    assert (answer.status_code, answer.json()["state"]) == (202, "open")
    assert opened.post("/v1/incidents/i1/close").status_code == 202
    seen, closed = requests(stores)
    assert (seen.type, seen.key, seen.time_us) == ("acknowledge", '["ann"]', parse_time(CHANGE["updated_at"]))
    assert (seen.data["incident"], seen.data["by"], closed.type, closed.data["by"]) == ("i1", "eve", "close", None)
    write(stores, "updated", 2, revision=2, state="acknowledged", acknowledged={"by": "eve", "at": seen.data["at"]})
    assert opened.post("/v1/incidents/i1/acknowledge").json()["acknowledged"]["by"] == "eve"
    write(stores, "closed", 3, revision=3, state="closed", closed_at="2026-01-01T02:00:00Z", closed_by={"how": "time"})
    check_problem(opened.post("/v1/incidents/i1/close"), 409, "incident-closed")
    check_problem(opened.post("/v1/incidents/i9/close"), 404, "unknown-incident")
    assert len(requests(stores)) == 2


def test_the_incidents_of_a_deleted_pattern_are_closed(opened, stores):
    assert opened.delete("/v1/patterns/p").status_code == 204
    assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
    assert opened.post("/v1/incidents/i1/close").json()["state"] == "closed"  # as no shard decides about it any more
    assert opened.get("/v1/incidents/i1").json()["closed_by"]["how"] == "deletion"


@pytest.mark.parametrize("path", ["/v1/patterns/p", "/v1/streams/orders?cascade=true"])
@pytest.mark.parametrize("change", [{}, {"suppress": {"by": ["customer"], "for": "1 h"}}])
def test_incidents_of_a_former_version_are_closed_with_the_pattern(opened, stores, path, change):
    without = {name: value for name, value in OPENS.items() if name != "incident"}
    assert opened.put("/v1/patterns/p", json={**without, **change}).json()["version"] == 2
    assert requests(stores) == []
    assert opened.delete(path).is_success
    assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
    assert opened.get("/v1/streams/p.alerts").status_code == 404


def test_a_refused_deletion_closes_no_incidents(opened, stores, check_problem):
    check_problem(opened.delete("/v1/patterns/p", headers={"If-Match": '"stale"'}), 412, "precondition-failed")
    assert requests(stores) == []
    tag = opened.get("/v1/patterns/p").headers["etag"]
    assert opened.delete("/v1/patterns/p", headers={"If-Match": tag}).status_code == 204
    kinds = [(one.kind, one.stream) for one in stores.log.read_range(0)]
    end = kinds.index(("pattern-off", "orders"))
    assert ("stream-off", "p.alerts") in kinds[end:]
    assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]


def test_an_interrupted_deletion_is_completed_by_the_next_one(opened, stores, monkeypatch, check_problem):
    with monkeypatch.context() as patch:
        patch.setattr("service.registering.incidents.IncidentLibrary.close_all", None)
        assert opened.delete("/v1/patterns/p").status_code == 500
    assert requests(stores) == []
    assert opened.get("/v1/streams/p.alerts").status_code == 200
    for _ in range(2):
        check_problem(opened.delete("/v1/patterns/p"), 404, "unknown-pattern")
        assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
        assert opened.get("/v1/streams/p.alerts").status_code == 404


@pytest.mark.parametrize("is_retired", [False, True])
def test_a_stream_is_deleted_with_the_incidents_of_its_patterns(opened, stores, is_retired):
    if is_retired:
        assert opened.post("/v1/patterns/p/retire").status_code == 200
    assert opened.delete(f"/v1/streams/orders?cascade={not is_retired}").status_code == 200
    assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
    assert opened.get("/v1/streams/p.alerts").status_code == 404


def test_a_stream_is_deleted_beside_a_pattern_that_resolves_its_incidents(opened, stores):
    assert opened.post("/v1/streams", json={"name": "payments"}).status_code == 201
    assert opened.post("/v1/patterns", json={**CLOSES, "stream": "payments"}).status_code == 201
    assert opened.delete("/v1/streams/orders?cascade=true").status_code == 200
    assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
    assert opened.get("/v1/streams/p.alerts").status_code == 200
    assert opened.delete("/v1/streams/payments?cascade=true").status_code == 200
    assert opened.get("/v1/streams/p.alerts").status_code == 404


def test_a_refused_deletion_of_a_stream_closes_no_incidents(opened, stores, check_problem):
    check_problem(opened.delete("/v1/streams/orders"), 409, "stream-in-use")
    assert opened.delete("/v1/streams/orders?cascade=true&dry_run=true").status_code == 200
    assert requests(stores) == []


def test_an_interrupted_deletion_of_a_stream_is_completed_by_the_next_one(opened, stores, monkeypatch, check_problem):
    with monkeypatch.context() as patch:
        patch.setattr("service.registering.incidents.IncidentLibrary.close_all", None)
        assert opened.delete("/v1/streams/orders?cascade=true").status_code == 500
    assert requests(stores) == []
    for _ in range(2):
        check_problem(opened.delete("/v1/streams/orders?cascade=true"), 404, "unknown-stream")
        assert [(one.type, one.data["how"]) for one in requests(stores)] == [("close", "deletion")]
        assert opened.get("/v1/streams/p.alerts").status_code == 404


def test_webhooks_get_changes_under_one_key(opened, stores):
    kinds = ["incident.opened", "incident.closed"]
    template = {"dedup_key": "{{incident}}", "summary": "{{pattern}} {{group.customer}}: {{state}}"}
    answer = opened.post("/v1/webhooks", json={"url": "http://127.0.0.1:1/", "kinds": kinds, "template": template})
    assert answer.status_code == 201, answer.text
    write(stores, "opened", 2, incident="i2")
    write(stores, "updated", 3, incident="i2", revision=2)
    write(stores, "closed", 4, incident="i2", revision=3, state="closed", closed_by={"how": "time"})
    found = stores.deliveries.claim(SystemClock().now_us() + 1, 2**50, 9, lambda _: None)
    assert [(one.kind, one.alert, orjson.loads(one.body)["incident"]) for one in found] == [
        ("incident.opened", "i2-1", "i2"),
        ("incident.closed", "i2-3", "i2"),
    ]


def test_a_key_of_other_streams_sees_none(opened, holder, check_problem):
    opened.post("/v1/streams", json={"name": "payments"})
    stranger = holder("read", "patterns", streams=["payments"])
    check_problem(stranger.get("/v1/incidents/i1"), 404, "unknown-incident")
    check_problem(stranger.post("/v1/incidents/i1/close"), 404, "unknown-incident")
    check_problem(stranger.get("/v1/incidents"), 403, "forbidden")
    assert stranger.get("/v1/incidents?stream=payments").json()["items"] == []

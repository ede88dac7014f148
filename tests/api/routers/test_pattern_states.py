"""The life of a pattern: drafts, states, versions, dry runs, statistics."""

import orjson
import pytest

from service import AlertSink
from streams import RecordKind
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

TEXT = "PATTERN p EVENT SEQ(A a, B b)"
NEXT = f"{TEXT} WITHIN 1 h"


def register(http, text=TEXT, **more):
    return http.post("/v1/patterns", json={"stream": "orders", "text": text, **more})


def move(http, action):
    return http.post(f"/v1/patterns/p/{action}")


def controls(stores):
    return [entry.kind.value for entry in stores.log.read_range(0) if entry.kind is not RecordKind.STREAM_ON]


def test_a_draft_is_matched_once_it_is_activated(orders, stores):
    draft = register(orders, state="draft")
    assert (draft.status_code, draft.json()["state"], controls(stores)) == (201, "draft", [])
    assert register(orders, state="draft").status_code == 200
    assert register(orders, NEXT, state="draft").status_code == 409
    wanted = {"stream": "orders", "text": NEXT, "state": "draft"}
    assert orders.put("/v1/patterns/p", json=wanted).json()["version"] == 2
    active = move(orders, "activate")
    assert (active.status_code, active.json()["state"], active.json()["version"]) == (200, "active", 2)
    assert move(orders, "activate").json() == active.json()
    assert controls(stores) == ["pattern-on"]


def test_a_draft_that_is_registered_is_activated(orders, stores):
    register(orders, state="draft")
    answer = register(orders)
    assert (answer.status_code, answer.json()["state"], answer.json()["version"]) == (201, "active", 1)
    assert controls(stores) == ["pattern-on"]


def test_a_retired_pattern_stays_listed_and_is_over(orders, stores, check_problem):
    register(orders)
    assert move(orders, "retire").json()["state"] == "retired"
    assert move(orders, "retire").status_code == 200
    assert controls(stores) == ["pattern-on", "pattern-off"]
    assert orders.get("/v1/patterns/p").json()["state"] == "retired"
    body = check_problem(move(orders, "resume"), 409, "pattern-state")
    assert (body["state"], body["permitted"]) == ("retired", ["delete"])
    check_problem(register(orders, NEXT), 409, "pattern-state")
    assert orders.delete("/v1/patterns/p").status_code == 204
    assert register(orders).json()["version"] == 2
    assert controls(stores) == ["pattern-on", "pattern-off", "pattern-on"]


SUSPENSION = {
    "type": "pattern.suspended",
    "id": "5e",
    "stream": "orders",
    "pattern": "p",
    "version": 1,
    "key": "k",
    "event": "e7",
    "event_type": "A",
    "time": "2026-01-01T00:00:00Z",
    "shard": 0,
    "budget": {
        "per_event": 1_000,
        "per_trace": 10_000_000,
        "traces": 10,
        "forgiven_after": 1_000_000,
        "in_all": 20_000_000,
    },
    "reason": "the pattern 'p' (version 1) is suspended: ...",
}


def suspension():
    return sink_row(kind="suspension", stream="orders", id="5e", body=orjson.dumps(SUSPENSION))


def test_a_suspended_pattern_says_why_and_is_resumed_as_its_next_version(orders, stores, clock, check_problem):
    register(orders)
    AlertSink(stores, clock)([suspension()], 3)
    found = orders.get("/v1/patterns/p").json()
    assert (found["state"], found["suspension"]) == ("suspended", {**SUSPENSION, "route": None, "severity": "medium"})
    (listed,) = orders.get("/v1/patterns").json()["items"]
    assert (listed["state"], listed["suspension"]) == (found["state"], found["suspension"])
    assert orders.get("/v1/suspensions?stream=orders").json()["items"] == [found["suspension"]]
    assert orders.get("/v1/patterns/p/statistics").json()["state"] == "suspended"
    assert 'forestall_pattern_suspended{pattern="p",stream="orders"} 1.0' in orders.get("/metrics").text
    body = check_problem(move(orders, "pause"), 409, "pattern-state")
    assert (body["state"], body["permitted"]) == ("suspended", ["resume", "retire", "delete"])
    assert register(orders).json()["state"] == "suspended"
    resumed = move(orders, "resume").json()
    assert (resumed["state"], resumed["version"], resumed["suspension"]) == ("active", 2, None)
    assert [one["version"] for one in orders.get("/v1/patterns/p/versions").json()["items"]] == [1, 2]
    assert controls(stores) == ["pattern-on", "pattern-pause", "pattern-on"]


@pytest.mark.parametrize("before", [["pause"], ["pause", "retire"]])
def test_the_log_is_told_once_that_a_pattern_stops(orders, stores, before):
    register(orders)
    for action in before:
        assert move(orders, action).status_code == 200
    told = controls(stores)
    if before[-1] == "retire":
        orders.delete("/v1/patterns/p")
        assert told == ["pattern-on", "pattern-pause"]
    assert controls(stores) == told


@pytest.mark.parametrize(
    ("state", "refused", "permitted"),
    [
        ("draft", ["pause", "resume"], ["activate", "retire", "delete"]),
        ("paused", ["activate"], ["resume", "retire", "delete"]),
    ],
)
def test_what_does_not_begin_in_a_state_is_refused(orders, check_problem, state, refused, permitted):
    register(orders, state="draft" if state == "draft" else "active")
    if state == "paused":
        move(orders, "pause")
    for action in refused:
        body = check_problem(move(orders, action), 409, "pattern-state")
        assert (body["state"], body["permitted"]) == (state, permitted)
        assert f"cannot be {action}d" in body["detail"]


def test_a_running_pattern_has_no_drafts(orders, check_problem):
    register(orders)
    check_problem(register(orders, NEXT, state="draft"), 409, "pattern-state")


def test_a_draft_that_became_impossible_is_not_activated(orders, check_problem):
    register(orders, state="draft")
    orders.post("/v1/constraints?stream=orders", json=["exclusive(A, B)"])
    check_problem(move(orders, "activate"), 409, "unsatisfiable-pattern")
    assert orders.get("/v1/patterns/p").json()["state"] == "draft"


def test_versions_are_listed(orders, check_problem):
    register(orders)
    orders.put("/v1/patterns/p", json={"stream": "orders", "text": NEXT, "constraints": "off"})
    versions = orders.get("/v1/patterns/p/versions").json()["items"]
    assert [(one["version"], one["text"], one["constraints"], one["current"]) for one in versions] == [
        (1, TEXT, "on", False),
        (2, NEXT, "off", True),
    ]
    shown = [orders.get(f"/v1/patterns/p/versions/{number}").json() for number in (1, 2)]
    assert shown == versions
    check_problem(orders.get("/v1/patterns/p/versions/3"), 404, "unknown-pattern")
    check_problem(orders.get("/v1/patterns/q/versions"), 404, "unknown-pattern")


def send(http, *types, key="k", first=1):
    events = [
        {"id": f"e{number}", "type": name, "time": number * 1_000_000, "data": {"id": key, "who": "w"}}
        for number, name in enumerate(types, first)
    ]
    assert http.post("/v1/events?stream=orders", json=events).json()["rejected"] == []


def try_out(http, **wanted):
    answer = http.post("/v1/patterns/dry-run", json=wanted)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_pattern_is_tried_on_the_newest_events(orders):
    orders.post("/v1/constraints?stream=orders", json=["exclusive(B, C)"])
    send(orders, "A", "B", "A")
    send(orders, "A", "C", key="j", first=4)
    found = try_out(orders, stream="orders", text=TEXT)
    assert (found["events"], found["matched"], found["endings"]) == (5, 1, 1)
    assert (found["matches"][0]["key"], found["matches"][0]["bindings"]) == ("k", {"a": ["e1"], "b": ["e2"]})
    assert (found["ending_reasons"][0]["form"], found["ending_reasons"][0]["count"]) == ("p2", 1)
    assert (found["first_time"], found["last_time"]) == ("1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:05.000000Z")
    assert found["duration_s"] > 0
    assert {one["event"] for one in found["failing_conditions"]} == {"C", "Z"}  # Z ends a transaction
    unguarded = try_out(orders, stream="orders", text=TEXT, constraints="off")
    assert (unguarded["endings"], unguarded["failing_conditions"]) == (0, [])
    assert try_out(orders, stream="orders", text=TEXT, events=2)["events"] == 2
    assert orders.get("/v1/patterns").json() == {"items": [], "next": None}


def test_a_draft_is_tried_by_its_name(orders, check_problem):
    send(orders, "A", "B")
    register(orders, state="draft")
    assert try_out(orders, name="p")["matched"] == 1
    check_problem(orders.post("/v1/patterns/dry-run", json={"name": "q"}), 404, "unknown-pattern")


def test_a_pattern_of_a_further_key_is_tried(http):
    declaration = {"name": "orders", "key": "data.id", "keys": {"who": "data.who"}}
    assert http.post("/v1/streams", json=declaration).status_code == 201
    send(http, "A")
    send(http, "B", key="j", first=2)
    found = try_out(http, stream="orders", text=f"{TEXT} WHERE [who]")
    assert [(match["key"], match["bindings"]) for match in found["matches"]] == [("w", {"a": ["e1"], "b": ["e2"]})]


def test_what_cannot_be_tried_is_refused(orders, check_problem):
    def refused(status, code, **wanted):
        check_problem(orders.post("/v1/patterns/dry-run", json=wanted), status, code)

    refused(400, "pattern-refused", stream="orders", text="PATTERN p EVENT SEQ(")
    refused(404, "unknown-stream", stream="nowhere", text=TEXT)
    refused(422, "wrong-shape", stream="orders")
    refused(422, "wrong-shape", text=TEXT)
    half = orders.post(
        "/v1/patterns/dry-run", content='{"name": "\\ud800"}', headers={"content-type": "application/json"}
    )
    check_problem(half, 400, "malformed-body")
    refused(422, "wrong-shape", stream="orders", text=TEXT, events=100_001)
    orders.post("/v1/constraints?stream=orders", json=["exclusive(A, B)"])
    refused(409, "unsatisfiable-pattern", stream="orders", text=TEXT)


def test_statistics_count_what_was_found(orders, stores, clock, check_problem):
    register(orders)

    def row(kind, name, **fields):
        body = {"id": name, "pattern": "p", "key": "k", **fields}
        return sink_row(kind=kind, stream="orders", id=name, body=orjson.dumps(body))

    AlertSink(stores, clock)(
        [
            row("alert", "a1", detected_at="2026-01-01T00:00:00Z"),
            row("alert", "a2", detected_at="2026-01-01T00:00:05Z", would_be_lost=True),
            row("ending", "n1", form="p2", constraints=["exclusive(B, C)"], atom="B b"),
            row("timeout", "t1", missing=["b"]),
        ],
        0,
    )
    found = orders.get("/v1/patterns/p/statistics").json()
    assert (found["alerts"], found["would_be_lost_count"], found["last_alert_at"]) == (2, 1, "2026-01-01T00:00:05Z")
    assert (found["timeouts"], found["timeouts_by_missing"]) == (1, [{"missing_steps": "b", "count": 1}])
    assert (found["ending_summary"]["total"], found["corrections"], found["state"]) == (1, 0, "active")
    check_problem(orders.get("/v1/patterns/q/statistics"), 404, "unknown-pattern")

"""Alerts, timeouts, endings, deviations and dead letters, as the pipeline writes them."""

import orjson
import pytest
from httpx_sse import connect_sse

from service import AlertSink, Intake, Limits
from service.intake.posting import FeedPart, Unreadable
from service.stores import FeedMark, FeedStep
from shards import RESULT_KINDS, ShardState
from streams import ConstraintsOn, PatternOn, StreamDeclaration, StreamOn, SystemClock, format_time
from tests.builders.service import sink_row
from tests.builders.shards import Step, event, log_of

pytestmark = pytest.mark.redis

RECENT = ["corrections", "timeouts", "endings", "deviations", "dead-letters"]
STEPS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders", end_events=("Z",))),
    PatternOn(name="p", version=1, text="PATTERN p EVENT SEQ(A a, B b)"),
    PatternOn(name="late", version=1, text="PATTERN late EVENT SEQ(A a, D d) WITHIN 2 s LIMIT 5 EMIT TIMEOUTS"),
    PatternOn(name="never", version=1, text="PATTERN never EVENT SEQ(P a, NOT X)"),
    ConstraintsOn(
        name="orders", version=1, document={"constraints": ["exclusive(B, C)", "prior(A, C)", "prior(X, Y)"]}
    ),
    [event(1, "A"), event(2, "B"), event(3, "A", "j"), event(4, "C", "j"), event(5, "A", "j"), event(6, "B")],
    [event(7, "P", "i"), event(8, "Y", "i"), event(9, "X", "i")],
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
    page = found.get("/v1/alerts?limit=1&order=asc").json()
    (first,) = page["items"]
    assert (first["key"], first["bindings"], first["stream"]) == ("k", {"a": ["e1"], "b": ["e2"]}, "orders")
    assert first["why"]
    rest = found.get("/v1/alerts", params={"after": page["next"]}).json()
    assert [alert["bindings"].get("b") for alert in rest["items"]] == [["e6"], None]
    assert rest["next"] is None
    later = found.get("/v1/alerts", params={"after": rest["after"]}).json()
    assert later == {"items": [], "next": None, "after": rest["after"]}
    newest = found.get("/v1/alerts").json()
    assert newest["items"] == [*reversed(rest["items"]), *page["items"]]
    assert newest["after"] == rest["after"]


def test_results_of_several_kinds_are_followed_in_one_feed(found, stores, clock, check_problem):
    kinds = "alert,correction,timeout,deviation,dead-letter,ending"

    def taken(count, query):
        with connect_sse(found, "GET", f"/v1/results/live?{query}") as source:
            assert source.response.status_code == 200
            events = source.iter_sse()
            return [next(events) for _ in range(count)]

    lists = {kind: found.get(f"/v1/{RESULT_KINDS[kind].plural}").json()["items"] for kind in kinds.split(",")}
    count = sum(map(len, lists.values()))
    begin, *events = taken(count + 1, f"kinds={kinds}&after=0&stream=orders")
    assert (begin.id, begin.data) == ("0", "")
    for kind, items in lists.items():
        told = [event.json()["id"] for event in events if event.event == kind]
        assert told == [item["id"] for item in reversed(items)]
    for at in (0, count // 2, count - 2):
        assert taken(2, f"kinds={kinds}&after={events[at].id}")[1].data == events[at + 1].data
    assert max(len(event.id) for event in events) < 200
    assert {event.event for event in taken(5, "after=0")} == {"message", "alert", "correction"}
    check_problem(found.get("/v1/results/live?kinds=alerts"), 422, "wrong-shape")
    check_problem(found.get(f"/v1/results/live?after={events[3].id}"), 400, "invalid-cursor")
    check_problem(found.get("/v1/results/live?after=x"), 400, "invalid-cursor")


def test_alerts_are_filtered(found):
    assert len(found.get("/v1/alerts?stream=orders&pattern=p").json()["items"]) == 2


def test_an_early_alert_and_its_correction_are_told(found):
    (alert,) = found.get("/v1/alerts?pattern=never").json()["items"]
    assert (alert["type"], alert["decided_by"], alert["detected_at"]) == (
        "alert",
        "constraint",
        "1970-01-01T00:00:08.000000Z",
    )
    assert "would_be_lost" not in alert
    shown = found.get("/v1/corrections?stream=orders").json()
    (correction,) = shown["items"]
    assert (correction["type"], correction["alert"], correction["event"]) == ("correction", alert["id"], "e9")
    assert shown["counts"] == [{"stream": "orders", "pattern": "never", "count": 1}]


def test_alerts_of_a_deviating_trace_say_so(found):
    pages = found.get("/v1/alerts?pattern=p").json()["items"]
    assert [alert.get("deviating", False) for alert in pages] == [False, False]


def test_endings_are_summed_up_by_pattern(found, check_problem):
    (summary,) = found.get("/v1/endings/summary").json()["items"]
    assert {name: summary[name] for name in ("stream", "pattern", "total", "by_form")} == {
        "stream": "orders",
        "pattern": "p",
        "total": 1,
        "by_form": {"p2": 1},
    }
    assert summary["reasons"] == [{"form": "p2", "chain": "exclusive(B, C)", "atom": "B b", "count": 1}]
    found.post("/v1/patterns", json={"stream": "orders", "text": "PATTERN p EVENT SEQ(A a, B b)"})
    assert found.get("/v1/patterns/p").json()["ending_summary"] == summary
    assert found.get("/v1/endings/summary?stream=orders").json()["items"] == [summary]
    check_problem(found.get("/v1/endings/summary?stream=nowhere"), 404, "unknown-stream")


@pytest.mark.parametrize("resource", ["alerts", "patterns", *RECENT])
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


def test_alerts_are_chosen_by_key_and_time(found, check_problem):
    everything = found.get("/v1/alerts").json()["items"]
    assert len(found.get("/v1/alerts?key=i").json()["items"]) == 1
    middle = everything[1]["detected_at"]
    before, since = (found.get("/v1/alerts", params={name: middle}).json()["items"] for name in ("until", "since"))
    assert [*since, *before] == everything
    assert before
    assert since
    check_problem(found.get("/v1/alerts?since=yesterday"), 422, "wrong-shape")


def test_alerts_are_chosen_by_the_time_at_which_they_were_found(found, clock):
    everything = found.get("/v1/alerts").json()["items"]
    (created,) = {one["created_at"] for one in everything}
    assert created == format_time(clock.now_us())
    assert found.get("/v1/alerts", params={"created_since": created}).json()["items"] == everything
    assert found.get("/v1/alerts", params={"created_until": created}).json()["items"] == []


def test_an_alert_is_acknowledged_and_has_notes(found, clock, check_problem):
    name = found.get("/v1/alerts").json()["items"][0]["id"]
    first = found.post(f"/v1/alerts/{name}/acknowledge", json={"by": "ann"})
    assert (first.status_code, first.json()) == (200, {"at": "2026-01-01T00:00:00.000000Z", "by": "ann"})
    clock.forward(60)
    assert found.post(f"/v1/alerts/{name}/acknowledge").json() == first.json()
    note = found.post(f"/v1/alerts/{name}/notes", json={"text": "called"})
    assert (note.status_code, note.json()["at"], note.json()["by"]) == (201, "2026-01-01T00:01:00.000000Z", None)
    shown = found.get(f"/v1/alerts/{name}").json()
    assert (shown["acknowledged"], shown["notes"]) == (first.json(), [note.json()])
    (listed,) = found.get("/v1/alerts?acknowledged=true").json()["items"]
    assert (listed["id"], listed["acknowledged"]) == (name, first.json())
    assert name not in {alert["id"] for alert in found.get("/v1/alerts?acknowledged=false").json()["items"]}


def test_wrong_marks_are_refused(found, check_problem):
    path = f"/v1/alerts/{found.get('/v1/alerts').json()['items'][0]['id']}"
    check_problem(found.post(f"{path}/notes", json={"text": ""}), 422, "wrong-shape")
    check_problem(found.post(f"{path}/notes", json={"text": "x" * 4_001}), 422, "wrong-shape")
    check_problem(found.post(f"{path}/acknowledge", json={"who": "ann"}), 422, "wrong-shape")
    check_problem(found.post(f"{path}/acknowledge", content="by: ann"), 415, "unsupported-media-type")
    check_problem(found.post("/v1/alerts/nothing/acknowledge"), 404, "unknown-alert")
    check_problem(found.post("/v1/alerts/nothing/notes", json={"text": "x"}), 404, "unknown-alert")


@pytest.mark.parametrize(
    ("query", "status", "code"), [("after=x", 400, "invalid-cursor"), ("limit=0", 422, "wrong-shape")]
)
def test_wrong_pages_are_refused(orders, check_problem, query, status, code):
    check_problem(orders.get(f"/v1/alerts?{query}"), status, code)


@pytest.mark.parametrize("resource", RECENT)
def test_recent_lists_have_pages(found, check_problem, resource):
    whole = found.get(f"/v1/{resource}").json()
    assert whole["items"]
    assert whole["next"] is None
    listed: list[object] = []
    after: dict[str, str | None] = {}
    for _ in whole["items"]:
        page = found.get(f"/v1/{resource}", params={"limit": 1, "stream": "orders", **after}).json()
        listed += page["items"]
        after = {"after": page["next"]}
    assert listed == whole["items"]
    assert after == {"after": None}
    oldest_first = found.get(f"/v1/{resource}?order=asc").json()
    assert oldest_first["items"] == whole["items"][::-1]
    assert oldest_first["after"] == whole["after"]
    assert found.get(f"/v1/{resource}", params={"after": whole["after"]}).json()["items"] == []
    check_problem(found.get(f"/v1/{resource}?after=x"), 400, "invalid-cursor")


def test_timeouts_are_told_and_counted(found):
    shown = found.get("/v1/timeouts").json()
    (timeout,) = [one for one in shown["items"] if one["key"] == "k"]
    assert {name: timeout[name] for name in ("pattern", "key", "start", "due", "bindings", "missing")} == {
        "pattern": "late",
        "key": "k",
        "start": "1970-01-01T00:00:01.000000Z",
        "due": "1970-01-01T00:00:03.000000Z",
        "bindings": {"a": ["e1"]},
        "missing": ["d"],
    }
    assert shown["counts"] == [
        {"stream": "orders", "pattern": "late", "missing_steps": "d", "count": len(shown["items"])}
    ]


def test_endings_are_explained_and_counted(found):
    shown = found.get("/v1/endings").json()
    (ending,) = shown["items"]
    assert (ending["key"], ending["event"], ending["event_type"], ending["form"]) == ("j", "e4", "C", "p2")
    assert (ending["constraints"], ending["atom"]) == (["exclusive(B, C)"], "B b")
    assert "B b can no longer come" in ending["reason"]
    (counter,) = shown["counts"]
    assert (counter["pattern"], counter["chain"], counter["count"]) == ("p", "exclusive(B, C)", 1)


def test_deviations_are_told_and_counted(found):
    shown = found.get("/v1/deviations").json()
    last, first = shown["items"]
    assert (first["type"], first["event"], first["event_type"], first["kind"]) == ("deviation", "e5", "A", "order")
    assert (first["constraints"], first["released"]) == (["prior(A, C)"], 1)
    assert "A came after C" in first["reason"]
    assert last["event"] == "e9"
    assert shown["counts"] == [
        {"stream": "orders", "event_type": "A", "kind": "order", "count": 1},
        {"stream": "orders", "event_type": "X", "kind": "order", "count": 1},
    ]


def test_deviations_of_an_earlier_release_are_shown(orders, stores):
    body = {
        "id": "d",
        "key": "k",
        "event": "e",
        "event_type": "A",
        "time": "2026-01-01T00:00:00Z",
        "version": 1,
        "reason": "r",
    }
    row = sink_row(kind="deviation", stream="orders", id="d", body=orjson.dumps({**body, "stream": "orders"}))
    stores.results["deviation"].append([row], 1)
    (shown,) = orders.get("/v1/deviations").json()["items"]
    assert (shown["kind"], shown["constraints"], shown["reason"]) == (None, [], "r")


def test_entries_that_the_pipeline_cannot_read_are_dead_letters(found):
    shown = found.get("/v1/dead-letters").json()
    (letter,) = shown["items"]
    assert (letter["position"], letter["shard"], letter["kind"], letter["index"]) == ("9-0", 0, "events", None)
    assert shown["counts"] == [{"stream": "orders", "code": "batch-format", "count": 1}]


def test_a_dead_letter_of_a_feed_shows_where_it_comes_from(orders, stores):
    mark = FeedMark(checkpoint="c")
    stores.feeds.begin("f", mark, "s")
    step = FeedStep(feed="f", before=mark, after=FeedMark(checkpoint="c", batch=1))
    part = FeedPart(step=step, origins=[{"file": "a.csv", "row": 3}])
    intake = Intake(stores.log, stores.registry, Limits(), SystemClock())
    intake.ingest("orders", [Unreadable(detail="4 values for 3 columns", text="1,2,3,4")], part=part)
    (letter,) = orders.get("/v1/dead-letters").json()["items"]
    assert (letter["origin"], letter["reason"]) == ({"file": "a.csv", "row": 3}, "4 values for 3 columns")
    assert letter["event"] == "1,2,3,4"

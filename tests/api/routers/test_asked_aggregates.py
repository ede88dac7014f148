"""Questions to aggregates over HTTP, answered by the states of the shards."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import orjson
import pytest

from service import AlertSink
from service.questions import operators
from tests.api.routers.test_open_cases import await_job, hold_until, match_until
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

JSON = {"content-type": "application/json"}
FAILED = {
    "name": "failed",
    "of": "logins",
    "by": ["user"],
    "values": {"n": "count()", "worst": "max(risk)", "spread": "stddev(risk)"},
    "window": "1 h",
    "having": "n > 100",
    "ask": {"by": ["region", "user"]},
}


@pytest.fixture(params=["log", "task"])
def pipeline(request, http, stores, clock, settings, tmp_path):
    assert http.post("/v1/streams", json={"name": "logins", "key": "data.user"}).status_code == 201
    assert http.post("/v1/aggregates", json=FAILED).status_code == 201
    stores.heartbeat.beat(clock.now_us())
    is_over = Event()
    own = settings.model_copy(update={"data_dir": tmp_path})
    given = (match_until, (stores, is_over)) if request.param == "log" else (hold_until, (stores, own, is_over))
    thread = Thread(target=given[0], args=given[1])
    thread.start()
    if request.param == "task":
        await_job(stores)
    yield stores
    is_over.set()
    thread.join()


def test_groups_and_values_are_those_of_the_window(pipeline, http):
    events = [
        {"id": f"e{number}", "type": "Login", "time": f"2025-12-31T{1 + number % 2}0:{number:02}:00Z", "data": data}
        for number, data in enumerate(
            {"user": f"u{place % 3}", "region": "north" if place % 4 else "south", "risk": place} for place in range(24)
        )
    ]
    assert http.post("/v1/events?stream=logins", json=events).json()["rejected"] == []
    found = http.post("/v1/aggregates/failed/ask", json={"by": ["region"], "values": ["n", "worst"]}).json()
    newest = [place for place in range(24) if place % 2]  # those of 20 o'clock
    assert found["groups"] == [
        {"region": region, "n": len(some), "worst": max(some)}
        for region, some in (
            ("north", [one for one in newest if one % 4]),
            ("south", [one for one in newest if not one % 4]),
        )
        if some
    ]
    assert (found["events"], found["time"]) == (12, "2025-12-31T20:23:00.000000Z")
    assert found["positions"].keys() == {str(shard) for shard in range(pipeline.log.shards())}
    assert found["indexes"] == []
    explained = http.post("/v1/aggregates/failed/ask", json={"explain": True}).json()["indexes"]
    assert sum(index["events"] for index in explained) == 12
    values = {"total": "sum(risk)", "regions": "distinct(region)"}
    new = http.post("/v1/aggregates/failed/ask", json={"values": ["n", values]}).json()
    assert new["groups"] == [{"n": 12, "total": sum(newest), "regions": 2 - all(one % 4 for one in newest)}]
    one = http.post("/v1/aggregates/failed/ask", json={"where": {"user": "u1"}}).json()
    assert [sorted(group) for group in one["groups"]] == [["n", "worst"]]


def test_the_window_of_all_shards_ends_at_the_newest_time_of_the_stream(pipeline, http):
    assert pipeline.log.shards() > 1
    events = [
        {"id": f"e{hour}", "type": "Login", "time": f"2025-12-31T{hour:02}:00:00Z", "data": {"user": f"u{hour}"}}
        for hour in range(20)
    ]
    assert http.post("/v1/events?stream=logins", json=events).json()["rejected"] == []
    found = http.post("/v1/aggregates/failed/ask", json={"by": ["user"], "values": ["n"]}).json()
    assert (found["groups"], found["time"]) == ([{"user": "u19", "n": 1}], "2025-12-31T19:00:00.000000Z")


def test_questions_that_are_asked_at_once_each_get_their_own_answer(pipeline, http):
    events = [
        {"id": f"e{number}", "type": "Login", "time": "2025-12-31T10:00:00Z", "data": {"user": f"u{number % 7}"}}
        for number in range(49)
    ]
    assert http.post("/v1/events?stream=logins", json=events).json()["rejected"] == []

    def asked(number):
        path = "/v1/aggregates/none/ask" if number % 5 == 0 else "/v1/aggregates/failed/ask"
        member = {"by": ["height"]} if number % 3 == 0 else {"by": ["user"]}
        answer = http.post(path, json={**member, "where": {"user": f"u{number % 7}"}, "values": ["n"]})
        return answer.status_code, answer.json().get("groups")

    def expected(number):
        if number % 5 == 0:
            return 404, None
        return (422, None) if number % 3 == 0 else (200, [{"user": f"u{number % 7}", "n": 7}])

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(asked, range(90))) == [expected(number) for number in range(90)]


def test_a_question_needs_a_key_that_may_read_and_is_no_change(http, holder, check_problem):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    http.post("/v1/aggregates", json=FAILED)
    before = http.get("/v1/audit").json()
    check_problem(holder("read").post("/v1/aggregates/failed/ask", json={}), 503, "pipeline-not-running")
    check_problem(holder("ingest").post("/v1/aggregates/failed/ask", json={}), 403, "forbidden")
    resources = [entry["resource"] for entry in http.get("/v1/audit").json()["items"]]
    assert "/v1/aggregates/failed/ask" not in resources
    assert len(resources) == len(before["items"]) + 2  # the keys


@pytest.mark.parametrize("pipeline", ["task"], indirect=True)
@pytest.mark.parametrize(
    ("question", "status", "code"),
    [
        ({"by": ["city"]}, 422, "operator-refused"),
        ({"values": ["spread"]}, 422, "operator-refused"),
        ({"values": {"x": "sum(price)"}}, 422, "operator-refused"),
        ({"values": {"x": 3}}, 422, "wrong-shape"),
        ({"window": "2 h"}, 422, "operator-refused"),
        ({"groups": ["region"]}, 422, "wrong-shape"),
    ],
)
def test_a_wrong_question_is_a_422_that_names_the_member(pipeline, http, check_problem, question, status, code):
    answer = http.post("/v1/aggregates/failed/ask", json=question)
    check_problem(answer, status, code)
    assert next(iter(question)) in answer.text


def test_a_question_with_too_many_groups_is_a_422_that_names_the_member(pipeline, http, check_problem, monkeypatch):
    monkeypatch.setattr("aggregates.asking.totals.MOST_GROUPS", 2)
    events = [
        {"id": f"e{number}", "type": "Login", "time": "2025-12-31T10:00:00Z", "data": {"user": f"u{number}"}}
        for number in range(20)
    ]
    assert http.post("/v1/events?stream=logins", json=events).json()["rejected"] == []
    for headers in ({}, {"content-type": "application/json; charset=utf-8"}):  # directly, and by the framework
        answer = http.post("/v1/aggregates/failed/ask", content=b'{"by": ["user"]}', headers=JSON | headers)
        check_problem(answer, 422, "operator-refused")
        assert (answer.json()["field"], answer.json()["detail"][:42]) == (
            "by",
            "by: the answer has more than 2 groups; ask",
        )
    users = {"values": {"users": "distinct(user)"}}
    check_problem(answer := http.post("/v1/aggregates/failed/ask", json=users), 422, "operator-refused")
    assert answer.json()["field"] == "values.users"
    assert http.post("/v1/aggregates/failed/ask", json={"by": ["region"]}).json()["groups"] != []


def test_the_explanation_has_the_figures_of_the_index_and_asks_no_question(pipeline, http, monkeypatch):
    monkeypatch.setattr(operators, "_INDEX_WAIT_S", 60.0)
    events = [
        {"id": f"e{number}", "type": "Login", "time": "2025-12-31T10:00:00Z", "data": {"user": f"u{number % 9}"}}
        for number in range(49)
    ]
    assert http.post("/v1/events?stream=logins", json=events).json()["rejected"] == []
    for _ in range(3):
        http.post("/v1/aggregates/failed/ask", json={"where": {"user": "u1"}})
    first, again = (http.get("/v1/aggregates/failed/explanation").json()["indexes"] for _ in range(2))
    assert first == again
    assert [index["shard"] for index in first] == list(range(pipeline.log.shards()))
    assert sum(index["events"] for index in first) == 49
    for index in first:
        shares = {tuple(kind["where"]): kind["share"] for kind in index["asked_for"]}
        assert max(shares, key=lambda where: shares[where]) == ("user",)
        assert round(sum(shares.values()), 3) == 1
        assert (index["questions"], index["migrations"] >= 0, index["still_to_move"]) == (3, True, 0)
        assert index["partitions"] == 2 ** sum(index["configuration"].values())
        assert index["configuration"].keys() == index["best"].keys() == {"region", "user"}
        assert index["bytes"] >= index["column_bytes"] > 0
        assert index["chosen_by"] in ("eprune", "none", "polished")
        assert index["cost_ns"]["present"] >= index["cost_ns"]["best"] > 0


def test_an_aggregate_that_does_not_run_answers_nothing(http, check_problem):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    http.post("/v1/aggregates", json=FAILED)
    check_problem(http.post("/v1/aggregates/failed/ask", json={}), 503, "pipeline-not-running")
    assert http.get("/v1/aggregates/failed/explanation").json()["indexes"] == []
    http.post("/v1/aggregates/failed/pause")
    check_problem(http.post("/v1/aggregates/failed/ask", json={}), 400, "operator-not-running")
    check_problem(http.post("/v1/aggregates/nothing/ask", json={}), 404, "unknown-operator")


def test_questions_over_a_tap_are_taken_and_over_events_that_may_be_retracted_refused(http, check_problem):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    inputs = [{"stream": "logins", "as": "x"}, {"stream": "logins", "as": "y"}]
    join = {"name": "stopped", "window": "1 h", "inputs": inputs, "return": {"user": "x.user"}}
    asked = {**FAILED, "of": "stopped"}
    assert http.post("/v1/taps", json={"name": "stopped", "of": "logins", "results": "endings"}).status_code == 201
    assert http.post("/v1/aggregates", json=asked).status_code == 201
    check_problem(refused := http.post("/v1/joins", json={**join, "state": "draft"}), 400, "derivation-refused")
    assert "'ask' of the aggregate 'failed' needs events that are never retracted" in refused.json()["detail"]
    pattern = {"stream": "logins", "text": "PATTERN p EVENT A a INTO stopped"}
    check_problem(http.post("/v1/patterns", json=pattern), 400, "derivation-refused")
    assert http.delete("/v1/aggregates/failed").status_code == 204
    assert http.post("/v1/joins", json={**join, "state": "draft"}).status_code == 201
    check_problem(refused := http.post("/v1/aggregates", json=asked), 422, "operator-refused")
    assert refused.json()["field"] == "ask"


def test_values_over_time_are_plotted(http, stores, clock, check_problem):
    http.post("/v1/streams", json={"name": "logins", "key": "data.user"})
    http.post("/v1/aggregates", json=FAILED)
    assert "no values yet" in http.get("/v1/aggregates/failed/plot.svg").text
    data = {"user": "<ann>", "n": 101, "worst": 3, "spread": None}
    event = {"id": "d1", "stream": "logins", "into": "failed", "type": "failed", "time": "2026-01-01T00:00:01Z"}
    more = {"key": "ann", "data": data, "pattern": "failed", "version": 1, "source_key": "", "rekeyed": False}
    AlertSink(stores, clock)([sink_row(kind="derived", stream="logins", id="d1", body=orjson.dumps(event | more))], 1)
    answer = http.get("/v1/aggregates/failed/plot.svg")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (answer.text.count("&lt;ann&gt;"), "<ann>" in answer.text) == (2, False)
    draft = {**FAILED, "name": "later", "state": "draft"}
    assert http.post("/v1/aggregates", json=draft).status_code == 201
    assert "no values yet" in http.get("/v1/aggregates/later/plot.svg").text
    check_problem(http.get("/v1/aggregates/nothing/plot.svg"), 404, "unknown-operator")

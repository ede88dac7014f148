"""Open transactions, answered by the states of the shards."""

from threading import Event, Thread

import httpx
import pytest

from api import create_app
from pipeline.continuous.leases import begin_job
from pipeline.continuous.query import take_over
from pipeline.continuous.task import ShardTask, TaskOptions
from service import AlertSink
from service.processes.cluster import job_options
from shards import ShardState, StoredEntry
from streams import TASKS_JOB_KEY, Ask, log_key
from tests.builders.api import serving
from tests.builders.service import HandClock, settings_for
from tests.builders.waiting import PATIENCE_S, until

pytestmark = pytest.mark.redis


def match_until(stores, is_over):
    """What the pipeline does: shards read their logs, and the sink writes their rows."""
    states = {log_key(shard): ShardState(shard) for shard in range(stores.log.shards())}
    reached, sink = dict.fromkeys(states, "0-0"), AlertSink(stores, HandClock())
    while not is_over.is_set():
        for key, entries in stores.client.xread(reached, block=20):
            name = key.decode()
            reached[name] = entries[-1][0].decode()
            stored = [
                StoredEntry(
                    position=position.decode(),
                    kind=fields[b"kind"].decode(),
                    stream=fields[b"stream"].decode(),
                    body=fields[b"body"],
                    route=fields.get(b"route", b"").decode(),
                )
                for position, fields in entries
            ]
            sink(states[name].apply(stored), 0)


def hold_until(stores, settings, is_over):
    """What a continuous task does, without the indexer: it answers by itself."""
    options = take_over(job_options(settings, stores.log.layout.read(), stores.url, tasks=1))
    begin_job(stores.client, "job")
    task = ShardTask(TaskOptions(held=options.held, job="job", wait_ms=20))
    while not is_over.is_set():
        task.step()
    task.end()


def await_job(stores):
    """Wait until questions go to the task: until its job has begun they go through the log, which needs an indexer."""
    until(lambda: stores.client.exists(TASKS_JOB_KEY), "the job", pause_s=0.01)


@pytest.fixture(params=["log", "task"])
def pipeline(request, orders, stores, clock, settings, tmp_path):
    """A pipeline that runs."""
    stores.heartbeat.beat(clock.now_us())
    is_over = Event()
    if request.param == "log":
        thread = Thread(target=match_until, args=(stores, is_over))
    else:
        own = settings.model_copy(update={"data_dir": tmp_path})
        thread = Thread(target=hold_until, args=(stores, own, is_over))
    thread.start()
    if request.param == "task":
        await_job(stores)
    yield stores
    is_over.set()
    thread.join()


@pytest.fixture
def sent(orders):
    orders.post("/v1/constraints", json={"stream": "orders", "constraints": ["exclusive(B, C)", "prior(A, D)"]})
    for name, text in {"ab": "SEQ(A a, B b)", "ad": "SEQ(A a, X x, D d)"}.items():
        answer = orders.post("/v1/patterns", json={"stream": "orders", "text": f"PATTERN {name} EVENT {text}"})
        assert answer.status_code == 201
    seen = [("A", "k"), ("X", "k"), ("C", "k"), ("B", "bad"), ("C", "bad"), ("Q", "new")]
    events = [
        {"id": f"e{number}", "type": name, "time": f"2026-01-01T00:0{number}:00Z", "data": {"id": key}}
        for number, (name, key) in enumerate(seen)
    ]
    assert orders.post("/v1/events?stream=orders", json=events).json()["rejected"] == []


def listed(http, **query):
    answer = http.get("/v1/traces", params={"stream": "orders", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_open_transactions_are_told(pipeline, orders, sent):
    found = listed(orders)
    assert (found["stream"], found["open_count"], found["matching_count"], found["unnamed_count"]) == (
        "orders",
        3,
        3,
        0,
    )
    assert found["positions"].keys() == {str(shard) for shard in range(pipeline.log.shards())}
    assert found["time"] == "2026-01-01T00:05:00.000000Z"
    assert [(one["key"], one["events"], one["constraints_state"]) for one in found["items"]] == [
        ("k", 3, "kept"),
        ("bad", 2, "deviating"),
        ("new", 1, "kept"),
    ]
    assert found["counts_by_last_type"] == {"C": 2, "Q": 1}
    first = found["items"][0]
    assert (first["since"], first["newest"]) == ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:02:00.000000Z")
    assert (first["constraints_version"], first["may_follow"]["excluded_types"]) == (1, ["B"])
    patterns = {pattern["name"]: pattern for pattern in first["patterns"]}
    assert patterns["ab"]["state"] == "ended"
    assert "exclusive(B, C)" in patterns["ab"]["reason"]
    assert patterns["ad"]["furthest"] == {
        "since": "2026-01-01T00:00:00.000000Z",
        "bound": [
            {"alias": "a", "event": "e0", "time": "2026-01-01T00:00:00.000000Z"},
            {"alias": "x", "event": "e1", "time": "2026-01-01T00:01:00.000000Z"},
        ],
        "bound_events": 2,
        "waits_for": ["D d"],
        "more_waits_for": 0,
        "expires_at": None,
    }


def test_a_partial_match_says_how_many_steps_it_leaves_out(pipeline, orders):
    steps = ", ".join(f"T{number:02} t{number:02}" for number in range(12))
    text = f"PATTERN wide EVENT SEQ(A a, OR({steps}))"
    assert orders.post("/v1/patterns", json={"stream": "orders", "text": text}).status_code == 201
    event = {"id": "e", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}}
    assert orders.post("/v1/events?stream=orders", json=[event]).json()["rejected"] == []
    (furthest,) = [pattern["furthest"] for one in listed(orders)["items"] for pattern in one["patterns"]]
    assert (furthest["waits_for"], furthest["more_waits_for"]) == ([f"T{n:02} t{n:02}" for n in range(10)], 2)


def test_filters_choose(pipeline, orders, sent):
    def keys(**query):
        return [trace["key"] for trace in listed(orders, **query)["items"]]

    assert keys(pattern="ad") == keys(state="matching") == keys(key="k") == ["k"]
    assert keys(state="deviating") == ["bad"]
    assert keys(older_than="2min") == ["k"]
    assert keys(older_than="60", limit=1) == ["k"]
    assert listed(orders, limit=1)["matching_count"] == 3


def test_an_answer_is_not_kept(pipeline, orders, sent):
    listed(orders)
    listed(orders, key="k")
    assert pipeline.client.keys("forestall:answers:*") == []
    assert not any(pipeline.client.xlen(key) for key in pipeline.client.keys("forestall:log:*:questions"))


def test_both_endpoints_say_the_same_of_a_transaction(pipeline, orders, sent):
    (open_case,) = listed(orders, key="k")["items"]
    looked = orders.get("/v1/traces/orders/k").json()
    states = {pattern["name"]: pattern["state"] for pattern in looked["patterns"]}
    assert {pattern["name"]: pattern["state"] for pattern in open_case["patterns"]} == states
    may = [one["event_type"] for one in looked["following"] if one["is_possible"]]
    assert open_case["may_follow"]["possible_types"] == may
    assert (open_case["may_follow"]["more_types"], looked["more_types"]) == (0, 0)


def test_types_that_were_not_examined_are_counted(pipeline, orders, sent, monkeypatch):
    for place in ("shards.kinds.patterns.rules", "service.trials.traces"):
        monkeypatch.setattr(f"{place}._MOST_TYPES", 3)
    (open_case,) = listed(orders, key="k")["items"]
    looked = orders.get("/v1/traces/orders/k").json()
    may = open_case["may_follow"]
    assert len(may["possible_types"]) + len(may["excluded_types"]) == len(looked["following"]) == 3
    assert may["more_types"] == looked["more_types"] > 0
    assert open_case["events"] == looked["total_events"]


def test_without_a_pipeline_there_is_no_answer(orders, sent, check_problem):
    problem = check_problem(orders.get("/v1/traces?stream=orders"), 503, "pipeline-not-running")
    assert "GET /v1/ready" in problem["detail"]


def test_a_pipeline_that_is_too_slow_is_named(orders, server_url, stores, clock, check_problem):
    stores.heartbeat.beat(clock.now_us())
    app = create_app(settings_for(server_url, limits={"question_wait_s": 0.05}), clock)
    with serving(app) as url, httpx.Client(base_url=url, verify=False, timeout=PATIENCE_S) as http:
        problem = check_problem(http.get("/v1/traces?stream=orders"), 504, "answers-late")
    assert "FORESTALL_LIMITS__QUESTION_WAIT_S" in problem["detail"]
    (question,) = [entry for entry in stores.log.read_range(0) if entry.kind == Ask.KIND]
    assert question.stream == "orders"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("stream=nowhere", 404, "unknown-stream"),
        ("stream=orders&pattern=none", 404, "unknown-pattern"),
        ("stream=orders&older_than=long", 400, "case-filter-refused"),
        ("stream=orders&limit=0", 422, "wrong-shape"),
        ("stream=orders&state=shut", 422, "wrong-shape"),
        ("", 422, "wrong-shape"),
    ],
)
def test_wrong_questions_are_refused(orders, check_problem, query, status, code):
    check_problem(orders.get(f"/v1/traces?{query}"), status, code)


def test_a_key_for_other_streams_asks_nothing(orders, api_url, check_problem):
    assert orders.post("/v1/streams", json={"name": "other", "key": "data.id"}).status_code == 201
    token = orders.post("/v1/keys", json={"name": "k", "scopes": ["read"], "streams": ["other"]}).json()["token"]
    with httpx.Client(
        base_url=api_url, headers={"Authorization": f"Bearer {token}"}, verify=False, timeout=PATIENCE_S
    ) as stranger:
        check_problem(stranger.get("/v1/traces?stream=orders"), 403, "forbidden")

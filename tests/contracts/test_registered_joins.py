"""Joins through everything: registered over HTTP, run by the pipeline, listed; moved, changed and kept from cycles."""

from typing import Any

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from api import create_app
from pipeline.job import JobOptions, start_query
from pipeline.sources import EventLogOptions
from service import AlertSink, Stores
from service.cli.app import build_app
from service.cli.operators import operator_commands
from service.client import Client
from service.processes.timekeeper import Timekeeper
from service.projects import apply_plan, export_project, plan_project, read_project
from service.registering.operators import OperatorLibrary
from shards import RESULT_KINDS, OperatorRefused
from tests.builders.api import serving
from tests.builders.job import match_log
from tests.builders.service import HandClock, empty_client, settings_for

pytestmark = pytest.mark.redis

KEY = "a-key-for-tests"
PAID: dict[str, Any] = {
    "name": "paid",
    "inputs": [
        {"stream": "orders", "as": "o", "closed_by": "unique"},
        {"stream": "payments", "as": "p", "key": "order", "closed_by": {"type": "Last"}},
    ],
    "window": "1 h",
    "return": {"order": "id(o)", "payment": "id(p)", "amount": "p.amount"},
}
TOTALS: dict[str, Any] = {
    **PAID,
    "name": "totals",
    "emit": "on_close",
    "outer": ["p"],
    "return": {"order": "id(o)", "payments": "count(p)", "sum": "sum(p.amount)"},
    "memory": {"rows": 2, "spill": True},
}

HANDLED: dict[str, Any] = {
    "name": "handled",
    "inputs": [
        {"stream": "orders", "as": "o"},
        {"stream": "payments", "as": "first", "type": "Part", "key": "order"},
        {"stream": "payments", "as": "last", "type": "Last", "key": "order"},
    ],
    "window": "21 s",
    "outer": ["first", "last"],
    "return": {"order": "id(o)", "first": "id(first)", "last": "id(last)", "why": "decided_by(last)"},
}
"""The last payment of an order comes 21 s after it, when the order has left its window."""


@pytest.fixture(scope="module")
def settings(server_url):
    return settings_for(server_url, api_key=KEY, shards=3)


@pytest.fixture(scope="module")
def api_url(settings):
    with serving(create_app(settings, HandClock())) as url:
        yield url


@pytest.fixture
def stores(server_url, settings):
    with empty_client(server_url) as client:
        yield Stores(client, server_url, settings)


@pytest.fixture
def http(api_url, stores):
    """A client of a service that has orders, and payments by their own number and by that of the order."""
    with httpx.Client(base_url=api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=99, verify=False) as client:
        for declaration in (
            {"name": "orders", "key": "data.id", "mapping": {"data": "data"}},
            {"name": "payments", "key": "data.id", "keys": {"order": "data.order"}, "mapping": {"data": "data"}},
        ):
            assert client.post("/v1/streams", json=declaration).status_code == 201
        yield client


@pytest.fixture
def options(server_url, settings, tmp_path):
    log = EventLogOptions(redis_url=server_url, shards=settings.shards, snapshots=str(tmp_path / "saved"), wait_ms=20)
    return JobOptions(log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handed", is_bounded=True)


def time_at(second):
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def send_all(http, orders=12):
    """Some orders, each with two payments, the second of which is the last; returns what is paid by order."""
    placed = [{"id": f"o{n}", "type": "Order", "time": time_at(n), "data": {"id": f"k{n}"}} for n in range(orders)]
    paid = [
        {
            "id": f"p{n}-{part}",
            "type": "Last" if part else "Part",
            "time": time_at(n + 20 + part),
            "data": {"id": f"x{n}-{part}", "order": f"k{n}", "amount": n + part},
        }
        for n in range(orders)
        for part in (0, 1)
    ]
    for stream, events in (("orders", placed), ("payments", sorted(paid, key=lambda one: one["time"]))):
        answer = http.post(f"/v1/events?stream={stream}", json=events)
        assert answer.json()["accepted"] == len(events), answer.text
    return {f"o{n}": [n, n + 1] for n in range(orders)}


def pass_time(http):
    """Let an event of another key come in each stream, half an hour later."""
    for stream in ("orders", "payments"):
        event = {"id": "later", "type": "Other", "time": time_at(1_800), "data": {"id": f"of-{stream}"}}
        assert http.post(f"/v1/events?stream={stream}", json=[event]).json()["accepted"] == 1


def matched(http, stores, match):
    """Match until time has come for all inputs and everything that is derived has arrived."""
    pass_time(http)
    for _ in range(4):
        match()
        Timekeeper(stores).look()


def listed(http, stream):
    items = http.get("/v1/derived-events?limit=1000").json()["items"]
    return [one["data"] for one in items if one["into"] == stream]


def found_pairs(http):
    return sorted((one["order"], one["payment"], one["amount"]) for one in listed(http, "paid"))


def expected_pairs(paid):
    return sorted(
        (order, f"p{order[1:]}-{part}", amount)
        for order, amounts in paid.items()
        for part, amount in enumerate(amounts)
    )


def found_handled(http):
    return sorted(tuple(one.values()) for one in listed(http, "handled"))


def expected_handled(paid):
    return sorted((order, f"p{order[1:]}-0", None, "window") for order in paid)


def test_what_is_joined_is_listed(http, stores, options):
    for document in (PAID, TOTALS, HANDLED):
        answer = http.post("/v1/joins", json=document)
        assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/joins/{document['name']}")
    paid, inputs_with_averages = send_all(http), []

    def match():
        match_log(options, AlertSink(stores, HandClock()))
        sentences = http.get("/v1/joins/paid/explanation").json()["sentences"]
        inputs_with_averages.append([one.partition(":")[0] for one in sentences if "are held on average" in one])

    matched(http, stores, match)
    assert found_pairs(http) == expected_pairs(paid)
    totals = {one["order"]: (one["payments"], one["sum"]) for one in listed(http, "totals")}
    assert totals == {order: (2, sum(amounts)) for order, amounts in paid.items()}
    shown = http.get("/v1/joins/paid").json()
    assert [one["stream"] for one in shown["body"]["inputs"]] == ["orders", "payments"]
    assert listed(http, "paid.inputs") == []
    explained = http.get("/v1/joins/paid/explanation").json()
    assert explained["sentences"][0].startswith("PWJoin")
    assert explained["statistics"]["results"] == 24
    assert explained["statistics"]["violations"] == 0
    assert not [name for name in explained["statistics"] if ":" in name]
    assert ["o", "p"] in inputs_with_averages  # not in all: Spark may replace a process, which forgets averages
    assert http.get("/v1/joins/none/explanation").status_code == 404
    counted = http.get("/v1/joins/totals/explanation").json()["statistics"]
    assert counted["spill_writes"] >= counted["spill_reads"] > 0
    assert counted["stored"] - counted["spilled"] <= 3 * TOTALS["memory"]["rows"]
    assert found_handled(http) == expected_handled(paid)


@pytest.mark.spark
@pytest.mark.deep  # each day by tests/system/test_chaos.py, with a whole service
def test_spark_runs_joins(http, stores, options, spark):
    for document in (PAID, HANDLED):
        assert http.post("/v1/joins", json=document).status_code == 201
    paid = send_all(http, orders=4)
    matched(http, stores, lambda: start_query(spark, options, AlertSink(stores, HandClock())).wait())
    assert found_pairs(http) == expected_pairs(paid)
    assert found_handled(http) == expected_handled(paid)


def test_a_key_that_events_have_nowhere_else_takes_them_through_the_log(http, stores, options):
    inputs = [PAID["inputs"][0], {**PAID["inputs"][1], "key": "data.order_number", "closed_by": []}]
    assert http.post("/v1/joins", json={**PAID, "inputs": inputs}).status_code == 201
    events = [
        {"id": f"p{n}-0", "type": "Part", "time": time_at(n + 9), "data": {"id": f"x{n}", "order_number": f"k{n}"}}
        for n in range(5)
    ]
    placed = [{"id": f"o{n}", "type": "Order", "time": time_at(n), "data": {"id": f"k{n}"}} for n in range(5)]
    assert http.post("/v1/events?stream=orders", json=placed).json()["accepted"] == 5
    assert http.post("/v1/events?stream=payments", json=events).json()["accepted"] == 5
    matched(http, stores, lambda: match_log(options, AlertSink(stores, HandClock())))
    assert found_pairs(http) == [(f"o{n}", f"p{n}-0", None) for n in range(5)]
    assert listed(http, "paid.inputs") == []


def records(stores):
    """What the log of a shard says of operators, by the names of these."""
    entries = [entry for entry in stores.log.read_range(0) if entry.kind.value.startswith("operator")]
    return [(entry.kind.value.removeprefix("operator-"), entry.stream) for entry in entries]


def test_a_join_and_its_inputs_move_together(http, stores):
    streams = ["paid.inputs", "orders", *["payments"] * 2]  # by its further key, and those without one
    http.post("/v1/joins", json={**PAID, "state": "draft"})
    assert [one["name"] for one in http.get("/v1/streams").json()["items"]] == ["orders", "payments"]
    assert records(stores) == []
    assert http.post("/v1/joins/paid/activate").json()["state"] == "active"
    assert http.post("/v1/joins", json=PAID).status_code == 200
    assert stores.client.hgetall("forestall:routes") == {b"payments": b"order"}
    http.post("/v1/joins/paid/pause")
    assert stores.client.hgetall("forestall:routes") == {}
    http.post("/v1/joins/paid/resume")
    moved = {**PAID, "inputs": [{**PAID["inputs"][0], "stream": "payments", "key": "order"}, PAID["inputs"][1]]}
    refused = http.post("/v1/joins", json=moved)
    assert (refused.status_code, refused.json()["code"]) == (409, "operator-exists")
    assert "PUT /v1/joins/paid" in refused.json()["detail"]
    assert http.put("/v1/joins/other", json=moved).json()["code"] == "wrong-shape"
    assert http.put("/v1/joins/paid", json=moved).json()["version"] == 2
    assert http.post("/v1/joins/paid/retire").json()["state"] == "retired"
    assert records(stores) == [
        *(("on", stream) for stream in streams),
        *(("pause", stream) for stream in streams),
        *(("on", stream) for stream in streams),
        *[("on", "paid.inputs"), ("off", "orders"), *[("on", "payments")] * 4],
        *[("off", "paid.inputs"), *[("off", "payments")] * 4],
    ]
    assert http.delete("/v1/joins/paid").status_code == 204


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"window": "none"}, 422, "operator-refused"),
        ({"name": "orders"}, 409, "stream-not-derived"),
        ({"inputs": [{"stream": "nowhere", "as": "o"}, PAID["inputs"][1]]}, 404, "unknown-stream"),
        ({"stream": "orders"}, 422, "operator-refused"),
        ({"return": {"a": "z.b"}}, 422, "operator-refused"),
    ],
)
def test_what_cannot_run_is_refused(http, change, status, code):
    inputs = [{"stream": "orders", "as": "o"}, {"stream": "payments", "as": "p", "key": "order"}]
    answer = http.post("/v1/joins", json={**PAID, "inputs": inputs, **change})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert http.get("/v1/joins").json()["items"] == []


def test_a_bounded_memory_needs_a_folder(http, stores):
    library = OperatorLibrary(stores, HandClock(), can_spill=False)
    with pytest.raises(OperatorRefused, match="set FORESTALL_SNAPSHOTS to a folder that every machine reaches"):
        library.put("join", TOTALS)
    assert library.put("join", PAID)[1]


@pytest.mark.parametrize(
    ("changes", "is_in_redis"),
    [
        ({}, False),
        ({"snapshots": "redis"}, True),
        ({"spark_master": "spark://main:7077"}, True),
        ({"spark_master": "spark://main:7077", "snapshots": "/shared"}, False),
    ],
)
def test_where_states_are_kept(settings, changes, is_in_redis):
    changed = settings.model_copy(update={"spark_master": "local[2]", **changes})
    assert changed.keeps_states_in_redis is is_in_redis
    assert (changed.snapshot_place == "redis") is is_in_redis


def test_circles_are_refused_and_streams_in_use_stay(http):
    assert http.post("/v1/joins", json=PAID).status_code == 201
    back = {**PAID, "inputs": [{"stream": "paid", "as": "o"}, PAID["inputs"][1]]}
    refused = http.post("/v1/joins", json=back)
    assert (refused.status_code, refused.json()["code"]) == (400, "derivation-refused"), refused.text
    behind = {**PAID, "name": "behind", "inputs": [{"stream": "paid", "as": "o"}, PAID["inputs"][1]]}
    assert http.post("/v1/joins", json=behind).status_code == 201
    for stream in ("orders", "payments", "paid", "paid.inputs"):
        answer = http.delete(f"/v1/streams/{stream}?cascade=true")
        assert (answer.status_code, "the join paid" in answer.json()["detail"]) == (409, True), answer.text


def test_the_command_line_and_projects_have_joins(http, api_url, tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTALL_API_KEY", KEY)
    (tmp_path / "paid.yaml").write_text(httpx.Response(200, json=PAID).text, encoding="utf-8")
    added = CliRunner().invoke(
        operator_commands("join", "joins"), ["add", str(tmp_path / "paid.yaml"), "--url", api_url]
    )
    assert "paid: version 1 on paid.inputs, active" in added.output, added.output
    (tmp_path / "longer.yaml").write_text(httpx.Response(200, json={**PAID, "window": "3 h"}).text, encoding="utf-8")
    changed = CliRunner().invoke(
        operator_commands("join", "joins"), ["change", str(tmp_path / "longer.yaml"), "--url", api_url]
    )
    assert "paid: version 2 on paid.inputs, active" in changed.output, changed.output
    assert http.put("/v1/joins/paid", json=PAID).json()["version"] == 3
    with Client(api_url, KEY) as client:
        export_project(client, tmp_path / "exported")
        documents = read_project(tmp_path / "exported")
        assert not plan_project(client, documents, tmp_path / "exported", is_pruned=True).work
        http.delete("/v1/joins/paid")
        plan = plan_project(client, documents, tmp_path / "exported", is_pruned=False)
        assert [change.title for change in plan.work] == ["join paid"]
        apply_plan(client, plan, lambda change: None)
    assert http.get("/v1/joins/paid").json()["version"] == 4


def starts(stores):
    """How each version of the join began, as the log of a shard says."""
    entries = [entry for entry in stores.log.read_range(0) if entry.kind.value == "operator-on"]
    return [orjson.loads(entry.body)["start"] for entry in entries if entry.stream == "paid.inputs"]


def test_a_join_that_runs_changes_with_what_it_holds(http, stores, options, api_url, tmp_path, monkeypatch):
    monkeypatch.setenv("FORESTALL_API_KEY", KEY)
    sink, half = AlertSink(stores, HandClock()), time_at(10)
    http.post("/v1/joins", json=PAID)
    placed = {"id": "o1", "type": "Order", "time": time_at(1), "data": {"id": "k1"}}
    http.post("/v1/events?stream=orders", json=[placed])
    for stream in ("orders", "payments"):
        event = {"id": "half", "type": "Other", "time": half, "data": {"id": f"of-{stream}"}}
        http.post(f"/v1/events?stream={stream}", json=[event])
    for _ in range(3):
        match_log(options, sink)
        Timekeeper(stores).look()
    folder = tmp_path / "project"
    with Client(api_url, KEY) as client:
        export_project(client, folder)
        (document,) = [file for file in folder.rglob("*.yaml") if "kind: join" in file.read_text(encoding="utf-8")]
        text = document.read_text(encoding="utf-8")
        for old, new, effect in (
            ("window: 1 h", "window: 2 h", "it keeps the rows that it holds"),
            ("closed_by: unique", "type: Order", "it begins from nothing"),
        ):
            assert old in text
            document.write_text(text.replace(old, new), encoding="utf-8")
            plan = plan_project(client, read_project(folder), folder, is_pruned=False)
            assert [(change.title, change.effect) for change in plan.work] == [("join paid", effect)]
            told = CliRunner().invoke(build_app(), ["apply", str(folder), "--plan", "--url", api_url])
            assert f"~ join paid: changed; {effect}" in told.output, told.output
    changed = http.put(
        "/v1/joins/paid", json={**PAID, "window": "2 h", "return": {"order": "id(o)", "what": "id(p)"}}
    ).json()
    assert (changed["version"], changed["is_continued"]) == (2, True)
    paid = {"id": "p1", "type": "Part", "time": time_at(20), "data": {"id": "x1", "order": "k1", "amount": 3}}
    http.post("/v1/events?stream=payments", json=[paid])
    matched(http, stores, lambda: match_log(options, sink))
    assert listed(http, "paid") == [{"order": "o1", "what": "p1"}]
    explained = " ".join(http.get("/v1/joins/paid/explanation").json()["sentences"])
    assert "It has kept its state since version 1, which" in explained
    other = http.put("/v1/joins/paid", json={**PAID, "emit": "on_close", "return": {"n": "count(p)"}}).json()
    assert (other["version"], other["is_continued"]) == (3, False)
    http.post("/v1/joins/paid/pause")
    assert http.post("/v1/joins/paid/resume").json()["is_continued"] is False
    assert starts(stores) == ["fresh", "keep", "fresh", "fresh"]


def test_a_join_that_may_not_be_contradicted_is_suspended(http, stores, options, monkeypatch):
    sink = AlertSink(stores, HandClock())
    inputs = [{"stream": "orders", "as": "o"}, PAID["inputs"][1]]
    assert http.post("/v1/joins", json={**PAID, "inputs": inputs, "late": "fail"}).status_code == 201
    hook = http.post("/v1/webhooks", json={"url": "https://93.184.215.14/h"}).json()
    assert "join.suspended" in hook["kinds"], hook
    send_all(http, orders=4)
    late = {"id": "late", "type": "Part", "time": time_at(24), "data": {"id": "x9", "order": "k1", "amount": 0}}
    assert http.post("/v1/events?stream=payments", json=[late]).json()["accepted"] == 1
    matched(http, stores, lambda: match_log(options, sink))
    shown = http.get("/v1/joins/paid").json()
    assert shown["state"] == "suspended"
    said = {name: shown["suspension"][name] for name in ("event", "key", "source", "version")}
    assert said == {"event": "late", "key": "k1", "source": "payments", "version": 1}
    assert ("o1", "late", 0) not in found_pairs(http)
    assert records(stores)[4:] == [("pause", one) for one in ("paid.inputs", "orders", "payments", "payments")]
    (listed_one,) = http.get("/v1/joins/paid/results/join-suspensions").json()["items"]
    assert listed_one["id"] == shown["suspension"]["id"]
    assert set(listed_one) == RESULT_KINDS["join-suspension"].members
    assert 'forestall_operator_suspended{name="paid",operator="join"} 1' in http.get("/metrics").text
    assert "suspended" in http.get("/v1/joins/paid/explanation").json()["sentences"][-1]
    resumed = http.post("/v1/joins/paid/resume").json()
    assert (resumed["state"], resumed["version"], resumed["suspension"]) == ("active", 2, None)
    assert resumed["is_continued"] is False


def bounded(warnings: list[str]) -> list[str]:
    """The warnings but for the one about results that nothing bounds, which has tests of its own."""
    return [one for one in warnings if not one.startswith("Nothing bounds")]


def test_members_that_can_do_nothing_are_warnings(http: httpx.Client) -> None:
    inputs = [PAID["inputs"][0], {**PAID["inputs"][1], "retractions": "2 h", "closed_by": "punctuation"}]
    answer = http.post("/v1/joins", json={**PAID, "inputs": inputs}).json()
    assert ["takes posted events" in one for one in bounded(answer["warnings"])] == [True]
    assert http.get("/v1/joins/paid").json()["warnings"] == answer["warnings"]
    ranges = [{"range": {"to": 5}, "by": by} for by in ("order", "other")]
    warned = [http.post("/v1/streams/payments/punctuations", json=one).json()["warnings"] for one in ranges]
    assert warned[0] == []
    assert "no active join has an input of the stream 'payments' with the key 'other'" in warned[1][0]
    inputs = [{"stream": "orders", "as": "o", "closed_by": "workflow"}, {"stream": "payments", "as": "p"}]
    following = {**PAID, "name": "ruled", "inputs": inputs}
    assert "follows no workflow" in bounded(http.post("/v1/joins", json=following).json()["warnings"])[0]
    rule = {"stream": "orders", "constraints": [{"prior": ["A", "B"]}]}
    assert http.post("/v1/constraints", json=rule).is_success
    assert bounded(http.get("/v1/joins/ruled").json()["warnings"]) == []

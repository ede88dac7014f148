"""The whole service: real Redis, Spark, HTTP and webhooks; processes are killed and everything arrives once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from constraints import to_document
from house import ROOT
from nfa import parse_pattern
from service import Stores
from service.delivery.receiver import receiver
from service.processes.temporary import require_ready
from service.sending import send_events
from service.settings import Settings
from service.stores import connect
from streams import Event
from tests.builders.service import receiving
from tests.builders.shards import run_inline
from tests.builders.waiting import PATIENCE_S, until
from tests.references.patterns.outcome import reference_matches
from tests.references.runs import match_document
from workflows import (
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    derive_constraints,
    generate_events,
    order_fulfilment,
)

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "logs"
EP1 = """PATTERN EP1 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
                                   SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)"""
Q1 = "PATTERN Q1 EVENT SEQ(CheckInventory c, UseRemoteStock u, GenerateInvoice i [price > 200])"


def identity(alert: dict) -> tuple:
    return (
        alert["pattern"],
        alert["key"],
        tuple(sorted((alias, tuple(ids)) for alias, ids in alert["bindings"].items())),
    )


def alerts_of(service, stream: str) -> list[tuple]:
    return sorted(identity(alert) for alert in service.client.pages("/alerts", stream=stream))


def has_more_alerts(service, stream: str, seen: int) -> bool:
    return len(alerts_of(service, stream)) > seen


def orders(count: int, seed: int, prefix: str):
    stream = SimulationSettings(traces=count, concurrent=50, key_prefix=prefix)
    return list(generate_events(OrderWorkload(orders=OrderSettings(cancel=0.3), stream=stream), seed))


def expected_of(texts: list[str], events, end_events) -> list[tuple]:
    patterns = [parse_pattern(text) for text in texts]
    return sorted(identity(match_document(match)) for match in reference_matches(patterns, events, end_events))


def children_of(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += [int(folder.name)] if parent == str(pid) else []
    return found


def kill(service, what: str) -> None:
    if what == "redis":
        record = orjson.loads((service.supervisor.settings.data_dir / "redis" / "server.json").read_bytes())
        os.kill(record["pid"], signal.SIGKILL)
    elif what == "jvm":
        until(lambda: service.supervisor.pid("pipeline") and children_of(service.supervisor.pid("pipeline")), "the JVM")
        for pid in children_of(service.supervisor.pid("pipeline")):
            os.kill(pid, signal.SIGKILL)
    else:
        until(lambda: service.supervisor.pid(what), f"{what} to run")
        os.kill(service.supervisor.pid(what), signal.SIGKILL)


@pytest.fixture
def forestall(service, commands: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    environment = {**os.environ, "FORESTALL_API_KEY": service.api_key}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [str(commands / "forestall"), *arguments]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True)

    return run


def check_replay(service, forestall, log: Path, stream: str, pattern: Path) -> tuple[int, int]:
    """Replays a log and compares with ``forestall match``; returns how many events and matches there were."""
    service.client.post("/streams", {"name": stream})
    service.client.post("/patterns", {"stream": stream, "text": pattern.read_text()})
    sent = forestall("replay", str(log), "--stream", stream, "--url", service.url).stderr
    found = forestall("match", "--pattern", str(pattern), "--events", str(log), "--output", "json")
    expected = sorted(identity(match) for match in orjson.loads(found.stdout)["matches"])
    until(lambda: len(alerts_of(service, stream)) >= len(expected), "the alerts of the log", service)
    assert alerts_of(service, stream) == expected
    count = re.search(rf"^(\d+) of (\d+) events sent to {stream}$", sent, re.MULTILINE)
    assert count is not None, sent
    assert count[1] == count[2], sent
    return int(count[1]), len(expected)


def test_a_replayed_log_gives_the_alerts_of_match_on_the_same_file(service, forestall, tmp_path: Path) -> None:
    """Traces one after the other, as XES has them, overlapping in time, with ties."""
    time_text = '<date key="time:timestamp" value="2026-01-01T00:00:{:02}Z"/>'
    row = '<event><string key="concept:name" value="{}"/>' + time_text + "</event>"
    trace = '<trace><string key="concept:name" value="case {}"/>{}</trace>'
    cases = [[("ask", n), ("ask", n), ("answer it", n + 2), ("answer it", n + 2), ("close", n + 5)] for n in range(20)]
    traces = (trace.format(n, "".join(row.format(*event) for event in case)) for n, case in enumerate(cases))
    log = tmp_path / "made.xes"
    log.write_text(f'<?xml version="1.0"?><log>{"".join(traces)}</log>')
    pattern = tmp_path / "made.pattern"
    pattern.write_text("PATTERN made EVENT SEQ(ask a, `answer it` b, close c)")
    assert check_replay(service, forestall, log, "made", pattern) == (100, 80)


def test_a_join_of_too_many_results_is_suspended_while_alerts_of_another_stream_come(service) -> None:
    client, size = service.client, 1_500
    for name in ("left", "right", "beside"):
        client.post("/streams", {"name": name})
    inputs = [{"stream": name, "as": name[0]} for name in ("left", "right")]
    client.post("/joins", {"name": "product", "inputs": inputs, "window": "24 h", "return": {"l": "id(l)"}})
    client.post("/patterns", {"stream": "beside", "text": "PATTERN watch EVENT A a"})
    pipeline = service.supervisor.pid("pipeline")
    jvm, since = children_of(pipeline), client.get("/pipeline")["running_since"]
    for name in ("left", "right"):
        small = [Event(id=f"{name}{n}", type="T", time_us=n, key="unknown", data={}) for n in range(size)]
        send_events(client, name, small, f"all-{name}")
        send_events(client, "beside", [Event(id=f"a-{name}", type="A", time_us=1, key="k", data={})], f"a-{name}")
    until(lambda: client.get("/joins/product")["state"] == "suspended", "the suspension", service)
    send_events(client, "beside", [Event(id="a-after", type="A", time_us=2, key="k", data={})], "a-after")
    until(lambda: len(alerts_of(service, "beside")) == 3, "the alerts of the other stream", service)
    reason = client.get("/joins/product")["suspension"]["reason"]
    assert "results" in reason
    until(
        lambda: client.get("/pipeline")["backlog"]["waiting_volume"]["events"] == 0,
        "the pipeline to have matched all",
        service,
    )
    made = sum(one["count"] for one in client.get("/derived-events", limit=1)["counts"] if one["into"] == "product")
    assert 200_000 < made <= 20 * 2 * size + 200_000 + 10_000, "of 2,250,000 combinations"
    assert (service.supervisor.pid("pipeline"), children_of(pipeline)) == (pipeline, jvm)
    assert client.get("/pipeline")["running_since"] == since


def test_a_real_log_gives_the_alerts_of_match_on_the_same_file(service, forestall, tmp_path: Path) -> None:
    log = LOGS / "receipt.xes.gz"
    if not log.exists():
        pytest.skip(f"shared data absent: {log} (issue #2)")
    pattern = tmp_path / "receipt.pattern"
    pattern.write_text(
        "PATTERN receipt EVENT SEQ(`Confirmation of receipt` a, "
        "AND(`T06 Determine necessity of stop advice` b, `T04 Determine confirmation of receipt` c), "
        "`T10 Determine necessity to stop indication` d [`org:group` != 'EMPTY'])"
    )
    events, matches = check_replay(service, forestall, log, "receipt", pattern)
    assert events == 8_577
    assert matches > 500


def test_a_pattern_starts_at_its_place_and_the_log_gives_the_same_alerts_again(service) -> None:
    first, second = EP1.replace("EP1", "EP1m"), Q1.replace("Q1", "Q1m")
    constraint_set = derive_constraints(order_fulfilment())
    ends = constraint_set.end_events
    service.client.post("/streams", {"name": "midway", "end_events": sorted(ends)})
    service.client.post("/constraints", {"stream": "midway", **to_document(constraint_set)})
    service.client.post("/patterns", {"stream": "midway", "text": first})
    events = orders(60, seed=5, prefix="midway-")
    half = len(events) // 2
    send_events(service.client, "midway", events[:half], "first-half")
    service.client.post("/patterns", {"stream": "midway", "text": second})
    send_events(service.client, "midway", events[half:], "second-half")
    of_half = expected_of([second], events[half:], ends)
    late = [match for match in expected_of([second], events, ends) if match in of_half]
    expected = sorted(expected_of([first], events, ends) + late)
    assert 0 < len(late) < len(expected_of([second], events, ends))
    until(lambda: len(alerts_of(service, "midway")) >= len(expected), "the alerts", service)
    assert alerts_of(service, "midway") == expected
    found = sorted(alert["id"] for alert in service.client.pages("/alerts", stream="midway"))
    assert replayed(service, "midway") == found


def replayed(service, stream: str) -> list[str]:
    """Ids of the alerts and dead letters of a stream when the log is read once more."""
    settings = Settings(redis_url=service.supervisor.redis_url)
    with connect(service.supervisor.redis_url) as client:
        log = Stores(client, service.supervisor.redis_url, settings).log
        rows = run_inline({shard: list(log.read_range(shard)) for shard in range(log.shards())})
    return sorted(row.id for row in rows if row.kind in ("alert", "dead-letter") and row.stream == stream)


def test_a_measured_lateness_follows_the_events_and_the_log_gives_the_same_results_again(service) -> None:
    service.client.post("/streams", {"name": "measured", "lateness": {"auto": {"start": 1}}})
    service.client.post("/patterns", {"stream": "measured", "text": "PATTERN pair EVENT SEQ(A a, U u)"})
    arrivals = sorted((number + number * 17 % 40, number) for number in range(600))
    events = [
        Event(id=f"m{number}", type="AU"[number % 2], time_us=number * 1_000_000, key=f"m{number // 4}", data={})
        for _, number in arrivals
    ]
    send_events(service.client, "measured", events[:300], "first-half")
    until(lambda: service.client.get("/streams/measured")["measured_lateness"]["bound_s"] > 20, "the bound", service)
    send_events(service.client, "measured", events[300:], "second-half")
    found = ("/alerts", "/dead-letters")
    until(
        lambda: (
            replayed(service, "measured")
            == sorted(one["id"] for path in found for one in service.client.pages(path, stream="measured"))
        ),
        "what a replay of the log gives",
        service,
    )
    measured = service.client.get("/streams/measured")["measured_lateness"]
    assert measured["total_changes"] == len(measured["changes"]) >= 1
    assert {"measured"} <= {alert["stream"] for alert in service.client.pages("/alerts", stream="measured")}
    assert service.client.get("/streams/measured")["lateness"]["start_s"] == 1


def test_a_workflow_that_is_followed_exactly_loses_no_alert(service) -> None:
    model = (ROOT / "docs" / "examples" / "order.yaml").read_text(encoding="utf-8")
    ends = derive_constraints(order_fulfilment()).end_events
    service.client.post("/streams", {"name": "followed", "end_events": sorted(ends)})
    upload = {"format": "tree", "content": model, "stream": "followed", "mode": "exact"}
    (follower,) = service.client.put("/workflows/order", upload)["streams"]
    assert (follower["used"], follower["notices"]) == ("exact", [])
    texts = [EP1.replace("EP1", "EP1f"), Q1.replace("Q1", "Q1f")]
    for text in texts:
        service.client.post("/patterns", {"stream": "followed", "text": text})
    events = orders(60, seed=6, prefix="followed-")
    expected = expected_of(texts, events, ends)
    stray = [replace(event, id="stray", key="stray") for event in events if event.type == "ShipOrder"][:1]
    send_events(service.client, "followed", [*events, *stray], "followed")
    until(lambda: len(alerts_of(service, "followed")) >= len(expected), "the alerts", service)
    until(lambda: service.client.get("/deviations", stream="followed")["items"], "the deviation", service)
    assert alerts_of(service, "followed") == expected
    assert len(expected) > 20
    (deviation,) = service.client.get("/deviations", stream="followed")["items"]
    assert (deviation["event"], deviation["kind"], deviation["allowed"]) == ("stray", "workflow", ["ReceiveOrder"])
    assert service.client.get("/endings", stream="followed")["items"]


def test_a_traced_request_is_followed_to_the_receiver_of_its_alert(service, collector) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01", "authorization": f"Bearer {service.api_key}"}

    def span_names() -> set[str]:
        requests = map(ExportTraceServiceRequest.FromString, collector.bodies)
        scopes = [scope for one in requests for source in one.resource_spans for scope in source.scope_spans]
        return {span.name.partition(" ")[0] for scope in scopes for span in scope.spans if span.trace_id.hex() == trace}

    with receiving() as hook:
        service.client.post("/streams", {"name": "traced"})
        service.client.post("/patterns", {"stream": "traced", "text": "PATTERN first EVENT A a"})
        service.client.post("/webhooks", {"url": hook.url, "stream": "traced"})
        sent = [{"id": "t1", "type": "A", "time": "2026-01-01T09:00:00Z", "key": "k"}]
        answer = httpx.post(f"{service.url}/v1/events?stream=traced", json=sent, headers=headers, timeout=PATIENCE_S)
        assert answer.json()["accepted"] == 1
        until(lambda: hook.received, "the webhook", service)
        until(lambda: span_names() == {"POST", "alert", "webhook"}, "the spans", service)
    ((received, _),) = hook.received
    assert received["traceparent"].split("-")[1] == trace


@pytest.mark.deep  # each day by test_chaos.py, which kills each kind of process
def test_killed_processes_lose_no_event_and_repeat_no_alert(service) -> None:
    constraint_set = derive_constraints(order_fulfilment())
    ends = constraint_set.end_events
    events = orders(300, seed=11, prefix="chaos-")
    expected = expected_of([EP1.replace("EP1", "EP1c"), Q1.replace("Q1", "Q1c")], events, ends)
    victims = {4: "api", 7: "pipeline", 10: "redis", 13: "jvm", 16: "deliverer", 19: "redis", 22: "pipeline", 25: "api"}
    with receiver() as (url, received):
        service.client.post("/streams", {"name": "chaos", "end_events": sorted(ends)})
        service.client.post("/constraints", {"stream": "chaos", **to_document(constraint_set)})
        for text in (EP1.replace("EP1", "EP1c"), Q1.replace("Q1", "Q1c")):
            service.client.post("/patterns", {"stream": "chaos", "text": text})
        received.secret = service.client.post("/webhooks", {"url": url, "stream": "chaos"})["secret"]
        seen = -1
        for number, start in enumerate(range(0, len(events), 200)):
            answer = send_events(service.client, "chaos", events[start : start + 200], f"chaos-{start}")
            assert answer["rejected"] == []
            if number in victims:  # what was sent since the last kill has alerts, whatever had come before it
                until(partial(has_more_alerts, service, "chaos", seen), "alerts after the kill")
                seen = len(alerts_of(service, "chaos"))
                kill(service, victims[number])
        until(lambda: len(alerts_of(service, "chaos")) >= len(expected), "the alerts")
        until(lambda: len(received.alerts) >= len(expected), "the webhooks")
    require_ready(service.client, service.supervisor)
    found = list(service.client.pages("/alerts", stream="chaos"))
    assert len(expected) > 100
    assert sorted(map(identity, found)) == expected
    assert len({alert["id"] for alert in found}) == len(found)
    assert sorted(map(identity, received.alerts.values())) == expected
    assert received.refused == 0

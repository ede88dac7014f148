"""Versions of tables and calendars take effect at their place of the log, although the pipeline is killed around it."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.processes.temporary import TemporaryService, require_ready
from service.sending import send_events
from streams import Event, parse_time, render_plain
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

PHASES = 3
WEEK_US = 7 * 86_400_000_000
START_US = parse_time("2026-03-09T00:00:00Z")  # a Monday; clocks change at the end of the third week
WHO = [f"w{number}" for number in range(40)]
OVER = """PATTERN versioned_over
EVENT A a [v > lookup(versioned_limits, who).most]
RETURN lookup(versioned_limits, a.who).most AS most, a.v AS v"""
UNANSWERED = """PATTERN versioned_unanswered
EVENT SEQ(Opened o, NOT Reply)
WITHIN 2 business days OF versioned_office
RETURN o.who AS who"""
STREAMS = {"versioned_orders": OVER, "versioned_tickets": UNANSWERED}


def orders_of(phase: int) -> list[Event]:
    rng = random.Random(phase)
    return [
        Event(
            id=f"a{phase}-{number}",
            type="A",
            time_us=START_US + (phase * 1_000 + number) * 1_000_000,
            key=(who := rng.choice(WHO)),
            data={"who": who, "v": rng.randrange(100)},
        )
        for number in range(600)
    ]


def tickets_of(phase: int) -> list[Event]:
    """Tickets that are opened in the week of a phase; most are answered within a week, all are closed at the end."""
    rng, events = random.Random(phase), list[Event]()
    for number in range(120):
        opened_us = START_US + phase * WEEK_US + rng.randrange(WEEK_US)
        times = {"Opened": opened_us, "Closed": START_US + (PHASES + 3) * WEEK_US}
        if rng.random() < 0.8:
            times["Reply"] = opened_us + rng.randrange(WEEK_US)
        who = f"t{phase}-{number}"
        events += [
            Event(id=f"{who}-{name}", type=name, time_us=at, key=who, data={"who": who}) for name, at in times.items()
        ]
    return sorted(events, key=lambda event: event.time_us)


def calendar_of(phase: int) -> dict[str, Any]:
    """Hours of a calendar, with every second day closed at random."""
    rng = random.Random(phase)
    days = [f"2026-{month:02}-{day:02}" for month in (3, 4) for day in range(1, 31)]
    closed = dict.fromkeys(rng.sample(days, len(days) // 2), "closed")
    return {"zone": "Europe/Berlin", "years": [2026, 2026], "hours": {"mon-fri": "09:00-17:00"}, "exceptions": closed}


def limits_of(phase: int) -> dict[str, int]:
    """Limits by name; in phase 2 those of phase 1, except for one row."""
    if phase == 2:
        return {**limits_of(1), WHO[0]: 3}
    rng = random.Random(phase)
    return {who: rng.randrange(100) for who in WHO if rng.random() < 0.8 or who == WHO[0]}


def alert_of(found: dict[str, Any]) -> bytes:
    members = ("pattern", "key", "detected_at", "bindings", "returns")
    return orjson.dumps({name: found[name] for name in members}, option=orjson.OPT_SORT_KEYS)


def expected_of(phase: int, folder: Path, forestall: Callable[..., str]) -> list[bytes]:
    """The alerts of the orders and of the tickets of one phase, with its versions of the table and of the calendar."""
    documents: list[dict[str, Any]] = [
        {"kind": "table", "name": "versioned_limits", "key": "who", "file": "limits.csv"},
        {"kind": "calendar", "name": "versioned_office", **calendar_of(phase)},
    ]
    words: list[str | Path] = []
    for (stream, text), events in zip(STREAMS.items(), (orders_of(phase), tickets_of(phase)), strict=True):
        documents.append({"kind": "stream", "name": stream, "key": "data.who"})
        documents.append({"kind": "pattern", "name": text.split()[1], "stream": stream, "text": text})
        path = folder.parent / f"{stream}{phase}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(render_plain(event)) + b"\n" for event in events))
        words += ["--events", f"{stream}={path}"]
    (folder / "rules.yaml").write_bytes(b"\n---\n".join(orjson.dumps(one) for one in documents))
    return [alert_of(one) for one in orjson.loads(forestall("run", folder, *words, "--output", "json"))["alerts"]]


def alerts_of(service: TemporaryService) -> list[bytes]:
    return sorted(alert_of(one) for stream in STREAMS for one in service.client.pages("/alerts", stream=stream))


def await_alerts(service: TemporaryService, count: int) -> list[bytes]:
    return until(lambda: found if len(found := alerts_of(service)) >= count else None, f"{count} alerts", service, 0.5)


def kill_pipeline(service: TemporaryService) -> None:
    os.kill(until(lambda: service.supervisor.pid("pipeline"), "the pipeline to be started again"), signal.SIGKILL)


def send(service: TemporaryService, stream: str, events: Sequence[Event], name: str) -> None:
    assert send_events(service.client, stream, events, f"{stream}-{name}")["rejected"] == []


def test_killed_pipelines_read_each_event_with_the_versions_of_its_place(
    service: TemporaryService, commands: Path, tmp_path: Path
) -> None:
    def forestall(*words: str | Path) -> str:
        environment = {**os.environ, "FORESTALL_API_KEY": service.api_key}
        line = [commands / "forestall", *words]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tickets = sorted((one for phase in range(PHASES) for one in tickets_of(phase)), key=lambda one: one.time_us)
    expected, emitted = list[bytes](), 0
    for phase in range(PHASES):
        (folder := tmp_path / f"phase{phase}").mkdir()
        with (folder / "limits.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("who", "most"), *limits_of(phase).items()])
        expected += expected_of(phase, folder, forestall)
        if phase == 2:
            service.client.put("/tables/versioned_limits/rows", {"most": limits_of(phase)[WHO[0]]}, key=WHO[0])
        else:
            forestall("tables", "add", "versioned_limits", folder / "limits.csv", "--key", "who", "--url", service.url)
        (folder / "office.json").write_bytes(orjson.dumps(calendar_of(phase)))
        forestall("calendars", "add", "versioned_office", folder / "office.json", "--url", service.url)
        if phase == 0:
            for stream, text in STREAMS.items():
                service.client.post("/streams", {"name": stream, "key": "data.who"})
                service.client.post("/patterns", {"stream": stream, "text": text})
        week = [one for one in tickets if (one.time_us - START_US) // WEEK_US == phase]
        send(service, "versioned_tickets", week, str(phase))
        send(service, "versioned_orders", orders_of(phase), str(phase))
        if phase % 2 == 0:  # killed while alerts are emitted; in other phases before or after
            emitted = len(await_alerts(service, emitted + 1))
        kill_pipeline(service)
    send(service, "versioned_tickets", [one for one in tickets if one.time_us >= START_US + PHASES * WEEK_US], "end")
    require_ready(service.client, service.supervisor)
    assert await_alerts(service, len(expected)) == sorted(expected)
    assert sum(b"versioned_over" in one for one in expected) > 300
    assert sum(b"versioned_unanswered" in one for one in expected) > 100

"""A running service, with files replayed in turn, gives the results of ``forestall run``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag
from typing import Any

import orjson
import pytest

from service.processes.temporary import TemporaryService
from tests.builders.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]

BOTH = "for the first event of hourly_payments and of hourly_shipments"
STREAMS = {"hourly_orders": "Order", "hourly_payments": "Paid", "hourly_shipments": "Shipped"}
DECLARED = "---\n".join(
    f"kind: stream\nname: {name}\nkey: data.nr\n{'lateness: 5' if name == 'hourly_payments' else ''}\n"
    for name in STREAMS
)
PROJECT = f"""{DECLARED}---
kind: join
name: fulfilled
inputs:
  - {{stream: hourly_orders, as: o, key: data.order}}
  - {{stream: hourly_payments, as: p, key: data.order}}
  - {{stream: hourly_shipments, as: s, key: data.order}}
window: 48 h
outer: [s]
return: {{order: o.order, paid: id(p), shipped: id(s)}}
---
kind: pattern
name: not_shipped
stream: fulfilled
text: "PATTERN not_shipped EVENT fulfilled f [shipped IS NULL]"
"""


@pytest.fixture
def forestall(service: TemporaryService, commands: Path) -> Callable[..., str]:
    def run(*arguments: str, status: int = 0, is_remote: bool = True) -> str:
        environment = {**os.environ, "FORESTALL_API_KEY": service.api_key}
        where = ["--url", service.url] if is_remote else []
        words = [str(commands / "forestall"), *arguments, *where]
        found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == status, found.stderr
        return found.stdout

    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Forty orders, an hour apart, paid an hour later; every fourth is not shipped. Behind the last all has passed."""
    found = {}
    for place, (name, event_type) in enumerate(STREAMS.items()):
        rows = [(number, number + place) for number in range(40) if name != "hourly_shipments" or number % 4]
        rows.append((1_000, 500 + place))
        lines = [
            orjson.dumps(
                {
                    "id": f"{name}-{number}",
                    "type": event_type,
                    "time": f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:00Z",
                    "key": f"{name}-{number}",
                    "data": {"nr": f"{name}-{number}", "order": number},
                }
            )
            for number, hour in rows
        ]
        found[name] = tmp_path / f"{name}.jsonl"
        found[name].write_bytes(b"\n".join(lines))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "project.yaml").write_text(PROJECT)
    return found


def derived(service: TemporaryService) -> list[tuple[str, str, Any]]:
    """What has become of orders, but for the last."""
    found = [(one["id"], one["time"], one["data"]) for one in service.client.pages("/streams/fulfilled/events")]
    return sorted(one for one in found if one[2]["order"] != 1_000)


def test_files_one_after_the_other_give_what_run_gives(
    service: TemporaryService, forestall: Callable[..., str], files: dict[str, Path], tmp_path: Path
) -> None:
    rules = str(tmp_path / "rules")
    given = [part for name, path in files.items() for part in ("--events", f"{name}={path}")]
    ran = orjson.loads(forestall("run", rules, *given, "--output", "json", is_remote=False))
    expected = sorted(
        (one["id"], one["time"], one["data"]) for one in ran["streams"]["fulfilled"] if one["data"]["order"] != 1_000
    )
    assert sum(data["shipped"] is None for *_, data in expected) == 10
    forestall("apply", rules)

    for name, path in files.items():
        forestall("replay", str(path), "--stream", name)
        Flag().wait(2.5)  # time enough for ticks of the clock
        if name == "hourly_orders":
            until(lambda: BOTH in forestall("status", "--over", "0"), "the join to say what it waits for", service)
    until(lambda: len(derived(service)) >= len(expected), "the orders", service)
    assert derived(service) == expected
    assert late(service, "fulfilled.inputs") == 0


def stream_of(service: TemporaryService, name: str) -> dict[str, Any]:
    return next((one for one in service.client.get("/pipeline")["streams"] if one["name"] == name), {})


def late(service: TemporaryService, name: str) -> int:
    return sum(stream_of(service, name).get("late_events", {}).values())

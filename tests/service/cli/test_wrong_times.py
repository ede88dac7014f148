"""A stream whose time was moved by an event from the future begins again, as the page about event time says."""

from __future__ import annotations

import re
import shlex

import orjson
import pytest

from api import create_app
from house import ROOT
from pipeline.sources.log_reader import log_ends
from service import AlertSink
from service.client import Client
from service.processes import timekeeper
from service.processes.cluster import job_options
from service.processes.timekeeper import Timekeeper
from tests.builders.api import serving
from tests.builders.job import match_log
from tests.builders.service import settings_for

pytestmark = [pytest.mark.redis, pytest.mark.slow]

TEXT = (ROOT / "docs" / "event-time.md").read_text(encoding="utf-8")
PROJECT = """
kind: stream
name: orders
key: data.nr
lateness: 5
max_ahead: none
---
{kind: stream, name: payments, key: data.nr, max_ahead: none}
---
kind: join
name: paid
inputs:
  - {stream: orders, as: o, key: data.order}
  - {stream: payments, as: p, key: data.order}
window: 48 h
outer: [p]
return: {order: o.order, paid: id(p)}
---
kind: pattern
name: unpaid
stream: paid
text: "PATTERN unpaid EVENT paid f [paid IS NULL]"
"""


def lines(stream, seconds):
    for number in seconds:
        time = f"2026-01-{1 + number:02}T00:00:00Z"
        data = {"nr": f"{stream}-{number}", "order": number}
        yield orjson.dumps(
            {"id": f"{stream}-{number}", "type": "A", "time": time, "key": data["nr"], "data": data}
        ).decode()


def data_of(events):
    return sorted((one["data"]["order"], one["data"]["paid"]) for one in events)


@pytest.fixture
def service(client, server_url, stores, clock, tmp_path, monkeypatch):
    """Runs what a service does until nothing is left to do, and returns the derived events and the late ones."""
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    settings = settings_for(server_url, data_dir=tmp_path / "data", shards=3)
    options, keeper = job_options(settings, stores.log.layout.read(), stores.url, tasks=1), Timekeeper(stores)

    def settle():
        ends = None
        while ends != (ends := log_ends(options.log)):
            keeper.look()
            match_log(options, AlertSink(stores, clock))

    with serving(create_app(settings)) as url:
        yield settle, url


def test_a_stream_with_a_wrong_time_begins_again(service, call, stores, tmp_path):
    settle, url = service

    def forestall(*arguments, status=0):
        found, out, err = call(*arguments, "--url", url)
        assert found == status, err
        return out + err

    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "project.yaml").write_text(PROJECT)
    for name, days in (("orders", range(20)), ("payments", (0, 1, 3, 4, 19))):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines(name, days)))
    given = [part for name in ("orders", "payments") for part in ("--events", f"{name}={name}.jsonl")]
    _, out, _ = call("run", "rules", *given, "--output", "json")
    expected = data_of(orjson.loads(out)["streams"]["paid"])
    assert sum(paid is None for _, paid in expected) == 15
    forestall("apply", "rules")
    (tmp_path / "rules").rename(tmp_path / "first")
    (tmp_path / "far.jsonl").write_text(next(lines("far", [0])).replace("2026-01-01", "9999-12-31"))
    for name in ("orders", "payments"):
        forestall("replay", "far.jsonl", "--stream", name)
    settle()
    forestall("replay", *given)
    settle()
    with Client(url) as api:
        late = {one["name"]: sum(one["late_events"].values()) for one in api.get("/pipeline")["streams"]}
        assert (late["orders"], data_of(api.pages("/streams/paid/events"))) == (20, [])

        (page,) = re.findall(r"(?s)```bash\n(forestall streams show orders.*?)```", TEXT)
        commands = [shlex.split(line, comments=True)[1:] for line in page.splitlines()]
        assert commands[-1][0] == "replay"
        for command in commands[:-1]:
            forestall(*command, *(("--yes",) if command[:2] == ["streams", "delete"] else ()))
            if command[0] == "export":
                for path in (tmp_path / "rules").rglob("*.yaml"):
                    path.write_text(path.read_text().replace("max_ahead: none\n", ""))
        assert "ahead of the clock" in forestall("replay", "far.jsonl", "--stream", "orders", status=1)
        forestall("replay", *given)
        for name in ("orders", "payments"):
            forestall("streams", "punctuate", name, "--before", "2026-02-01T00:00:00Z")
        settle()
        late = {one["name"]: sum(one["late_events"].values()) for one in api.get("/pipeline")["streams"]}
        assert (late, data_of(api.pages("/streams/paid/events"))) == (dict.fromkeys(late, 0), expected)
        assert len(list(api.pages("/alerts"))) == 15

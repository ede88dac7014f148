"""Processes are killed while events of several streams are joined; the long form is ``benchmarks/join_chaos.py``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from benchmarks.join_chaos import DERIVED, WEBHOOKS, Joins
from benchmarks.pipeline_chaos import SETTINGS, Plan, disturbed
from service.processes.temporary import running
from service.testing import receiving

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]


def test_random_kills_lose_nothing_that_is_joined_and_find_nothing_twice(tmp_path: Path) -> None:
    plan = Plan(events=4_000, kills=3, pause_s=1.0, kinds=["worker", "redis", "driver"])
    with receiving() as receiver, running(tmp_path / "service", more=SETTINGS) as service:
        outcome = disturbed(service, plan, case=Joins(tmp_path / "project", receiver))
        counted = {one["id"]: one["data"] for one in service.client.pages("/derived-events") if one["into"] == "sold"}
    assert outcome.faults == []
    assert outcome.killed == {"worker": 1, "redis": 1, "driver": 1}
    joined = Counter(text.split()[0] for text in outcome.others[DERIVED][1])
    assert all(joined[stream] > 200 for stream in ("paid", "delivered", "totals", "sold", "customers"))
    assert len(outcome.expected) > 500
    assert len(outcome.others[WEBHOOKS][0]) == joined["sold"]
    sent = {body["id"]: body["data"] for body in map(orjson.loads, receiver.bodies)}
    assert sent == counted

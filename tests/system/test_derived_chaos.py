"""Processes are killed while events cross two keys; the long form is ``benchmarks/derived_chaos.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.derived_chaos import Chain
from benchmarks.pipeline_chaos import SETTINGS, Plan, disturbed
from service.processes.temporary import running

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]


def test_random_kills_lose_no_derived_event_and_make_none_twice(tmp_path: Path) -> None:
    with running(tmp_path, more=SETTINGS) as service:
        plan = Plan(events=4_000, kills=3, pause_s=1.0, kinds=["worker", "redis", "driver"])
        outcome = disturbed(service, plan, case=Chain())
    assert outcome.faults == []
    assert outcome.killed == {"worker": 1, "redis": 1, "driver": 1}
    assert len(outcome.expected) > 2_000

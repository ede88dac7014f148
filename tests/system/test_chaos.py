"""Each kind of process is killed once at a random moment; the long form is ``benchmarks/pipeline_chaos.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pipeline_chaos import SETTINGS, VICTIMS, Plan, disturbed
from service.processes.temporary import running

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow, pytest.mark.lengthy]


def test_random_kills_lose_nothing_and_tell_nothing_twice(tmp_path: Path) -> None:
    with running(tmp_path, more=SETTINGS) as service:
        outcome = disturbed(service, Plan(events=12_000, kills=len(VICTIMS), pause_s=1.0))
    assert outcome.faults == []
    assert outcome.killed == dict.fromkeys(VICTIMS, 1)
    assert len(outcome.expected) > 300
    assert len(outcome.expected_endings) > 1_000  # more than a page


def test_killed_workers_do_not_restart_the_pipeline(tmp_path: Path) -> None:
    with running(tmp_path, more=SETTINGS) as service:
        outcome = disturbed(service, Plan(events=12_000, kills=6, pause_s=1.0, kinds=["worker"]))
    assert outcome.faults == []
    assert outcome.killed == {"worker": 6}
    assert outcome.starts["pipeline"] == 1

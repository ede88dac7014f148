"""Each kind of process is killed once at a random moment; the long form is ``benchmarks/pipeline_chaos.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pipeline_chaos import VICTIMS, Plan, disturbed
from service.temporary import running

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]


def test_random_kills_lose_no_event_and_repeat_no_alert(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        outcome = disturbed(service, Plan(events=8_000, kills=len(VICTIMS), pause_s=1.0))
    assert outcome.faults == []
    assert set(outcome.killed) == set(VICTIMS)
    assert len(outcome.expected) > 200
    assert outcome.found_endings

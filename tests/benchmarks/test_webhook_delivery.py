"""The short form of the webhook benchmark, and what it calls a fault."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.webhook_delivery import Outcome, Plan, run


@pytest.mark.redis
def test_hundreds_of_deliveries_outlive_a_bad_receiver_and_a_kill(tmp_path: Path) -> None:
    plan = Plan(deliveries=300, timeout_s=2, lease_margin_s=5)
    outcome = run(plan, tmp_path)
    assert outcome.faults == []
    assert outcome.taken.keys() == outcome.expected
    assert set(outcome.failures) == {"500", "reset", "silence"}


@pytest.mark.parametrize(
    ("taken", "on_the_way", "faults"),
    [
        ({"a": 1, "b": 1}, set(), []),
        ({"a": 1}, set(), ["1 lost"]),
        ({"a": 2, "b": 1}, {"a"}, []),
        ({"a": 2, "b": 2}, {"a"}, ["1 sent again after success without a reason"]),
        ({"a": 1, "b": 1, "c": 1}, set(), ["1 that should not be"]),
    ],
)
def test_what_is_lost_or_repeated_is_a_fault(taken: dict[str, int], on_the_way: set[str], faults: list[str]) -> None:
    outcome = Outcome(
        expected={"a", "b"},
        taken=Counter(taken),
        failures=Counter(),
        unsigned=0,
        on_the_way=on_the_way,
        duration_s=1.0,
    )
    assert outcome.faults == faults

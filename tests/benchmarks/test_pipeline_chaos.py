from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.pipeline_chaos import VICTIMS, Outcome, Plan


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_process_is_killed_before_any_is_killed_again(seed: int) -> None:
    victims = Plan(events=1, kills=50, seed=seed).victims()
    assert len(victims) == 50
    assert Counter(victims[: len(VICTIMS)]) == dict.fromkeys(VICTIMS, 1)
    assert set(victims) == set(VICTIMS)


def test_fewer_kills_than_kinds_are_of_as_many_kinds() -> None:
    victims = Plan(events=1, kills=3).victims()
    assert len(victims) == len(set(victims)) == 3
    assert Plan(events=1, kills=0).victims() == []


def test_the_order_depends_on_the_seed() -> None:
    orders = {tuple(Plan(events=1, kills=6, seed=seed).victims()) for seed in range(20)}
    assert len(orders) > 1
    assert Plan(events=1, kills=9, seed=3).victims() == Plan(events=1, kills=9, seed=3).victims()


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (["a", "b", "c"], None),
        (["c", "b", "a"], None),
        (["a", "b"], "1 {} lost"),
        (["a", "b", "c", "d"], "1 {} that should not be"),
        (["a", "b", "c", "a", "a"], "2 {} told twice"),
    ],
)
@pytest.mark.parametrize("what", ["alerts", "early endings"])
def test_what_is_lost_strange_or_told_twice_is_a_fault(what: str, found: list[str], fault: str | None) -> None:
    wanted = ["a", "b", "c"]
    alerts, endings = (found, wanted) if what == "alerts" else (wanted, found)
    outcome = Outcome(expected=wanted, found=alerts, expected_endings=wanted, found_endings=endings)
    assert outcome.faults == ([] if fault is None else [fault.format(what)])


def test_dead_letters_and_missed_kills_are_faults() -> None:
    assert Outcome(dead_letters=["late", "odd"]).faults == ["2 dead letters", "the first: late"]
    assert Outcome(spared=["jvm"]).faults == ["1 kills that found no process"]


def test_a_pipeline_that_is_started_again_as_workers_are_killed_is_a_fault() -> None:
    killed = Counter(worker=5)
    assert Outcome(killed=killed, starts={"pipeline": 1}).faults == []
    assert Outcome(killed=killed, starts={"pipeline": 3}).faults == [
        "2 starts of the pipeline, though only workers were killed"
    ]
    assert Outcome(killed=killed + Counter(jvm=1), starts={"pipeline": 2}).faults == []

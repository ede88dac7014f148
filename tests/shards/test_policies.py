"""Policies choose among places within a step, and change no result; what hosts cost is measured."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from shards import Metering, OldestFirst, ShardState, rows_of
from streams import Event, LogEntry, PatternOn, StreamDeclaration, StreamOn
from tests.builders.policies import AnyFirst
from tests.builders.shards import Step, event, log_of
from tests.shards.test_derived_projects import messy_logs, whole
from tests.shards.test_random_joins import documents, events, run_in_shards


@settings(max_examples=60, deadline=None)
@given(messy_logs(), st.integers(1, 9), st.integers(0, 9))
def test_any_policy_gives_the_rows_of_the_log(log: list[LogEntry], size: int, seed: int) -> None:
    rows = []
    for policy in (OldestFirst(), AnyFirst(Random(seed))):
        state = ShardState(0)
        state.schedule(policy)
        found = [row for start in range(0, len(log), size) for row in state.apply(log[start : start + size])]
        rows.append((whole([*found, *rows_of(state.finish())]), state.promises()))
    assert rows[0] == rows[1]


@settings(max_examples=60, deadline=None)
@given(documents(), events(), st.sets(st.integers(0, 25), max_size=4), st.integers(0, 9))
def test_any_policy_gives_the_rows_of_a_join(
    document: dict[str, Any], made: list[tuple[str, Event]], cuts: set[int], seed: int
) -> None:
    rows = [
        whole(rows_of(run_in_shards(document, made, 1, cuts, policy=policy)))
        for policy in (OldestFirst(), AnyFirst(Random(seed)))
    ]
    assert rows[0] == rows[1]


def two_streams() -> list[LogEntry]:
    logs = []
    for stream in ("one", "two"):
        steps: list[Step] = [
            StreamOn(StreamDeclaration(name=stream)),
            PatternOn(name=f"{stream}s", version=1, text=f"PATTERN {stream}s EVENT A a"),
            *([event(second, "A")] for second in range(3)),
        ]
        logs.append(log_of(steps, stream=stream)[0])
    both = [entry for pair in zip(*logs, strict=True) for entry in pair]
    return [
        LogEntry(position=f"1-{place}", kind=entry.kind, stream=entry.stream, body=entry.body)
        for place, entry in enumerate(both, start=1)
    ]


class LastFirst:
    """The stream whose name comes last."""

    name: ClassVar[str] = "last-first"

    def choose(self, waiting: Any) -> Any:
        return max(waiting)


def test_the_policy_chooses_the_next_place() -> None:
    orders = {}
    for policy in (OldestFirst(), LastFirst()):
        state = ShardState(0)
        state.schedule(policy)
        orders[policy.name] = [row.stream for row in state.apply(two_streams())]
    assert orders == {"oldest-first": ["one", "two"] * 3, "last-first": ["two"] * 3 + ["one"] * 3}


def test_costs_are_of_hosts_and_rows_of_operators() -> None:
    steps: list[Step] = [
        StreamOn(StreamDeclaration(name="orders", key="data.order")),
        PatternOn(name="a", version=1, text="PATTERN a EVENT A a"),
        PatternOn(name="b", version=1, text="PATTERN b EVENT B b"),
    ]
    log = log_of([*steps, [event(1, "A"), event(2, "A"), event(3, "C")]])[0]
    state, ticks = ShardState(0), count()
    assert state.apply(log[:3]) == []
    assert state.costs == {}
    state.meter(Metering(lambda: next(ticks)))
    assert len(state.apply(log[3:])) == 2
    ((cost, names),) = state.costs["orders"].values()
    assert (cost.rows_in, cost.rows_out, sorted(names)) == (3.0, {"a": 2.0}, ["a", "b"])
    assert 0 < cost.cpu_ns < next(ticks)
    cost.halve()
    assert (cost.rows_in, cost.rows_out) == (1.5, {"a": 1.0})

"""Traces and streams whose activities take time."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Event
from tests.builders.workflows import MOST_ROUNDS, is_bounded, process_trees
from tests.references.workflows import enumerate_language
from workflows import (
    Activity,
    Duration,
    ExclusiveChoice,
    ExponentialDuration,
    FixedDuration,
    InclusiveChoice,
    Instances,
    Loop,
    NormalDuration,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    SimulationSettings,
    UniformDuration,
    sample_timed,
    simulate,
)
from workflows.simulation import has_durations


def lasting(name: str, us: int) -> Activity:
    return Activity(name, duration=FixedDuration(us))


def with_durations(tree: ProcessTree, rng: Random) -> ProcessTree:
    """The tree with random durations, many of them alike, some left out."""
    match tree:
        case Activity(name):
            choices: tuple[Duration | None, ...] = (None, FixedDuration(0), FixedDuration(5), UniformDuration(0, 9))
            return Activity(name, duration=rng.choice(choices))
        case Silent():
            return tree
        case Sequence(parts):
            return Sequence(tuple(with_durations(part, rng) for part in parts))
        case ExclusiveChoice(parts):
            return ExclusiveChoice(tuple(with_durations(part, rng) for part in parts))
        case Parallel(parts):
            return Parallel(tuple(with_durations(part, rng) for part in parts))
        case InclusiveChoice(parts):
            return InclusiveChoice(tuple(with_durations(part, rng) for part in parts))
        case Instances():
            return Instances(body=with_durations(tree.body, rng))
        case Loop():
            body, redo = with_durations(tree.body, rng), with_durations(tree.redo, rng)
            return Loop(body=body, redo=redo, repetitions=tree.repetitions)


@given(process_trees().filter(is_bounded), st.integers(0, 2**32))
def test_every_timed_trace_belongs_to_the_language(tree: ProcessTree, seed: int) -> None:
    rng = Random(seed)
    timed, language = with_durations(tree, rng), enumerate_language(tree, MOST_ROUNDS)
    for _ in range(10):
        trace = sample_timed(timed, rng)
        assert tuple(activity.name for _, activity in trace) in language
        assert [time_us for time_us, _ in trace] == sorted(time_us for time_us, _ in trace)


def test_times_follow_durations() -> None:
    branches = Parallel((Sequence((lasting("B", 10), lasting("C", 10))), lasting("D", 15), Silent()))
    tree = Sequence((lasting("A", 100), branches, Activity("E"), Loop(body=lasting("F", 1), repetitions=2)))
    trace = [(time_us, activity.name) for time_us, activity in sample_timed(tree, Random(1))]
    assert trace == [(100, "A"), (110, "B"), (115, "D"), (120, "C"), (120, "E"), (121, "F"), (122, "F")]


def test_instances_and_inclusive_branches_run_at_the_same_time() -> None:
    tree = Sequence((InclusiveChoice((lasting("A", 5), lasting("B", 9)), (1.0, 1.0)), lasting("C", 1)))
    assert [(time_us, activity.name) for time_us, activity in sample_timed(tree, Random(1))] == [
        (5, "A"),
        (9, "B"),
        (10, "C"),
    ]
    many = sample_timed(Instances(body=lasting("A", 5), again=0.9), Random(3))
    assert len(many) > 1
    assert {time_us for time_us, _ in many} == {5}


def test_branches_that_are_done_at_the_same_time_come_in_any_order() -> None:
    rng = Random(5)
    tree = Parallel((Sequence((lasting("A", 1), lasting("B", 0))), lasting("C", 1)))
    counts = Counter("".join(activity.name for _, activity in sample_timed(tree, rng)) for _ in range(1_000))
    assert set(counts) == {"ABC", "CAB"}
    assert counts["ABC"] / 1_000 == pytest.approx(0.5, abs=0.06)


def test_only_durations_make_a_tree_timed() -> None:
    assert not has_durations(Sequence((Activity("A"), Silent())))
    assert has_durations(Sequence((Activity("A"), lasting("B", 0))))


TREES = process_trees().map(lambda tree: with_durations(tree, Random(9)))


@given(TREES.filter(has_durations), st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**32))
def test_a_timed_stream_holds_finished_traces_in_strict_order_of_time(
    tree: ProcessTree, traces: int, concurrent: int, seed: int
) -> None:
    settings = SimulationSettings(traces=traces, concurrent=concurrent, start_us=100, interval_us=3, key_prefix="t")
    events = list(simulate(tree, settings, seed))
    times = [event.time_us for event in events]
    assert all(first < second for first, second in zip([100, *times], times, strict=False))
    by_key: dict[str, list[Event]] = {}
    for event in events:
        by_key.setdefault(event.key, []).append(event)
    for key, trace in by_key.items():
        assert [event.id for event in trace] == [f"{key}:{number}" for number in range(1, len(trace) + 1)]
    assert most_open(events) <= concurrent
    assert events == list(simulate(tree, settings, seed))


def most_open(events: list[Event]) -> int:
    """The most traces that have had their first event, but not their last one."""
    left = Counter(event.key for event in events)
    is_open: set[str] = set()
    most = 0
    for event in events:
        is_open.add(event.key)
        most = max(most, len(is_open))
        left[event.key] -= 1
        if not left[event.key]:
            is_open.discard(event.key)
    return most


def test_traces_begin_by_their_rate_and_last_as_long_as_they_should() -> None:
    tree = Sequence((lasting("A", 0), lasting("B", 1_000_000)))
    settings = SimulationSettings(traces=4_000, concurrent=1_000, start_us=0, interval_us=10_000)
    events = list(simulate(tree, settings, 2))
    begun = {event.key: event.time_us for event in events if event.type == "A"}
    assert max(begun.values()) / 4_000 == pytest.approx(10_000, rel=0.05)
    lengths = [event.time_us - begun[event.key] for event in events if event.type == "B"]
    assert sum(lengths) / len(lengths) == pytest.approx(1_000_000, rel=0.001)
    assert most_open(events) == pytest.approx(100, abs=50)


def test_more_than_the_most_open_traces_wait() -> None:
    settings = SimulationSettings(traces=10, concurrent=2, start_us=0, interval_us=1)
    events = list(simulate(lasting("A", 1_000), settings, 2))
    assert [round(event.time_us / 1_000) for event in events] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize(
    ("duration", "mean_us"),
    [
        (FixedDuration(500), 500),
        (UniformDuration(200, 800), 500),
        (ExponentialDuration(500), 500),
        (NormalDuration(500, 100), 500),
        (NormalDuration(0, 100), 40),
    ],
)
def test_durations_have_their_mean(duration: Duration, mean_us: int) -> None:
    rng = Random(4)
    drawn = [duration.draw_us(rng) for _ in range(4_000)]
    assert all(type(us) is int and us >= 0 for us in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(mean_us, rel=0.05)

"""Simulated traces and streams."""

import hashlib
from collections import Counter
from random import Random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Event, render_plain
from tests.builders.workflows import MOST_ROUNDS, is_bounded, process_trees
from tests.references.workflows import enumerate_language
from workflows import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    IntegerAttribute,
    InvalidWorkflow,
    Loop,
    OrderSettings,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    SimulationSettings,
    ThresholdAttribute,
    order_fulfilment,
    sample_trace,
    simulate,
)

A, B, C = Activity("A"), Activity("B"), Activity("C")
TRACES = 4_000


def words(tree: ProcessTree, count: int = TRACES) -> Counter[str]:
    """How often each trace came, of many."""
    rng = Random(7)
    return Counter("".join(activity.name for activity in sample_trace(tree, rng)) for _ in range(count))


def traces_of(events: list[Event]) -> dict[str, list[Event]]:
    """Events by key."""
    traces: dict[str, list[Event]] = {}
    for event in events:
        traces.setdefault(event.key, []).append(event)
    return traces


@given(process_trees().filter(is_bounded), st.integers(0, 2**32))
def test_every_sampled_trace_belongs_to_the_language(tree: ProcessTree, seed: int) -> None:
    language, rng = enumerate_language(tree, MOST_ROUNDS), Random(seed)
    for _ in range(10):
        assert tuple(activity.name for activity in sample_trace(tree, rng)) in language


def test_a_parallel_block_picks_uniformly_among_unfinished_branches() -> None:
    counts = words(Parallel((Sequence((A, B)), C)))
    shares = {word: count / TRACES for word, count in counts.items()}
    assert shares == pytest.approx({"CAB": 0.5, "ACB": 0.25, "ABC": 0.25}, abs=0.03)


def test_a_choice_follows_its_probabilities() -> None:
    counts = words(ExclusiveChoice((A, B, C), (0.1, 0.0, 0.9)))
    assert {word: count / TRACES for word, count in counts.items()} == pytest.approx({"A": 0.1, "C": 0.9}, abs=0.02)
    even = words(ExclusiveChoice((A, B, C)))
    assert {word: count / TRACES for word, count in even.items()} == pytest.approx(
        dict.fromkeys("ABC", 1 / 3), abs=0.03
    )


class Highest(Random):
    """Draws the largest number below 1."""

    def random(self) -> float:
        return 1.0 - 2.0**-53


def test_a_branch_of_probability_zero_is_not_even_chosen_by_rounding() -> None:
    choice = ExclusiveChoice((A, B, C), (0.5, 0.5 - 1e-10, 0.0))
    assert sample_trace(choice, Highest()) == [B]
    assert sample_trace(ExclusiveChoice((A, B, C)), Highest()) == [C]
    assert sample_trace(Parallel((A, B, C)), Highest()) == [C, B, A]


def test_an_open_loop_goes_on_as_likely_as_asked() -> None:
    counts = words(Loop(body=A, redo=B, again=0.25))
    assert counts["A"] / TRACES == pytest.approx(0.75, abs=0.03)
    assert counts["ABA"] / TRACES == pytest.approx(0.1875, abs=0.03)


def test_a_fixed_loop_goes_round_as_often_as_asked() -> None:
    assert words(Loop(body=A, redo=B, repetitions=3), 10) == {"ABABA": 10}


@given(process_trees(), st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**32))
def test_a_stream_holds_finished_traces_in_strict_order_of_time(
    tree: ProcessTree, traces: int, concurrent: int, seed: int
) -> None:
    settings = SimulationSettings(traces=traces, concurrent=concurrent, start_us=100, interval_us=1, key_prefix="t")
    events = list(simulate(tree, settings, seed))
    times = [event.time_us for event in events]
    assert all(first < second for first, second in zip([100, *times], times, strict=False))
    assert len({event.id for event in events}) == len(events)
    for key, trace in traces_of(events).items():
        assert 1 <= int(key.removeprefix("t")) <= traces
        assert [event.id for event in trace] == [f"{key}:{number}" for number in range(1, len(trace) + 1)]
    assert events == list(simulate(tree, settings, seed))


def test_finished_traces_are_replaced_at_once() -> None:
    tree = Loop(body=A, repetitions=5)
    events = list(simulate(tree, SimulationSettings(traces=200, concurrent=20), 3))
    assert len(events) == 1_000
    seen: Counter[str] = Counter()
    begun = 20
    for event in events:
        assert int(event.key.removeprefix("trace-")) <= begun
        seen[event.key] += 1
        begun += seen[event.key] == 5
    assert set(seen.values()) == {5}


def test_open_traces_are_chosen_uniformly() -> None:
    settings = SimulationSettings(traces=4, concurrent=4)
    firsts = Counter(next(iter(simulate(A, settings, seed))).key for seed in range(2_000))
    assert sorted(firsts) == ["trace-1", "trace-2", "trace-3", "trace-4"]
    assert {key: count / 2_000 for key, count in firsts.items()} == pytest.approx(dict.fromkeys(firsts, 0.25), abs=0.04)


def test_times_rise_by_the_interval_on_average() -> None:
    settings = SimulationSettings(traces=5_000, concurrent=10, start_us=0, interval_us=1_000)
    events = list(simulate(A, settings, 5))
    assert events[-1].time_us / len(events) == pytest.approx(1_000, rel=0.03)


def test_traces_without_events_are_passed_over() -> None:
    assert list(simulate(Silent(), SimulationSettings(traces=5, concurrent=2), 1)) == []
    half = list(simulate(ExclusiveChoice((A, Silent())), SimulationSettings(traces=400, concurrent=2), 1))
    assert 150 < len(half) < 250


def test_events_carry_the_attributes_of_their_activity() -> None:
    price = ThresholdAttribute(names=("price", "amount"), fail_ratio=0.5)
    tree = Sequence((Activity("A", (IntegerAttribute("n", 10**6), price)), B))
    events = list(simulate(tree, SimulationSettings(traces=600, concurrent=3), 1))
    first = [event.data for event in events if event.type == "A"]
    assert all(set(data) == {"n", "price", "amount"} and data["price"] == data["amount"] for data in first)
    assert len({data["n"] for data in first}) > 590
    assert all(event.data == {} for event in events if event.type == "B")


def test_another_seed_gives_another_stream() -> None:
    settings = SimulationSettings(traces=50, concurrent=10)
    assert list(simulate(Sequence((A, B)), settings, 1)) != list(simulate(Sequence((A, B)), settings, 2))


MIXED = Sequence(
    (
        Instances(body=A),
        InclusiveChoice((A, B, Loop(body=C, redo=B))),
        Parallel((A, B)),
        ExclusiveChoice((C, Silent()), (0.3, 0.7)),
    )
)
OPEN_ORDER = order_fulfilment(OrderSettings(quotes=None))


@pytest.mark.parametrize(
    ("tree", "settings", "seed", "digest"),
    [
        (order_fulfilment(), SimulationSettings(traces=50, concurrent=7, key_prefix="order-"), 42, "1396a1294ce4b815"),
        (OPEN_ORDER, SimulationSettings(traces=50, concurrent=7, key_prefix="order-"), 5, "6696f1df7ae62146"),
        (MIXED, SimulationSettings(traces=100, concurrent=9), 3, "febf1faf4ba8ac93"),
    ],
    ids=["order", "open order", "mixed"],
)
def test_a_seed_gives_the_stream_that_it_always_gave(
    tree: ProcessTree, settings: SimulationSettings, seed: int, digest: str
) -> None:
    lines = b"".join(
        orjson.dumps(render_plain(event), option=orjson.OPT_APPEND_NEWLINE) for event in simulate(tree, settings, seed)
    )
    assert hashlib.sha256(lines).hexdigest()[:16] == digest


@pytest.mark.parametrize("changes", [{"traces": -1}, {"concurrent": 0}, {"interval_us": 0}])
def test_impossible_settings_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(InvalidWorkflow, match=f"{next(iter(changes))} must be at least"):
        SimulationSettings(**changes)  # type: ignore[arg-type]

"""What goes wrong in simulated streams."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Event
from workflows import (
    Activity,
    FixedDuration,
    IntegerAttribute,
    InvalidWorkflow,
    Noise,
    NoiseCounts,
    NoiseSettings,
    Sequence,
    SimulationSettings,
    simulate,
)
from workflows.simulation.noise import SimulatedEvent

NAMES = "ABCDEFGHIJ"
TREE = Sequence(tuple(Activity(name, (IntegerAttribute("n", 10**9),)) for name in NAMES))
TIMED = Sequence(tuple(Activity(name, duration=FixedDuration(1_000)) for name in NAMES))
SETTINGS = SimulationSettings(traces=1_000, concurrent=50)


def noisy(**shares: float) -> tuple[list[Event], NoiseCounts]:
    noise = Noise(NoiseSettings(**shares), 5)  # type: ignore[arg-type]
    events = list(simulate(TREE, SETTINGS, 5, noise))
    return events, noise.counts


def words(events: list[Event]) -> list[str]:
    by_key: dict[str, str] = {}
    for event in events:
        by_key[event.key] = by_key.get(event.key, "") + event.type
    return list(by_key.values())


def test_without_noise_nothing_changes() -> None:
    events, counts = noisy()
    assert events == list(simulate(TREE, SETTINGS, 5))
    assert counts == NoiseCounts()


def test_missing_events_are_not_there() -> None:
    events, counts = noisy(missing=0.2)
    assert len(events) + counts.missing == 10_000
    assert counts.missing / 10_000 == pytest.approx(0.2, abs=0.01)
    assert all("".join(sorted(word)) == word and len(set(word)) == len(word) for word in words(events))
    assert len({event.id for event in events}) == len(events)
    assert noisy(missing=1.0) == ([], NoiseCounts(missing=10_000))


def test_swapped_events_change_places_with_the_next() -> None:
    events, counts = noisy(swapped=0.1)
    pairs = 0
    for word in words(events):
        order = [NAMES.index(name) for name in word]
        assert sorted(word) == list(NAMES)
        assert all(abs(place - number) <= 1 for number, place in enumerate(order))
        pairs += sum(place > number for number, place in enumerate(order))
    assert counts == NoiseCounts(swapped=pairs)
    assert pairs / 10_000 == pytest.approx(0.1 * 0.9 * 0.92, abs=0.01)  # none at the end, none in overlapping pairs
    assert words(noisy(swapped=1.0)[0])[0] == "BADCFEHGJI"


def test_duplicated_events_come_again_with_an_id_of_their_own() -> None:
    events, counts = noisy(duplicated=0.3)
    assert len(events) == 10_000 + counts.duplicated
    assert counts.duplicated / 10_000 == pytest.approx(0.3, abs=0.015)
    assert len({event.id for event in events}) == len(events)
    assert all("".join(dict.fromkeys(word)) == NAMES for word in words(events))
    assert all(word.count(name) <= 2 for word in words(events) for name in NAMES)
    found: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        found.setdefault((event.key, event.type), []).append(event)
    copies = [pair for pair in found.values() if len(pair) == 2]
    assert len(copies) == counts.duplicated
    assert all(one.data == other.data and one.time_us < other.time_us for one, other in copies)


def test_late_events_keep_their_time_and_come_within_bounds() -> None:
    clean = list(simulate(TREE, SETTINGS, 5))
    events, counts = noisy(late=0.05, lateness_us=20_000_000)
    assert sorted(events, key=lambda event: event.time_us) == clean
    newest_us, late = events[0].time_us, 0
    for event in events:
        assert event.time_us >= newest_us - 20_000_000
        late += event.time_us < newest_us
        newest_us = max(newest_us, event.time_us)
    assert counts == NoiseCounts(late=late)
    assert late / 10_000 == pytest.approx(0.05, abs=0.01)


def test_late_events_at_the_end_are_not_lost() -> None:
    events, counts = noisy(late=1.0, lateness_us=10**12)
    assert len(events) == len({event.id for event in events}) == 10_000
    assert counts.late > 5_000


@given(
    st.text("ABC", max_size=12),
    *[st.sampled_from([0.0, 0.3, 1.0])] * 3,
    st.integers(0, 2**32),
)
def test_a_disturbed_trace_counts_what_was_done(
    word: str, missing: float, swapped: float, duplicated: float, seed: int
) -> None:
    noise = Noise(NoiseSettings(missing=missing, swapped=swapped, duplicated=duplicated), seed)
    trace = noise.disturb([SimulatedEvent(Activity(name), number) for number, name in enumerate(word)])
    counts = noise.counts
    assert len(trace) == len(word) - counts.missing + counts.duplicated
    assert sum(step.is_copy for step in trace) == counts.duplicated
    assert [step.offset_us for step in trace] == sorted(step.offset_us for step in trace)
    kept = Counter(step.activity.name for step in trace if not step.is_copy)
    assert not kept - Counter(word)
    assert all(step.activity == before.activity for before, step in itertools.pairwise(trace) if step.is_copy)


def test_noise_of_timed_streams_keeps_strict_order() -> None:
    noise = Noise(NoiseSettings(missing=0.1, swapped=0.1, duplicated=0.1), 5)
    events = list(simulate(TIMED, SETTINGS, 5, noise))
    times = [event.time_us for event in events]
    assert all(first < second for first, second in itertools.pairwise(times))
    assert len(events) == 10_000 - noise.counts.missing + noise.counts.duplicated


def test_the_seed_decides() -> None:
    settings = NoiseSettings(missing=0.1, swapped=0.1, duplicated=0.1, late=0.1)
    first, again, other = (list(simulate(TREE, SETTINGS, 5, Noise(settings, seed))) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("changes", [{"missing": -0.1}, {"swapped": 1.5}, {"duplicated": 2}, {"late": float("nan")}])
def test_impossible_shares_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InvalidWorkflow, match=f"noise: {next(iter(changes))} must lie between 0 and 1"):
        NoiseSettings(**changes)  # type: ignore[arg-type]


def test_an_impossible_lateness_is_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="lateness must be at least 1"):
        NoiseSettings(lateness_us=0)

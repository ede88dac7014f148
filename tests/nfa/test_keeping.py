"""A matcher that keeps the traces of some keys: nothing is left of the others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nfa import Matcher
from nfa.lanes import snapshot
from streams import Event, EventBatch, key_hash

KEYS = [f"k{number}" for number in range(12)]
KEPT = sorted(key for key in KEYS if key_hash(key) % 2 == 0)
HASHES = {key_hash(key) for key in KEPT}


def is_kept(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    at_home: NDArray[np.bool_] = hashes % 2 == 0
    return at_home


def matcher_of(*texts: str) -> Matcher:
    matcher = Matcher(end_events=("End",), idle_timeout_us=1_000)
    for text in texts:
        matcher.add_pattern(text)
    rows = [(event_type, key) for event_type in "AB" for key in KEYS]
    events = [
        Event(id=f"{event_type}-{key}", type=event_type, time_us=place, key=key, data={"w": place % 3})
        for place, (event_type, key) in enumerate(rows)
    ]
    matcher.process(EventBatch.from_events(events))
    return matcher


WAITS = "PATTERN w EVENT SEQ(A a, NOT X)"
SHARED = "PATTERN s EVENT SEQ(A a, B b, C c)"
FINER = "PATTERN f EVENT SEQ(A a, C c) WHERE [key, w]"


@pytest.mark.parametrize("has_counts", [True, False])
def test_nothing_is_left_of_other_keys(has_counts: bool) -> None:
    matcher = matcher_of(WAITS, SHARED, FINER)
    before = matcher.stats
    matcher.keep(is_kept, has_counts=has_counts)
    _, arrays = snapshot.read(matcher.dump())
    assert set(arrays["0/trace_key"].tolist()) == HASHES
    assert set(arrays["0/idle_key"].tolist()) == HASHES
    pairs = arrays["1/finer_pairs"].reshape(-1, 2)
    assert set(pairs[:, 0].tolist()) == HASHES
    assert set(arrays["1/trace_key"].tolist()) == set(arrays["1/idle_key"].tolist()) == set(pairs[:, 1].tolist())
    for lane in (0, 1):
        text = arrays[f"{lane}/event_key_bytes"].tobytes().decode()
        assert {f"k{part}" for part in text.split("k")[1:]} == set(KEPT)
    assert matcher.stats.events == (before.events if has_counts else 0)
    assert matcher.stats.matches == before.matches == 0


def test_what_ends_with_other_traces_is_not_told_and_what_stays_is() -> None:
    matcher = matcher_of(WAITS, SHARED)
    matcher.keep(is_kept, has_counts=True)
    done = EventBatch.from_events([Event(id=f"C-{key}", type="C", time_us=100, key=key) for key in KEYS])
    assert sorted(match.key for match in matcher.process(done).matches()) == KEPT
    late = EventBatch.from_events([Event(id="z", type="Z", time_us=5_000, key="z")])
    assert sorted(match.key for match in matcher.process(late).matches()) == KEPT


def test_a_matcher_without_events_keeps_nothing() -> None:
    matcher = Matcher()
    matcher.add_pattern(WAITS)
    matcher.keep(is_kept, has_counts=False)
    assert matcher.newest_us is None
    assert matcher.stats.open_traces == 0

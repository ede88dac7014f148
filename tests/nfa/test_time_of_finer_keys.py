"""Time passes for patterns with finer keys with every event of the stream, also with those that have no such key."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher, parse_pattern
from streams import Event, EventBatch
from tests.references.patterns.outcome import reference_matches

SECOND_US = 1_000_000
NOT = "PATTERN p EVENT SEQ(A a, NOT B) WHERE [key, g] WITHIN 4 s"
GREEDY = "PATTERN p EVENT SEQ(A a, B* b GREEDY) WHERE [key, g] WITHIN 4 s"
TIMEOUTS = "PATTERN p EVENT SEQ(A a, B b) WHERE [key, g] WITHIN 4 s EMIT TIMEOUTS"


def made(number: int, event_type: str, seconds: int, key: str = "k", **data: Any) -> Event:
    return Event(id=f"e{number}", type=event_type, time_us=seconds * SECOND_US, key=key, data=data)


def outputs(text: str, batches: Sequence[Sequence[Event]], *, is_saved: bool = False, **options: Any) -> list[Any]:
    matcher, found = Matcher(**options), []
    matcher.add_pattern(text)
    for batch in batches:
        found.append(matcher.process(EventBatch.from_events(batch)))
        if is_saved:
            matcher = Matcher.load(matcher.dump(), {})
    return found


@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize("text", [NOT, GREEDY, TIMEOUTS])
def test_an_event_without_the_finer_key_passes_a_deadline(text: str, is_apart: bool) -> None:
    first, other = made(0, "A", 0, g="q"), made(1, "X", 9, "other")
    found = outputs(text, [[first], [other]] if is_apart else [[first, other]])
    matches = [one for output in found for one in output.matches()]
    timeouts = [one for output in found for one in output.timeouts()]
    if text == TIMEOUTS:
        assert [one.due_us for one in timeouts] == [4 * SECOND_US]
    else:
        assert [(one.bindings, one.detected_us) for one in matches] == [({"a": ("e0",)}, 4 * SECOND_US)]


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_finer_trace_is_idle_by_the_time_of_all_events(is_apart: bool) -> None:
    first, other = made(0, "A", 0, g="q"), made(1, "X", 9, "other")
    text = "PATTERN p EVENT SEQ(A a, NOT B) WHERE [key, g]"
    batches = [[first], [other]] if is_apart else [[first, other]]
    found = outputs(text, batches, idle_timeout_us=5 * SECOND_US)
    matches = [one for output in found for one in output.matches()]
    assert [(one.bindings, one.detected_us) for one in matches] == [({"a": ("e0",)}, 5 * SECOND_US)]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([NOT, GREEDY]),
    st.lists(
        st.tuples(st.sampled_from("ABX"), st.integers(0, 3), st.sampled_from("kl"), st.sampled_from(["q", "r", None])),
        max_size=12,
    ),
    st.sets(st.integers(1, 11), max_size=3),
    st.booleans(),
)
def test_open_traces_of_finer_keys_find_what_the_reference_finds(
    text: str, rows: list[tuple[str, int, str, str | None]], cuts: set[int], is_saved: bool
) -> None:
    events, now = list[Event](), 0
    for number, (event_type, step, key, g) in enumerate(rows):
        now += step
        events.append(made(number, event_type, now, key, **({} if g is None else {"g": g})))
    borders = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    batches = [events[first:last] for first, last in pairwise(borders)]
    found = [one for output in outputs(text, batches, is_saved=is_saved) for one in output.matches()]
    expected = reference_matches([parse_pattern(text)], events, is_open=True)
    seen = [(one.key, one.bindings, one.detected_us) for one in found]
    assert sorted(seen, key=str) == sorted(((one.key, one.bindings, one.detected_us) for one in expected), key=str)

"""Which traces are open and how far patterns are in them: against plain counting, and what must not change it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import CaseQuery, Matcher, OpenCase
from nfa.language.description import describe_pattern
from streams import Event, EventBatch
from tests.builders.patterns import batches, event_lists, patterns, splits

BOUNDED = settings(max_examples=60, deadline=None)
STEPS = (
    "PATTERN plain EVENT SEQ(A a, B b, C c)",
    "PATTERN timed EVENT SEQ(A a, B b, C c) WITHIN 3 us",
    "PATTERN runs EVENT SEQ(A a, B b [b.v >= a.v], C c)",
)


def matcher_with(*texts: str, **options: Any) -> Matcher:
    matcher = Matcher(end_events=("End",), tracks="listed", **options)
    for text in texts:
        matcher.add_pattern(text)
    return matcher


def cases_of(matcher: Matcher, **query: Any) -> dict[str, OpenCase]:
    return {case.key: case for case in matcher.open_cases(CaseQuery(**{"limit": 100, **query})).cases}


def events(text: str, key: str = "k") -> list[Event]:
    """``A1 B2``: an event A at 1, an event B at 2."""
    return [
        Event(
            id=f"{key}{word}",
            type=word[0] if word[0] != "E" else "End",
            time_us=int(word.strip("ABCDXEnd")),
            key=key,
            data={},
        )
        for word in text.split()
    ]


def naive_open(seen: Sequence[Event]) -> dict[str, list[Event]]:
    """The events of each open trace."""
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for event in seen:
        found[event.key].append(event)
        if event.type == "End":
            del found[event.key]
    return {key: trace for key, trace in found.items() if trace}


def naive_partials(trace: Sequence[Event], now_us: int, name: str) -> dict[int, int]:
    """The number of partial matches of a pattern of ``STEPS`` by the number of bound events."""
    counts: dict[int, int] = {}
    for size in (1, 2):
        for bound in combinations(trace, size):
            if "".join(event.type for event in bound) != "AB"[:size]:
                continue
            if name == "timed" and min(event.time_us for event in bound) + 3 <= now_us:
                continue
            if name == "timed" and max(e.time_us for e in bound) - min(e.time_us for e in bound) >= 3:
                continue
            values = [event.data.get("v") for event in bound]
            if name == "runs" and size == 2 and not _is_reached(values):
                continue
            counts[size] = counts.get(size, 0) + 1
    return counts


def _is_reached(values: Sequence[Any]) -> bool:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == 2 and numbers[1] >= numbers[0]


def ordered(drawn: Sequence[Event]) -> list[Event]:
    return sorted(drawn, key=lambda event: event.time_us)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    size = draw(st.integers(0, 12))
    times = sorted(draw(st.lists(st.integers(0, 8), min_size=size, max_size=size)))
    return [
        Event(
            id=f"e{number}",
            type=draw(st.sampled_from(["A", "B", "C", "X", "End"])),
            time_us=time_us,
            key=draw(st.sampled_from(["k", "l"])),
            data={"v": draw(st.integers(0, 2))},
        )
        for number, time_us in enumerate(times)
    ]


def test_the_newest_type_is_that_of_the_newest_time() -> None:
    matcher = matcher_with()
    matcher.process(EventBatch.from_events([*events("A1 B5 C3"), *events("X2 A2", key="l")]))
    assert {key: case.last_type for key, case in cases_of(matcher).items()} == {"k": "B", "l": "A"}
    assert list(cases_of(matcher, last_type="B")) == ["k"]
    assert cases_of(matcher, last_type="C") == {}
    assert matcher.open_cases(CaseQuery(key="k")).by_last_type == {"A": 1, "B": 1}


@pytest.mark.compiled
def test_newest_types_of_many_traces_survive_forgetting_and_reloading() -> None:
    matcher = matcher_with()
    for number in range(3_000):
        some = [
            Event(id=f"e{number}{kind}", type=kind, time_us=number, key=f"k{number}") for kind in (f"T{number}", "End")
        ]
        matcher.process(EventBatch.from_events(some if number % 100 else some[:1]))
    loaded = Matcher.load(matcher.dump(), {})
    for one in (matcher, loaded):
        found = cases_of(one)
        assert {key: case.last_type for key, case in found.items()} == {f"k{n}": f"T{n}" for n in range(0, 3_000, 100)}
        assert one.dump() == matcher.dump()


@BOUNDED
@given(logs())
def test_open_traces_and_partial_matches_are_those_that_counting_finds(seen: list[Event]) -> None:
    matcher = matcher_with(*STEPS)
    matcher.process(EventBatch.from_events(seen))
    found, expected = cases_of(matcher), naive_open(seen)
    for event_type in "ABCX":
        is_last = {key for key, case in found.items() if case.last_type == event_type}
        assert cases_of(matcher, last_type=event_type).keys() == is_last
        furthest = [(key, one.furthest) for key, case in found.items() for one in case.patterns if one.furthest]
        is_waiting = {key for key, one in furthest if any(step.startswith(event_type) for step in one.waits_for)}
        assert cases_of(matcher, waits_for=event_type).keys() == is_waiting
    assert found.keys() == expected.keys()
    now_us = max((event.time_us for event in seen), default=0)
    for key, trace in expected.items():
        case = found[key]
        times_us = [event.time_us for event in trace]
        assert (case.first_us, case.newest_us, case.events) == (min(times_us), max(times_us), len(trace))
        assert case.last_type == trace[-1].type
        for pattern in case.patterns:
            partials = naive_partials(trace, now_us, pattern.name)
            assert pattern.partial_matches == sum(partials.values()), (pattern, trace)
            assert pattern.state == ("alive" if partials else "waiting")
            assert (pattern.furthest is None) == (not partials)
            if pattern.furthest is not None:
                assert len(pattern.furthest.bound) == max(partials)


@BOUNDED
@given(st.data(), st.lists(patterns(max_atoms=3), min_size=1, max_size=3), event_lists())
def test_cuts_reloads_and_questions_in_between_change_no_answer(
    data: st.DataObject, drawn: Sequence[Any], seen: list[Event]
) -> None:
    texts = [describe_pattern(pattern).replace(pattern.name, f"p{n}", 1) for n, pattern in enumerate(drawn)]
    whole, cut = matcher_with(*texts), matcher_with(*texts)
    matches = whole.process(EventBatch.from_events(seen)).n_matches
    found = 0
    for part in batches(seen, data.draw(splits(len(seen)))):
        found += cut.process(part).n_matches
        before = cut.dump()
        cut.open_cases(CaseQuery())
        assert cut.dump() == before
        if data.draw(st.booleans()):
            cut = Matcher.load(before, {})
    assert found == matches
    assert cut.open_cases(CaseQuery()) == whole.open_cases(CaseQuery())


def test_what_a_partial_match_waits_for_is_said() -> None:
    matcher = matcher_with("PATTERN p EVENT SEQ(A a, OR(B b [b.v > 1], C c), NOT D) WITHIN 9 us")
    matcher.process(EventBatch.from_events(events("A1 X2")))
    (pattern,) = cases_of(matcher)["k"].patterns
    assert pattern.furthest is not None
    assert pattern.furthest.waits_for == ["B b [b.v > 1]", "C c"]
    assert pattern.furthest.expires_us == 10
    matcher.process(EventBatch.from_events(events("C3")))
    (pattern,) = cases_of(matcher)["k"].patterns
    assert pattern.furthest is not None
    assert [(step.alias, step.event_id) for step in pattern.furthest.bound] == [("a", "kA1"), ("c", "kC3")]
    assert pattern.furthest.waits_for == ["NOT D"]


def test_patterns_of_finer_keys_are_of_the_trace_of_their_correlation_key() -> None:
    matcher = matcher_with("PATTERN p EVENT SEQ(A a, B b) WHERE [key, v]")
    seen = [Event(id=f"e{n}", type="A", time_us=n, key="k", data={"v": n % 2}) for n in range(3)]
    matcher.process(EventBatch.from_events(seen))
    (pattern,) = cases_of(matcher)["k"].patterns
    assert (pattern.state, pattern.partial_matches) == ("alive", 3)
    assert cases_of(matcher, pattern="p").keys() == {"k"}


FILTERED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "all, the oldest first": ({}, "l k m"),
    "a pattern": ({"pattern": "ab"}, "k m"),
    "a pattern that nothing holds": ({"pattern": "xb"}, ""),
    "with partial matches": ({"state": "matching"}, "k m"),
    "old ones": ({"older_than_us": 3}, "l k"),
    "a key": ({"key": "k"}, "k"),
    "the oldest": ({"limit": 1}, "l"),
}


@pytest.mark.parametrize("name", FILTERED)
def test_filters(name: str) -> None:
    query, expected = FILTERED[name]
    matcher = matcher_with("PATTERN ab EVENT SEQ(A a, B b)", "PATTERN xb EVENT SEQ(D d, B b)")
    matcher.process(EventBatch.from_events([*events("X1", "l"), *events("A2", "k"), *events("A5 X6", "m")]))
    found = matcher.open_cases(CaseQuery(**{"limit": 9, **query}))
    assert " ".join(case.key for case in found.cases) == expected
    assert found.total == 3
    assert found.matching == (3 if name == "the oldest" else len(expected.split()))


def test_many_traces_come_and_go() -> None:
    matcher = matcher_with("PATTERN p EVENT SEQ(A a, B b)")
    for start in range(0, 6_000, 500):
        opened = [Event(id="e", type="A", time_us=n, key=f"k{n}", data={}) for n in range(start, start + 500)]
        ended = [Event(id="e", type="End", time_us=n, key=f"k{n}", data={}) for n in range(start, start + 490)]
        matcher.process(EventBatch.from_events([*opened, *ended]))
    found = matcher.open_cases(CaseQuery(limit=200))
    assert (found.total, found.unnamed) == (120, 0)
    assert [case.key for case in found.cases] == [
        f"k{n + 490 + rest}" for n in range(0, 6_000, 500) for rest in range(10)
    ]

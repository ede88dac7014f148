"""Runs that wait by state and value find their partners, however the stream is cut, saved and loaded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Match, Matcher, match_order
from nfa.language.parsing import parse_pattern
from streams import Event, EventBatch
from tests.builders.patterns import batches, splits
from tests.references.patterns.outcome import reference_matches

PATTERNS = (
    "SEQ(A a, B b [v = a.v])",
    "SEQ(A a, B b [a.v = v], C c [v = a.v])",
    "SEQ(A a, B b [v = a.v], C c [v = b.w AND w > a.w]) WITHIN 6 us",
    "SEQ(A a, A|B b [w = a.v AND v > a.v])",
    "SEQ(A a, OR(B b [v = a.v], C c [w = a.v]), C d)",
    "SEQ(A a, OR(B b [v = a.v], C c [v > a.v]), C d [v = a.w])",
    "SEQ(AND(A a, B b), C c [v = a.v AND w = b.w]) WITHIN 9 us",
    "SEQ(A a, B+ b [v = a.v], C c [v = count(b)])",
    "SEQ(A a, B b [v != a.v], NOT C c [v = a.v], A d [v = b.v])",
)
BIG = 2**53
VALUES = st.sampled_from([0, 1, 1.0, -0.0, 2, 2.5, "1", "", "x", None, True, False, BIG, BIG + 1, float(BIG)])


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    rows = draw(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("kl"), VALUES, VALUES), max_size=14))
    return [
        Event(id=f"e{n}", type=name, time_us=n, key=key, data={"v": v, "w": w})
        for n, (name, key, v, w) in enumerate(rows)
    ]


def shape(found: list[Match]) -> list[tuple[object, ...]]:
    ordered = sorted(found, key=match_order)
    return [(match.pattern, match.key, sorted(match.bindings.items()), match.detected_us) for match in ordered]


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(), events=streams(), chosen=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True)
)
def test_partners_are_those_of_the_reference(data: st.DataObject, events: list[Event], chosen: list[str]) -> None:
    texts = [f"PATTERN p{PATTERNS.index(part)} EVENT {part}" for part in chosen]
    matcher, found = Matcher(), list[Match]()
    for text in texts:
        matcher.add_pattern(text)
    for batch in batches(events, data.draw(splits(len(events)))):
        found += matcher.process(batch).matches()
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
    found += matcher.finish().matches()
    assert shape(found) == shape(reference_matches([parse_pattern(text) for text in texts], events))


def fed(matcher: Matcher, rows: list[tuple[str, object]], first: int = 0, step: int = 7) -> list[Match]:
    events = [
        Event(id=f"{name}{first + n}", type=name, time_us=first + n, key="k", data={"v": value})
        for n, (name, value) in enumerate(rows)
    ]
    cuts = range(0, len(events), step)
    return [one for at in cuts for one in matcher.process(EventBatch.from_events(events[at : at + step])).matches()]


@pytest.mark.compiled
def test_many_open_runs_are_found_by_value_in_the_order_of_the_newest_first() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b [v = a.v])")
    fed(matcher, [("A", f"item {number % 700}") for number in range(1_400)])
    found = fed(matcher, [("B", "item 3")], 1_400)
    assert [match.bindings["a"] for match in found] == [("A703",), ("A3",)]
    assert matcher.stats.held == 1_400


@pytest.mark.compiled
def test_texts_that_are_forgotten_leave_those_that_wait_where_they_are() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b [v = a.v]) WITHIN 3000 us")
    fed(matcher, [("A", "kept")])
    for start in range(1, 9_000, 1_000):  # more texts than are kept at once
        fed(matcher, [("B", f"other {start + number}") for number in range(200)], start)
        fed(matcher, [("A", f"again {start}")], start + 900)
    found = fed(matcher, [("B", "again 8001")], 9_100)
    assert [match.bindings for match in found] == [{"a": ("A8901",), "b": ("B9100",)}]


@pytest.mark.compiled
@pytest.mark.parametrize("step", [1, 7])
def test_what_has_expired_does_not_stay(step: int) -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b [v = a.v]) WITHIN 50 us")
    rows = [("A", number) for number in range(300 * step)]
    events = [Event(id=f"e{n}", type=name, time_us=n, key="k", data={"v": v}) for n, (name, v) in enumerate(rows)]
    for start in range(0, len(events), step):
        matcher.process(EventBatch.from_events(events[start : start + step]))
        assert matcher.stats.held <= 50
    matcher.pass_time(10_000)
    assert (matcher.stats.held, matcher.stats.nodes) == (0, 0)

"""What the end of a finite input decides is ranked behind all else, however the stream was cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Match, Matcher, match_order
from nfa.language.parsing import parse_pattern
from streams import Event, EventBatch, Ties
from tests.builders.patterns import batches, event_lists, splits
from tests.references.patterns.outcome import reference_matches, reference_outcome

PARTS = (
    "SEQ(A a, NOT B n)",
    "SEQ(A a, C? c, NOT B n)",
    "OR(SEQ(A a, NOT B n), SEQ(A a, C c))",
    "OR(SEQ(A a, NOT B n), SEQ(A a, WITHIN 2 us NOT C m))",
    "SEQ(A a, WITHIN 9 us NOT C m, NOT B n)",
    "SEQ(A a, B+ b GREEDY)",
    "SEQ(A a, STRICT B+ b GREEDY, NOT C n)",
)
RULES = (" LIMIT 1", " LIMIT 2", " SELECT SKIP TO NEXT", " SELECT SKIP PAST LAST", " SELECT ONCE PER KEY")


def shape(found: list[Match]) -> list[tuple[object, ...]]:
    ordered = sorted(found, key=match_order)
    return [(match.key, sorted(match.bindings.items()), match.detected_us) for match in ordered]


def found_in(text: str, cuts: list[EventBatch], ties: Ties = "log") -> list[Match]:
    matcher = Matcher(ties=ties)
    matcher.add_pattern(text)
    found = [match for batch in cuts for match in matcher.process(batch).matches()]
    return found + matcher.finish().matches()


@settings(max_examples=200, deadline=None)
@given(data=st.data(), part=st.sampled_from(PARTS), rule=st.sampled_from(RULES))
def test_the_end_of_the_input_ranks_alike_for_any_cut(data: st.DataObject, part: str, rule: str) -> None:
    ties: Ties = data.draw(st.sampled_from(["log", "simultaneous"]))
    text = f"PATTERN p EVENT {part}{rule}"
    events = data.draw(event_lists(types=("A", "B", "C"), max_size=8))
    found = found_in(text, batches(events, data.draw(splits(len(events)))), ties)
    assert shape(found) == shape(reference_matches([parse_pattern(text)], events, ties=ties))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("OR(SEQ(A a, C c), SEQ(A b, NOT B n)) LIMIT 1", [("a=k0 c=k1", 2), ("b=k0", 2)]),
        ("OR(SEQ(A a, C c), SEQ(A b, NOT B n)) SELECT ONCE PER KEY", [("a=k0 c=k1", 2)]),
    ],
)
def test_what_only_the_end_decides_comes_last(text: str, wanted: list[tuple[str, int]]) -> None:
    rows = [("A", 1, "k"), ("C", 2, "k"), ("X", 3, "l")]
    events = [
        Event(id=f"{key}{number}", type=name, time_us=time_us, key=key)
        for number, (name, time_us, key) in enumerate(rows)
    ]
    for cuts in ([3], [1, 1, 1], [2, 1]):
        parts = [EventBatch.from_events(events[sum(cuts[:n]) : sum(cuts[: n + 1])]) for n in range(len(cuts))]
        found = found_in(f"PATTERN p EVENT {text}", parts)
        shown = [(" ".join(f"{name}={ids[0]}" for name, ids in m.bindings.items()), m.detected_us) for m in found]
        assert shown == wanted


@pytest.mark.parametrize("ties", ["log", "simultaneous"])
@pytest.mark.parametrize("cuts", [[2], [1, 1]])
def test_a_deadline_decides_before_the_events_of_its_time(ties: Ties, cuts: list[int]) -> None:
    text = "PATTERN p EVENT OR(SEQ(A a, WITHIN 2 us NOT C n), B b) SELECT ONCE PER KEY"
    events = [Event(id=f"e{time_us}", type=name, time_us=time_us, key="k") for name, time_us in (("A", 1), ("B", 3))]
    parts = [EventBatch.from_events(events[sum(cuts[:n]) : sum(cuts[: n + 1])]) for n in range(len(cuts))]
    assert [match.bindings for match in found_in(text, parts, ties)] == [{"a": ("e1",)}]
    assert [match.bindings for match in reference_matches([parse_pattern(text)], events, ties=ties)] == [{"a": ("e1",)}]


def test_what_a_deadline_decides_in_an_open_trace_comes_first() -> None:
    pattern = parse_pattern("PATTERN p EVENT OR(A a0, A{1,2} a1 GREEDY, A a2) WITHIN 1 us")
    events = [Event(id=f"e{n}", type="A", time_us=n // 5, key="k") for n in range(7)]
    shown = reference_outcome(pattern, events[:6], is_open=True).matches
    assert reference_outcome(pattern, events, is_open=True).matches[: len(shown)] == shown

"""Under ``ties: log`` a match without trailing conditions is emitted with the event that completes it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Match, Matcher, match_order
from nfa.language.parsing import parse_pattern
from streams import Event, EventBatch, Ties
from tests.builders.patterns import event_lists
from tests.references.patterns.outcome import reference_matches

PARTS = (
    "SEQ(A a, B b)",
    "SEQ(A a, B{2} b)",
    "SEQ(A+ a, B b)",
    "SEQ(AND(A a, B b), C c)",
    "OR(SEQ(A a, B b), SEQ(A a, C? c, B b))",
    "SEQ(A a, STRICT NOT B, C c)",
    "SEQ(A a, C c [v = a.v])",
)
RULES = (
    "",
    " LIMIT 1",
    " LIMIT 2",
    " SELECT ONCE PER KEY",
    " SELECT SKIP TO NEXT",
    " SELECT SKIP PAST LAST",
    " SELECT NEXT SKIP TO FIRST a",
    " SELECT SKIP TO LAST a",
    " WITHIN 5 us EMIT TIMEOUTS",
    " SELECT SKIP PAST LAST LIMIT 1",
)


def shape(found: list[Match]) -> list[tuple[object, ...]]:
    ordered = sorted(found, key=match_order)
    return [(match.key, sorted(match.bindings.items()), match.detected_us) for match in ordered]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), part=st.sampled_from(PARTS), rule=st.sampled_from(RULES))
def test_after_every_event_all_is_there_that_it_completed(data: st.DataObject, part: str, rule: str) -> None:
    text = f"PATTERN p EVENT {part}{rule}"
    events = data.draw(event_lists(types=("A", "B", "C"), max_size=8))
    matcher, found = Matcher(), list[Match]()
    matcher.add_pattern(text)
    for number, event in enumerate(events, 1):
        found += matcher.process(EventBatch.from_events([event])).matches()
        wanted = reference_matches([parse_pattern(text)], events[:number], is_open=True)
        assert shape(found) == shape(wanted)


@pytest.mark.parametrize("rule", [*RULES[1:6], " LIMIT 1"])
@pytest.mark.parametrize(("ties", "expected"), [("log", 1), ("simultaneous", 0)])
def test_nothing_waits_for_the_next_event(rule: str, ties: Ties, expected: int) -> None:
    matcher = Matcher(ties=ties)
    matcher.add_pattern(f"PATTERN p EVENT SEQ(A a, B b){rule}")
    events = [Event(id=name, type=name, time_us=time_us, key="k") for time_us, name in enumerate("AB")]
    assert len(matcher.process(EventBatch.from_events(events)).matches()) == expected
    assert len(matcher.pass_time(2).matches()) == 1 - expected


def test_strict_not_waits_only_where_events_of_one_time_have_no_order() -> None:
    events = [Event(id=name, type=name, time_us=time_us, key="k") for time_us, name in enumerate("AXC")]
    for ties, expected in (("log", 1), ("simultaneous", 0)):
        matcher = Matcher(ties=ties)  # type: ignore[arg-type]
        matcher.add_pattern("PATTERN p EVENT SEQ(A a, STRICT NOT B, C c)")
        assert len(matcher.process(EventBatch.from_events(events)).matches()) == expected


def test_limit_counts_by_event_in_the_order_of_the_log() -> None:
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b) LIMIT 1")
    rows = [("A", 1), ("A", 2), ("B", 3), ("B", 3)]
    events = [Event(id=f"{name}{n}", type=name, time_us=time_us, key="k") for n, (name, time_us) in enumerate(rows)]
    output = matcher.process(EventBatch.from_events(events))
    found = [(match.bindings["a"], match.bindings["b"]) for match in output.matches()]
    assert found == [(("A0",), ("B2",)), (("A0",), ("B3",))]
    assert [(loss.event_id, loss.dropped) for loss in output.overflows()] == [("B2", 1), ("B3", 1)]


def test_a_strict_not_that_takes_an_event_of_the_same_time_leaves_nothing_to_time_out() -> None:
    text = "PATTERN p EVENT AND(SEQ(A a, STRICT NOT A n, A b), OR(A c, A d)) WITHIN 2 us EMIT TIMEOUTS"
    events = [Event(id=f"e{time_us}", type="A", time_us=time_us, key="k") for time_us in range(2)]
    matcher = Matcher(ties="simultaneous")
    matcher.add_pattern(text)
    outputs = [matcher.process(EventBatch.from_events(events)), matcher.finish()]
    assert [timeout for output in outputs for timeout in output.timeouts()] == []

"""Whether the work of a pattern is bounded per event, and what is said where it is not."""

from __future__ import annotations

import math

import pytest

from nfa import Matcher, parse_pattern
from nfa.work_bounds import TraceEnds, growth_of
from streams import Event, EventBatch

RISING = "SEQ(A{3} a [v > coalesce(prev(v), -1)], B b)"
GROWTH = {
    RISING: 3,
    "SEQ(A+ a [v > coalesce(prev(v), -1)], B b)": math.inf,
    "SEQ(A a, B b [b.v > a.v])": 1,
    "SEQ(A a, A b [b.v > a.v], C c [c.v > b.v])": 2,
    "SEQ(A a, NEXT B b [b.v > a.v])": 1,
    "SEQ(A a, NOT X, B b)": 1,
    "SEQ(A a, NOT X)": 1,
    "SEQ(A+ a, B b) SELECT NEXT": 2,
    "SEQ(A+ a, B b) SELECT STRICT": 1,
    "SEQ(A a, A b [b.v > a.v], NEXT B b2, C c [c.v > a.v])": 2,
    "SEQ(A a, A b [b.v > a.v], WITHIN 5 us B c)": 1,
    "SEQ(A a, B b) SELECT SKIP TO NEXT": 1,
    "SEQ(A a, B b)": 0,
    "A+ a": 0,
    "A a [v > 1]": 0,
    "SEQ(A a, B b [b.v > a.v]) WITHIN 10 us": 0,
    "SEQ(A a, WITHIN 10 us B b [b.v > a.v])": 0,
    "SEQ(A a, WITHIN 10 us NOT X)": 0,
    "SEQ(A a, STRICT B b [b.v > a.v])": 0,
    "SEQ(A{1,3} a, B b [b.v > first(a.v)]) SELECT STRICT": 0,
}


def codes(text: str, *, has_trace_end: bool = True) -> list[str]:
    return [
        notice.code
        for notice in TraceEnds(has_trace_end=has_trace_end).warnings_of(parse_pattern(f"PATTERN p EVENT {text}"))
    ]


def held(text: str, events: int) -> int:
    """The number of nodes retained after ``events`` events of one trace."""
    made = Matcher()
    made.add_pattern(f"PATTERN p EVENT {text}")
    batch = [Event(id=str(n), type="A", time_us=n, key="k", data={"v": n}) for n in range(events)]
    made.process(EventBatch.from_events(batch))
    return made.stats.nodes


@pytest.mark.parametrize("text", GROWTH)
def test_the_growth_of_a_pattern(text):
    assert growth_of(parse_pattern(f"PATTERN p EVENT {text}")) == GROWTH[text]


def test_partners_of_an_equality_are_found_and_not_met():
    assert growth_of(parse_pattern("PATTERN p EVENT SEQ(A a, B b [b.id = a.id])")) == 0
    assert growth_of(parse_pattern("PATTERN p EVENT SEQ(A a, B b [b.id = a.id], C c [c.v > b.v])")) == 1


def test_where_events_of_one_time_are_not_ordered_more_is_met_one_by_one():
    pattern = parse_pattern("PATTERN p EVENT SEQ(A a, B b)")
    assert (growth_of(pattern), growth_of(pattern, is_log_ordered=False)) == (0, 1)
    (notice,) = TraceEnds(has_trace_end=False, is_log_ordered=False).warnings_of(pattern)
    assert notice.code == "unbounded-work"


RUN_ENGINE = [text for text in GROWTH if text not in ("SEQ(A a, B b)", "A+ a")]


@pytest.mark.compiled
@pytest.mark.parametrize("text", RUN_ENGINE)
def test_partial_matches_grow_as_it_says(text):
    growth = GROWTH[text]
    if growth == math.inf:
        assert held(text, 18) == 100_000  # the most that is held
        return
    few, many = held(text, 32), held(text, 64)
    if growth == 0:
        assert many <= 32  # as many as the window or the pattern's length allow
    else:
        assert 2 ** (growth - 0.5) <= many / few <= 2 ** (growth + 0.5)


@pytest.mark.parametrize("text", [text for text, growth in GROWTH.items() if growth > 0])
def test_traces_that_do_not_end_are_warned_of_once(text):
    found = codes(text, has_trace_end=False)
    assert found.count("unbounded-work") == 1
    assert "no-within" not in found


@pytest.mark.parametrize("text", [text for text, growth in GROWTH.items() if growth == 0])
def test_bounded_work_is_no_reason_for_a_warning(text):
    for has_trace_end in (False, True):
        assert "unbounded-work" not in codes(text, has_trace_end=has_trace_end)


def test_traces_that_end_are_warned_of_repetitions_alone():
    assert codes(RISING) == ["unbounded-work"]
    assert codes("SEQ(A+ a [v > coalesce(prev(v), -1)], B b)") == ["unbounded-repetition", "unbounded-work"]
    assert codes("SEQ(A a, B b [b.v > a.v], C c [c.v > b.v])") == []
    assert codes("SEQ(A{2} a [v > coalesce(prev(v), -1)], B b)") == []


def test_the_warning_says_what_bounds_the_work():
    (notice,) = TraceEnds(has_trace_end=True).warnings_of(parse_pattern(f"PATTERN p EVENT {RISING}"))
    assert "with power 3 of the trace's length" in notice.message
    assert all(way in notice.message for way in ("WITHIN bounds it", "fewer events", "SELECT NEXT", "equality"))
    assert notice.position.column == 22

"""Events out of order: what time has decided stays decided, by both engines, however a stream is cut into batches."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher, parse_pattern
from streams import Event, EventBatch
from tests.references.patterns.outcome import reference_matches

MEANT = (  # none has a limit between steps or of a part: with events out of order these are less exact
    "SEQ(A a, B b) WITHIN 4 s",
    "SEQ(A a, B b) WHERE a.v <= b.v WITHIN 4 s",
    "SEQ(A a, B b, C c) WITHIN 5 s",
    "SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s",
    "SEQ(A a, B b, C c) WITHIN 5 s SELECT NEXT",
    "SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s SELECT NEXT",
    "AND(A a, B b) WITHIN 3 s",
    "SEQ(A a, B+ b, C c) WITHIN 6 s",
    "SEQ(A a, NOT B b, C c) WITHIN 4 s",
    "SEQ(A a, NOT B b) WITHIN 4 s",
    "SEQ(A a, B b, NOT C [v = a.v], WITHIN 2 s NOT A) WITHIN 5 s",
    "SEQ(AND(A a, B b), WITHIN 2 s NOT C) WITHIN 4 s",
    "SEQ(NOT C c, A a, B b) WITHIN 4 s",
    "SEQ(NOT C c, A a) WITHIN 4 s",
)
CUT = (
    *MEANT,
    "SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s EMIT TIMEOUTS",
    "SEQ(A a, B b, NOT C c) WITHIN 4 s EMIT TIMEOUTS",
    "SEQ(A a, B+ b GREEDY) WITHIN 5 s",
    "SEQ(A a, B b) WITHIN 4 s SELECT SKIP PAST LAST",
    "SEQ(A a, NOT B b) WITHIN 4 s SELECT SKIP TO NEXT",
    "SEQ(A a, WITHIN 2 s B b, C c) WHERE a.v <= c.v WITHIN 5 s",
    "SEQ(A a, B b) WHERE [key, v] WITHIN 6 s",
    "SEQ(A a, NOT B b)",
)
SECOND = 1_000_000


def event(number, event_type, at, key="k", v=0):
    return Event(id=f"e{number}", type=event_type, time_us=at * SECOND, key=key, data={} if v is None else {"v": v})


def made(pattern, **options):
    matcher = Matcher(**options)
    matcher.add_pattern(f"PATTERN p EVENT {pattern}")
    return matcher


def results(outputs):
    """What was emitted, in any order: matches with how they were decided, timeouts, corrections."""
    lists = [(output.matches(), output.timeouts(), output.corrections()) for output in outputs]
    return [sorted(map(repr, itertools.chain(*one))) for one in zip(*lists, strict=True)]


def fed(matcher, events, sizes):
    outputs, rest = [], events
    for size in [*sizes, len(events)]:
        outputs.append(matcher.process(EventBatch.from_events(rest[:size])))
        rest = rest[size:]
    return results([*outputs, matcher.finish()])


# The last event of each is older than one before it, of the same trace or of another, that has passed its window.
OLD = (
    [event(0, "A", 3), event(1, "X", 100), event(2, "B", 5)],
    [event(0, "A", 3), event(1, "X", 100, "m"), event(2, "B", 5)],
    [event(0, "X", 100, "m"), event(1, "A", 3), event(2, "B", 5)],
    [event(0, "A", 10), event(1, "B", 3)],
)


@pytest.mark.parametrize("events", OLD, ids=range(len(OLD)))
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b) WITHIN 4 s", "SEQ(A a, B b) WHERE a.v <= b.v WITHIN 4 s"])
def test_a_window_that_time_has_passed_is_closed_in_both_engines(pattern, events):
    for size in (1, 2, 3):
        assert fed(made(pattern), events, [size]) == [[], [], []]


@pytest.mark.parametrize("events", OLD[:3], ids=range(3))
def test_a_deadline_that_time_has_passed_stays_decided(events):
    for sizes in ([], [1], [2], [1, 1]):
        matches, timeouts, _ = fed(made("SEQ(A a, NOT B b) WITHIN 4 s"), events, sizes)
        assert (len(matches), timeouts) == (1, [])
        matches, timeouts, _ = fed(made("SEQ(A a, B b) WHERE a.v <= b.v WITHIN 4 s EMIT TIMEOUTS"), events, sizes)
        assert (matches, len(timeouts)) == ([], 1)


def test_an_event_out_of_order_is_bound_while_the_window_is_open():
    events = [event(0, "A", 3), event(1, "X", 6, "m"), event(2, "B", 2)]
    for pattern in ("SEQ(A a, B b) WITHIN 5 s", "SEQ(A a, B b) WHERE a.v <= b.v WITHIN 5 s"):
        for sizes in ([], [1], [2], [1, 1]):
            assert len(fed(made(pattern), events, sizes)[0]) == 1


@pytest.mark.parametrize(("last", "at", "number"), [("A", 2, 0), ("A", 3, 0), ("A", 4, 1), ("B", 2, 2)])
def test_the_limit_of_a_not_at_the_end_counts_from_the_latest_event_by_time(last, at, number):
    pattern = "SEQ(A a, B b, NOT C [v = a.v], WITHIN 2 s NOT A) WITHIN 5 s"
    events = [event(0, "A", 2, v=0), event(1, "B", 0, v=1), event(2, last, at, v=2)]
    assert len(reference_matches([parse_pattern(f"PATTERN p EVENT {pattern}")], events)) == number
    for sizes in ([], [1], [2], [1, 1]):
        assert len(fed(made(pattern), events, sizes)[0]) == number


@st.composite
def streams(draw):
    rows = draw(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(-5, 4), st.sampled_from("kkm")), max_size=14))
    time, events = 0, []
    for number, (event_type, step, key) in enumerate(rows):
        at = max(0, time + step)
        time = max(time, at)
        events.append(event(number, event_type, at, key, v=(0, 1, 2, None)[number % 4]))
    return events


@settings(max_examples=150)
@given(events=streams(), pattern=st.sampled_from(MEANT))
def test_events_out_of_order_mean_what_the_reference_says(events, pattern):
    expected = reference_matches([parse_pattern(f"PATTERN p EVENT {pattern}")], events)
    matcher = made(pattern)
    found = [*matcher.process(EventBatch.from_events(events)).matches(), *matcher.finish().matches()]

    def named(matches):
        return sorted((match.key, sorted(match.bindings.items())) for match in matches)

    assert named(found) == named(expected)


@settings(max_examples=150)
@given(data=st.data(), events=streams(), pattern=st.sampled_from(CUT))
def test_batches_and_saved_states_change_nothing_where_events_are_out_of_order(data, events, pattern):
    options = data.draw(
        st.sampled_from([{}, {"end_events": ["C"]}, {"idle_timeout_us": 3 * SECOND}, {"tracks": "bound"}])
    )
    expected = fed(made(pattern, **options), events, [])
    matcher, outputs, rest = made(pattern, **options), [], events
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        outputs.append(matcher.process(EventBatch.from_events(rest[:size])))
        rest = rest[size:]
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
    assert results([*outputs, matcher.finish()]) == expected

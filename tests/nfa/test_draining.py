"""Versions that go on for the partial matches that they had when the next version came."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Matcher
from streams import Event, EventBatch

OLD = "PATTERN p EVENT SEQ(A a, B b) WITHIN 10 s"
NEW = "PATTERN p EVENT SEQ(A a, B b, C c) WITHIN 10 s"
OPTIONAL = (
    "PATTERN p EVENT SEQ(A a, B b) WITHIN 10 s",
    "PATTERN p EVENT SEQ(A a, B b)",
    "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 4 s",
    "PATTERN p EVENT SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s EMIT TIMEOUTS",
    "PATTERN p EVENT SEQ(A a, B b) WHERE [key, v] WITHIN 6 s",
)


def event(number, event_type, key="k", at=None, **data):
    time_us = (number if at is None else at) * 1_000_000
    return Event(id=f"e{number}", type=event_type, time_us=time_us, key=key, data=data)


def told(output):
    matches = [(match.version, match.bindings, match.key) for match in output.matches()]
    timeouts = [(timeout.version, timeout.bindings, timeout.key) for timeout in output.timeouts()]
    return matches, timeouts


def versions(matcher):
    return sorted(version for _, version in matcher.versions)


def run(matcher, *events):
    return [(match.version, match.bindings) for match in matcher.process(EventBatch.from_events(events)).matches()]


def test_the_old_version_tells_what_began_before_and_the_new_one_what_begins_after():
    matcher = Matcher()
    matcher.add_pattern(OLD, version=1)
    assert run(matcher, event(1, "A")) == []
    matcher.add_pattern(NEW, version=2, drains=True)
    found = run(matcher, event(2, "A"), event(3, "B"), event(4, "C"))
    assert found == [(1, {"a": ("e1",), "b": ("e3",)}), (2, {"a": ("e2",), "b": ("e3",), "c": ("e4",)})]


def test_without_draining_the_old_version_is_gone():
    matcher = Matcher()
    matcher.add_pattern(OLD, version=1)
    run(matcher, event(1, "A"))
    matcher.add_pattern(NEW, version=2)
    assert run(matcher, event(2, "B")) == []
    assert versions(matcher) == [2]


def test_it_is_given_up_when_its_window_has_passed():
    matcher = Matcher()
    matcher.add_pattern(OLD, version=1)
    run(matcher, event(1, "A"))
    matcher.add_pattern(NEW, version=2, drains=True)
    run(matcher, event(11, "X"))
    assert versions(matcher) == [1, 2]
    run(matcher, event(12, "X"))
    assert versions(matcher) == [2]


def test_time_alone_gives_it_up():
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, NOT B) WITHIN 10 s", version=1)
    run(matcher, event(1, "A"))
    matcher.add_pattern(NEW, version=2, drains=True)
    (match,) = matcher.pass_time(12_000_000).matches()
    assert (match.version, match.bindings) == (1, {"a": ("e1",)})
    assert versions(matcher) == [2]


@pytest.mark.parametrize("way", ["remove", "replace", "drain"])
def test_a_later_change_gives_it_up(way):
    matcher = Matcher()
    matcher.add_pattern("PATTERN p EVENT SEQ(A a, B b)", version=1)
    run(matcher, event(1, "A"))
    matcher.add_pattern(NEW, version=2, drains=True)
    if way == "remove":
        matcher.remove_pattern("p")
        assert versions(matcher) == []
    else:
        matcher.add_pattern(OLD, version=3, drains=way == "drain")
        assert versions(matcher) == ([2, 3] if way == "drain" else [3])


def test_a_version_that_has_seen_nothing_leaves_nothing():
    matcher = Matcher()
    matcher.add_pattern(OLD, version=1)
    matcher.add_pattern(NEW, version=2, drains=True)
    assert versions(matcher) == [2]


def test_events_that_come_after_the_last_moment_are_not_its_own_however_they_are_cut():
    """An event out of order, with a time in the old window, arrives after the event that closed the window."""
    events = [event(2, "X", at=30), event(3, "B", at=3)]
    found = []
    for cut in (0, 1, 2):
        matcher = Matcher()
        matcher.add_pattern(OLD, version=1)
        run(matcher, event(1, "A"))
        matcher.add_pattern(NEW, version=2, drains=True)
        found.append(run(matcher, *events[:cut]) + run(matcher, *events[cut:]))
    assert found[0] == found[1] == found[2]


@st.composite
def streams(draw):
    rows = draw(st.lists(st.tuples(st.sampled_from("ABCX"), st.integers(0, 4), st.sampled_from("km")), max_size=24))
    time, events = 0, []
    for number, (event_type, step, key) in enumerate(rows):
        time = max(0, time + step - (1 if step == 0 else 0))
        events.append(event(number, event_type, key, at=time, v=number % 3))
    return events


@settings(max_examples=60)
@given(data=st.data(), old=st.sampled_from(OPTIONAL), new=st.sampled_from(OPTIONAL))
def test_both_versions_find_what_they_find_alone(data, old, new):
    """The old one, what begins before the switch; the new one, what begins behind it; however all is cut and saved."""
    events = data.draw(streams())
    switch = data.draw(st.integers(0, len(events)))
    before, after = events[:switch], events[switch:]
    firsts = {one.id for one in before}

    alone = Matcher()
    alone.add_pattern(old, version=1)
    expected = [told(alone.process(EventBatch.from_events(events))), told(alone.finish())]
    matches = [one for part in expected for one in part[0] if {i for ids in one[1].values() for i in ids} & firsts]
    timeouts = [one for part in expected for one in part[1] if {i for ids in one[1].values() for i in ids} & firsts]
    fresh = Matcher()
    fresh.process(EventBatch.from_events(before))
    fresh.add_pattern(new, version=2)
    for part in (told(fresh.process(EventBatch.from_events(after))), told(fresh.finish())):
        matches += part[0]
        timeouts += part[1]

    matcher = Matcher()
    matcher.add_pattern(old, version=1)
    outputs = [told(matcher.process(EventBatch.from_events(before)))]
    matcher.add_pattern(new, version=2, drains=True)
    while after:
        size = data.draw(st.integers(1, len(after)))
        outputs.append(told(matcher.process(EventBatch.from_events(after[:size]))))
        after = after[size:]
        if data.draw(st.booleans()):
            matcher = Matcher.load(matcher.dump(), {})
    outputs.append(told(matcher.finish()))
    assert sorted(map(repr, matches)) == sorted(repr(one) for part in outputs for one in part[0])
    assert sorted(map(repr, timeouts)) == sorted(repr(one) for part in outputs for one in part[1])


FOUND = (  # by the test above: both versions; type, time, key and v of the events, of which six are before the switch
    (
        "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 4 s",
        "PATTERN p EVENT SEQ(A a, B b) WITHIN 10 s",
        "A0k0 A0k1 A0k2 A0k0 A0m1 A4k2 B3m0",
    ),
    (
        "PATTERN p EVENT SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s EMIT TIMEOUTS",
        "PATTERN p EVENT SEQ(A a, B b, C c) WHERE a.v <= c.v WITHIN 5 s EMIT TIMEOUTS",
        "A0k0 A0k1 A3k2 A2k0 A3k1 A5m2 B4k0",
    ),
)


@pytest.mark.parametrize(("old", "new", "rows"), FOUND, ids=range(len(FOUND)))
def test_an_event_behind_one_that_has_passed_a_deadline_changes_nothing(old, new, rows):
    """A draining version finds the matches that it finds alone, with any cut; the new version has seen one B only."""
    events = [event(n, row[0], row[2], at=int(row[1]), v=int(row[3])) for n, row in enumerate(rows.split())]
    expected = None
    for drains in (False, True):
        for cut in range(7):
            matcher = Matcher()
            matcher.add_pattern(old, version=1)
            outputs = [told(matcher.process(EventBatch.from_events(part))) for part in (events[:cut], events[cut:6])]
            if drains:
                matcher.add_pattern(new, version=2, drains=True)
            outputs.append(told(matcher.process(EventBatch.from_events(events[6:]))))
            outputs.append(told(matcher.finish()))
            found = [sorted(repr(one) for part in outputs for one in part[kind]) for kind in (0, 1)]
            expected = expected or found
            assert found == expected


def test_a_state_without_old_versions_says_nothing_of_them():
    matcher = Matcher()
    matcher.add_pattern(OLD, version=1)
    assert b'"draining"' not in matcher.dump()
    run(matcher, event(1, "A"))
    matcher.add_pattern(NEW, version=2, drains=True)
    assert b'"draining"' in matcher.dump()
    assert versions(Matcher.load(matcher.dump(), {})) == [1, 2]

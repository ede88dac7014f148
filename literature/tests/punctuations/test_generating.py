"""Punctuations made by a buffer: its releases equal the reference, and no released event breaks a punctuation."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns, JoinStateError
from literature.errors import PunctuationRefused
from literature.punctuations import (
    BufferGenerator,
    BufferRules,
    Finished,
    FinitePunctuation,
    HeldEvent,
    OneOf,
    ProbablePunctuation,
    Range,
    Released,
    Scope,
    constant,
    hint_form,
    read_hint,
)
from literature.punctuations.reference import broken, reference_release
from literature.spilling import SpillingJoin
from literature.spilling.reference import ReferencePairJoin

LEAST = -(1 << 63)

rules_of_buffers = st.builds(
    BufferRules,
    events=st.sampled_from([1, 2, 3, 7]),
    us=st.sampled_from([None, 1, 4, 10]),
    order=st.sampled_from(["arrival", "sorted", "partitioned"]),
    names=st.sampled_from(["bounds", "values"]),
    disorder=st.sampled_from([None, 0, 1, 3]),
) | st.builds(BufferRules, us=st.sampled_from([1, 5]), disorder=st.sampled_from([None, 2]))


@st.composite
def streams(draw):
    """Events whose keys rise roughly; some have none, some come later than any bound allows."""
    steps = st.tuples(st.integers(-4, 3) | st.none() | st.just(1), st.integers(0, 3))
    key, time = draw(st.sampled_from([0, LEAST])), 0
    events: list[HeldEvent] = []
    for step, wait in draw(st.lists(steps, max_size=40)):
        time += wait
        own = None if step is None else max(key + step, LEAST)
        key = max(key, key if own is None else own)
        events.append(HeldEvent(len(events), own, time))
    return events


def released_of(generator, events):
    return generator.push([event.key for event in events], [event.time_us for event in events])


@settings(max_examples=300)
@given(streams(), rules_of_buffers, st.integers(0, 40))
def test_a_buffer_releases_what_the_reference_does_whatever_the_cut_and_the_reload(events, rules, border):
    expected = reference_release(events, rules)
    assert sorted(expected.events + expected.late) == events
    assert broken(expected) == []
    generator = BufferGenerator(rules)
    released = released_of(generator, events[:border])
    saved, generator = generator.dump(), BufferGenerator(rules)
    generator.load(saved)
    released.join(released_of(generator, events[border:]))
    released.join(generator.finish())
    assert generator.held == 0
    assert released == expected


def test_the_check_of_broken_punctuations_finds_them():
    first, second = HeldEvent(0, 5, 0), HeldEvent(1, 9, 0)
    said = FinitePunctuation(pattern=constant(5), scope=Scope(events=1))
    assert broken(Released(events=[first, second], said=[(0, said)])) == []
    wider = replace(said, scope=Scope(events=2))
    assert broken(Released(events=[first, second], said=[(0, wider)])) == [(second, wider)]
    low = Finished(5)
    assert broken(Released(events=[second, first], said=[(1, low)])) == [(first, low)]
    assert broken(Released(events=[first, second], said=[(1, low)])) == []


def test_a_low_mark_that_ignored_the_disorder_would_be_broken():
    """The released stream itself reveals a deliberate mistake."""
    rules = BufferRules(events=2, disorder=3)
    events = [HeldEvent(place, key, place) for place, key in enumerate([10, 11, 9, 12])]
    right = reference_release(events, rules)
    assert (broken(right), right.late) == ([], [])
    marks = [(place, Finished(said.to + 3) if isinstance(said, Finished) else said) for place, said in right.said]
    assert [event.key for event, _ in broken(replace(right, said=marks))] == [9]


def test_what_is_said_of_a_batch():
    def said(**rules):
        generator = BufferGenerator(BufferRules(events=4, **rules))
        released = generator.push([7, 3, None, 7, 5], [0, 1, 2, 3, 4])
        return [event.key for event in released.events], released.said

    scope = Scope(events=4)
    assert said() == ([None, 7, 3, 7, 5], [(1, FinitePunctuation(pattern=Range(low=3, high=7), scope=scope))])
    assert said(order="sorted", names="values", disorder=1) == (
        [None, 3, 5, 7, 7],
        [(1, FinitePunctuation(pattern=OneOf(frozenset({3, 5, 7})), scope=scope)), (5, Finished(5))],
    )
    each = [FinitePunctuation(pattern=constant(key), scope=Scope(events=n)) for key, n in ((3, 1), (5, 1), (7, 2))]
    assert said(order="partitioned") == ([None, 3, 5, 7, 7], list(zip((1, 2, 3), each, strict=True)))


def test_an_event_below_a_mark_that_was_said_is_kept_back():
    generator = BufferGenerator(BufferRules(events=2, disorder=3))
    released = generator.push([10, 12, 8, 9], [0, 1, 2, 3])
    assert released.late == [HeldEvent(2, 8, 2)]
    assert [event.key for event in released.events] == [10, 12]
    assert released.said[-1] == (2, Finished(8))
    assert generator.held == 1  # 9 is within the disorder


def test_events_are_held_no_longer_than_declared():
    generator = BufferGenerator(BufferRules(us=10))
    assert generator.push([1, 2], [100, 109]).events == []
    assert [event.key for event in generator.push([3], [110]).events] == [1, 2]
    assert generator.advance(119).events == []
    assert [event.key for event in generator.advance(120).events] == [3]


@settings(max_examples=100)
@given(streams(), streams(), rules_of_buffers)
def test_a_join_of_what_two_buffers_released_finds_all_pairs_and_holds_less(first, second, rules):
    """The generated punctuations purge; only an event that a buffer kept back is missing."""
    released = [BufferGenerator(rules), BufferGenerator(rules)]
    parts = [(released_of(one, events), one.finish()) for one, events in zip(released, (first, second), strict=True)]
    meaning = ReferencePairJoin()
    with tempfile.TemporaryDirectory() as folder:
        join, found = SpillingJoin(Path(folder)), set()
        for number, (early, late) in enumerate(parts):
            early.join(late)
            items, patterns = early.items(number)
            found |= set(map(tuple, join.push(items, patterns).members.tolist()))
            for event in early.events:
                meaning.take_event(number, event.key, event.time_us)
        assert found == {pair[:2] for pair in meaning.pairs}
        assert join.stats.violations == 0
        marks = [
            max((said.to for _, said in early.said if isinstance(said, Finished)), default=LEAST - 1)
            for early, _ in parts
        ]
        for number, (early, _) in enumerate(parts):  # what the other input finished is not held
            open_keys = [event for event in early.events if event.key is not None and event.key > marks[1 - number]]
            assert join.held[number] == len(open_keys)


def test_an_input_that_is_buffered_purges_the_other_one(tmp_path):
    join, generator = SpillingJoin(tmp_path), BufferGenerator(BufferRules(events=10, disorder=2))
    join.push(ItemColumns.of([(Item.EVENT, 0, key, 0) for key in range(100)]))
    found = join.push(*generator.push(list(range(95)), [1] * 95).items(1))
    assert len(found.members) == 90
    assert join.held == (100 - 87, 90)  # keys up to 89 - 2 - 1 are finished


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="number of events or a time"):
        BufferRules()
    with pytest.raises(ValueError, match="not negative"):
        BufferRules(events=1, disorder=-1)
    with pytest.raises(JoinStateError, match="cannot be read"):
        BufferGenerator(BufferRules(events=1)).load({"held": []})
    with pytest.raises(PunctuationRefused, match="at least 1"):
        Scope(is_rest=True)
    with pytest.raises(PunctuationRefused, match="from 0 to 1"):
        ProbablePunctuation(pattern=constant(1), scope=Scope(us=1), probability=1.5)


def test_hints_are_read_as_they_were_written():
    finite = FinitePunctuation(pattern=Range(low=1, high=5), scope=Scope(us=7))
    probable = ProbablePunctuation(
        pattern=OneOf(frozenset({1, 2})), scope=Scope(events=3, is_rest=True), probability=0.5, reading="per-event"
    )
    assert [read_hint(hint_form(one)) for one in (finite, probable)] == [finite, probable]

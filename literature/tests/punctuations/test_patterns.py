"""Patterns of punctuations, and the set of keys that they close, compared with the reference."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from literature.errors import PunctuationRefused
from literature.punctuations import (
    Anything,
    ClosedSet,
    Nothing,
    OneOf,
    Range,
    closed_of,
    constant,
    is_empty,
    key_pattern,
    matches,
    read_pattern,
)
from literature.punctuations.reference import ReferenceClosedSet

DOMAINS: dict[Any, list[Any]] = {
    "integer": list(range(-2, 9)),
    "number": [-1.5, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, math.inf, -math.inf],
    "text": ["", "a", "ab", "b", "ba", "c", "é", "𝕏"],
}


def patterns_of(values):
    bounds = st.none() | st.sampled_from(values)
    ranges = st.builds(Range, low=bounds, high=bounds, has_low=st.booleans(), has_high=st.booleans())
    lists = st.builds(OneOf, st.frozensets(st.sampled_from(values), max_size=3))
    return st.one_of(ranges, lists, lists, st.just(Nothing()), *([st.just(Anything())] if len(values) == 8 else []))


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_closed_set_equals_its_meaning(domain):
    values = DOMAINS[domain]

    @settings(max_examples=300)
    @given(st.lists(patterns_of(values), max_size=8))
    def check(patterns):
        closed, meaning = ClosedSet(domain), ReferenceClosedSet()
        for pattern in patterns:
            before = {value for value in values if meaning.covers(value)}
            is_new = closed.add(pattern)
            meaning.add(pattern)
            after = {value for value in values if meaning.covers(value)}
            assert {value for value in values if closed.covers(value)} == after
            assert is_new or before == after
        again = closed_of(closed.patterns(), domain)
        assert [again.covers(value) for value in values] == [closed.covers(value) for value in values]
        assert len(again) == len(closed)

    check()


@settings(max_examples=200)
@given(st.permutations(range(12)))
def test_dense_integers_become_one_interval(order):
    closed = ClosedSet()
    assert all(closed.add(constant(value)) for value in order)
    assert closed.patterns() == [Range(low=0, high=11)]
    assert not any(closed.add(constant(value)) for value in order)


def test_intervals_are_merged_where_they_touch():
    closed = closed_of([Range(low=1, high=3), Range(low=6, high=9), constant(20)], "integer")
    assert len(closed) == 3
    assert closed.add(Range(low=3, high=6, has_low=False, has_high=False))
    assert closed.patterns() == [constant(20), Range(low=1, high=9)]
    numbers = closed_of([Range(low=1, high=3), Range(low=4, high=9)], "number")
    assert not numbers.covers(3.5)
    assert numbers.add(Range(low=3, high=4, has_low=False, has_high=False))
    assert numbers.intervals() == [Range(low=1, high=9)]


def test_nothing_and_crossed_ranges_close_nothing():
    closed = ClosedSet()
    for pattern in (Nothing(), OneOf(frozenset()), Range(low=5, high=3), Range(low=5, high=5, has_high=False)):
        assert is_empty(pattern)
        assert not closed.add(pattern)
    assert not closed.add(Range(low=1, high=2, has_low=False, has_high=False))
    assert len(closed) == 0


@settings(max_examples=200)
@given(st.lists(patterns_of(DOMAINS["integer"]), max_size=6), patterns_of(DOMAINS["integer"]))
def test_whether_all_keys_of_a_pattern_are_closed(patterns, pattern):
    closed = closed_of(patterns, "integer")
    values = range(-4, 11)  # one value beyond each bound represents all further ones
    assert closed.covers_all(pattern) == all(closed.covers(value) for value in values if matches(pattern, value))


def test_null_and_nan_are_never_closed():
    closed = closed_of([Anything()], "number")
    assert closed.covers(1.5)
    assert not closed.covers(None)
    assert not closed.covers(math.nan)
    assert not matches(Range(), math.nan)
    assert matches(Anything(), None)


def test_a_single_key_can_be_forgotten_and_an_interval_not():
    closed = closed_of([constant(1), Range(low=5, high=8)], "integer")
    assert closed.discard(1)
    assert not closed.covers(1)
    assert not closed.discard(6)
    assert closed.covers(6)


def test_values_of_another_type_are_refused():
    wrong: list[tuple[Any, Any]] = [
        ("integer", constant("a")),
        ("integer", constant(1.5)),
        ("integer", constant(True)),
        ("integer", constant(1 << 63)),
        ("integer", Range(low=-(1 << 63) - 1)),
        ("text", Range(low=1)),
        ("number", constant(math.nan)),
    ]
    for domain, pattern in wrong:
        with pytest.raises(PunctuationRefused, match="the keys have the type"):
            ClosedSet(domain).add(pattern)


def test_patterns_have_a_form_in_json():
    assert read_pattern({"eq": 180}) == constant(180)
    assert read_pattern({"in": [1, 2]}) == OneOf(frozenset({1, 2}))
    assert read_pattern({"in": []}) == Nothing()
    assert read_pattern({"range": {"ge": 1, "lt": 9}}) == Range(low=1, high=9, has_high=False)
    assert read_pattern({"range": {"gt": "a"}}) == Range(low="a", has_low=False)
    assert read_pattern({"any": True}) == Anything()
    assert read_pattern({"none": True}) == Nothing()


@pytest.mark.parametrize(
    "form",
    [
        3,
        {},
        {"eq": 1, "in": [1]},
        {"eq": None},
        {"in": 3},
        {"in": [True]},
        {"any": False},
        {"range": {}},
        {"range": {"ge": 1, "gt": 0}},
        {"range": {"above": 1}},
        {"range": {"ge": 1, "le": "b"}},
    ],
)
def test_other_forms_are_refused(form):
    with pytest.raises(PunctuationRefused, match="got"):
        read_pattern(form)


def test_only_a_punctuation_without_other_restrictions_closes_keys():
    assert key_pattern({"item": constant(180)}, "item") == constant(180)
    assert key_pattern({"item": constant(180), "price": Anything()}, "item") == constant(180)
    assert key_pattern({"item": constant(180), "price": constant(3)}, "item") is None
    assert key_pattern({"item": constant(180), "price": Nothing()}, "item") == Nothing()
    assert key_pattern({}, "item") == Anything()

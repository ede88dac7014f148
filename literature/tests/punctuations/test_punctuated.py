"""The windowed join with punctuations of ranges, against their expansion into constants; and odd input."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns, JoinStateError, Window, WindowJoin
from literature.errors import PunctuationBroken, PunctuationRefused
from literature.punctuations import Anything, Nothing, OneOf, PunctuatedJoin, Range, constant, matches

DOMAIN = range(-1, 7)

windows = st.one_of(
    st.just(Window()),
    st.builds(Window, st.just("time"), st.integers(1, 6)),
    st.builds(Window, st.just("events"), st.integers(0, 3)),
    st.builds(Window, st.just("events-of-key"), st.integers(1, 3)),
)
values = st.integers(-1, 6)
patterns = st.one_of(
    st.builds(Range, low=values | st.none(), high=values, has_low=st.booleans(), has_high=st.booleans()),
    st.builds(Range, low=values, high=values),
    st.builds(OneOf, st.frozensets(values, max_size=2)),
    st.sampled_from([Nothing(), Anything()]),
)


@st.composite
def workloads(draw):
    """Windows and items (kind, input, key, time, pattern); no event has a key that every input has closed."""
    declared = draw(st.lists(windows, min_size=2, max_size=3))
    kinds = st.sampled_from([Item.EVENT] * 6 + [Item.CLOSING] * 3 + [Item.PLACE, Item.TIME])
    steps = st.tuples(kinds, st.integers(0, len(declared) - 1), values, st.integers(0, 3), patterns)
    time, items = 0, []
    closed: list[set[int]] = [set() for _ in declared]
    for kind, number, key, step, pattern in draw(st.lists(steps, max_size=30)):
        time += step
        if kind is Item.EVENT and all(key in one for one in closed):
            continue
        if kind is Item.CLOSING:
            new = {value for value in DOMAIN if matches(pattern, value)}
            if isinstance(pattern, OneOf) and new & closed[number]:  # after all inputs, it would begin the key again
                continue
            closed[number] |= new
        items.append((kind, number, key, time, pattern))
    return declared, items


def columns(items):
    """Items as columns, with the patterns of the closings."""
    said = [item[4] for item in items if item[0] is Item.CLOSING]
    rows, place = [], 0
    for kind, number, key, time, _ in items:
        rows.append((kind, number, (place if kind is Item.CLOSING else key) % (1 << 64), time))
        place += kind is Item.CLOSING
    return ItemColumns.of(rows), said


@dataclass
class Expanded:
    """A join whose ranges are expanded into constants."""

    join: WindowJoin
    over: set = field(default_factory=set)
    closed: set = field(default_factory=set)

    def push(self, kind, number, key, time, pattern):
        if kind is Item.CLOSING:
            keys = [value for value in DOMAIN if matches(pattern, value) and (number, value) not in self.closed]
            self.closed |= {(number, value) for value in keys}
            rows = [(Item.TIME, 0, 0, time), *((kind, number, (1 << 40) + value, time) for value in keys)]
        else:
            rows = [(kind, number, (1 << 40) + key, time)]
        found = self.join.push(ItemColumns.of(rows))
        self.over |= {key - (1 << 40) for key in found.closing_keys.tolist()}
        return sorted(found.members.tolist()), len(found.violations)


@settings(max_examples=400)
@given(workloads())
def test_a_range_closes_keys_as_its_constants_would(workload):
    declared, items = workload
    join, meaning = PunctuatedJoin(WindowJoin(declared)), Expanded(WindowJoin(declared))
    over: set[int] = set()
    for item in items:
        found = join.push(*columns([item]))
        members, violations = meaning.push(*item)
        reported = found.joined.closing_keys.view(np.int64).tolist()
        assert not over & set(reported)
        over |= set(reported)
        for said in found.over:
            over |= {key for key in DOMAIN if matches(said.pattern, key) and key not in said.but}
        assert sorted(found.joined.members.tolist()) == members
        assert len(found.joined.violations) == violations
        assert over == meaning.over
        assert join.join.held_sequences().tolist() == meaning.join.held_sequences().tolist()


@settings(max_examples=150)
@given(workloads(), st.data())
def test_neither_cuts_nor_reloads_change_anything(workload, data):
    declared, items = workload
    whole, parts = PunctuatedJoin(WindowJoin(declared)), PunctuatedJoin(WindowJoin(declared))
    border = data.draw(st.integers(0, len(items)))
    expected = whole.push(*columns(items))
    first = parts.push(*columns(items[:border]))
    saved = parts.dump()
    parts = PunctuatedJoin(WindowJoin(declared))
    parts.load(*saved)
    second = parts.push(*columns(items[border:]))
    for name in ("members", "result_times_us", "closing_keys", "closing_causes"):
        both = np.concatenate([getattr(first.joined, name), getattr(second.joined, name)])
        assert both.tolist() == getattr(expected.joined, name).tolist()
    for name in ("result_items", "violations", "closing_items"):
        places = [*getattr(first.joined, name), *(border + place for place in getattr(second.joined, name))]
        assert places == getattr(expected.joined, name).tolist()
    shown = [(said.pattern, said.but) for said in [*first.over, *second.over]]
    assert shown == [(said.pattern, said.but) for said in expected.over]
    assert parts.stats == whole.stats


def pushed(join, *items):
    return join.push(*columns(items))


def test_odd_input_follows_its_policy_and_is_counted():
    join = PunctuatedJoin(WindowJoin([Window(), Window()]))
    pushed(join, (Item.CLOSING, 0, 0, 1, Range(low=1, high=5)), (Item.CLOSING, 0, 0, 2, constant(3)))
    pushed(join, (Item.CLOSING, 0, 0, 2, Range(low=5, high=1)), (Item.CLOSING, 1, 0, 2, Nothing()))
    found = pushed(join, (Item.EVENT, 0, 3, 3, None), (Item.EVENT, 1, 3, 3, None), (Item.PLACE, 1, 0, 1, None))
    assert found.joined.violations.tolist() == [0]
    assert len(found.joined.members) == 0
    pushed(join, (Item.CLOSING, 0, 0, 4, Range(low=2, high=4)), (Item.CLOSING, 1, 0, 4, Anything()))
    stats = join.stats
    assert (stats.late, stats.nulls, stats.empty, stats.wildcards) == (1, 1, 2, 1)
    assert (stats.violations, stats.duplicates) == (1, 2)
    assert join.join.stored == 0


def test_an_input_that_is_finished_purges_the_other_one():
    join = PunctuatedJoin(WindowJoin([Window(), Window()]))
    pushed(join, *((Item.EVENT, 0, key, 0, None) for key in range(50)))
    (said,) = pushed(join, (Item.CLOSING, 1, 0, 1, Anything())).over
    assert (said.pattern, said.but) == (Anything(), frozenset())
    assert join.join.stored == 0
    assert join.is_over(1_000)


def test_late_items_can_be_left_out():
    join = PunctuatedJoin(WindowJoin([Window("time", 5), Window("time", 5)]), late="report")
    found = pushed(join, (Item.EVENT, 0, 1, 10, None), (Item.EVENT, 1, 1, 9, None), (Item.EVENT, 1, 1, 10, None))
    assert found.late == [1]
    assert found.joined.members.tolist() == [[0, 1]]
    assert found.joined.result_items.tolist() == [2]


def test_a_broken_promise_can_stop_the_join():
    for pattern in (constant(3), Range(low=0)):
        join = PunctuatedJoin(WindowJoin([Window(), Window()]), on_violation="fail")
        pushed(join, (Item.CLOSING, 0, 0, 1, pattern))
        with pytest.raises(PunctuationBroken, match="had closed"):
            pushed(join, (Item.EVENT, 0, 3, 2, None))


def test_patterns_of_other_types_and_damaged_states_are_refused():
    join = PunctuatedJoin(WindowJoin([Window(), Window()]))
    with pytest.raises(PunctuationRefused, match="'a'"):
        pushed(join, (Item.CLOSING, 0, 0, 1, constant("a")))
    head, arrays = join.dump()
    with pytest.raises(JoinStateError, match="ranges"):
        join.load(head, {**arrays, "ranges": b"{}"})


def test_what_was_reported_is_forgotten_with_its_key():
    join = PunctuatedJoin(WindowJoin([Window(), Window()], most_remembered=10))
    for start in range(0, 3_000, 100):
        found = pushed(join, *((Item.CLOSING, 0, 0, start, constant(key)) for key in range(start, start + 100)))
        assert len(found.joined.closing_keys) == 100
    assert join.join.stats.remembered == 10
    assert len(json.loads(join.dump()[1]["ranges"])["said"]) <= 1_124

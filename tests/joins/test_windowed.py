"""The join by windows and closed keys, against its brute-force meaning."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns, JoinStateError, Window, WindowJoin
from tests.references.joins import ReferenceJoin

KEYS = [0, 1 << 32, 5, (1 << 63) + 7]

windows = st.one_of(
    st.just(Window()),
    st.builds(Window, st.just("time"), st.integers(1, 6)),
    st.builds(Window, st.just("events"), st.integers(0, 3)),
    st.builds(Window, st.just("events-of-key"), st.integers(0, 3)),
)
kinds = st.sampled_from([Item.EVENT] * 6 + [Item.CLOSING] * 3 + [Item.PLACE, Item.TIME])


@st.composite
def workloads(draw, outer=True, least=0, inputs=2):
    """Windows, outer inputs (at least ``least``) and items with ties; no item has a key that all inputs have closed."""
    declared = draw(st.lists(windows, min_size=inputs, max_size=4))
    keys = KEYS if inputs == 2 else KEYS[: draw(st.sampled_from([1, 2, 4]))]
    reporting = draw(st.sets(st.integers(0, len(declared) - 1), min_size=least)) if outer else set()
    steps = st.tuples(kinds, st.integers(0, len(declared) - 1), st.sampled_from(keys), st.integers(0, 3))
    time, items, closings = 0, [], set()
    for kind, number, key, step in draw(st.lists(steps, max_size=40)):
        time += step
        if all((one, key) in closings for one in range(len(declared))):
            continue
        items.append((kind, number, key, time))
        if kind is Item.CLOSING:
            closings.add((number, key))
    return declared, sorted(reporting), items


def joined(join, items):
    """Results and closed keys of some items, as the reference has them."""
    found = join.push(ItemColumns.of(items))
    return (
        list(zip(map(tuple, found.members.tolist()), found.result_whys.tolist(), strict=True)),
        found.closing_keys.tolist(),
        found.violations.tolist(),
    )


@settings(max_examples=400, deadline=None)
@given(workloads())
def test_the_join_equals_its_meaning_after_every_item(workload):
    declared, outer, items = workload
    join, meaning = WindowJoin(declared, outer=outer), ReferenceJoin(declared, outer)
    for item in items:
        done, over, refused = len(meaning.results), len(meaning.closed), len(meaning.violations)
        members, closed, violations = joined(join, [item])
        meaning.push(*item)
        assert sorted(members) == sorted(
            zip((one for _, one in meaning.results[done:]), meaning.whys[done:], strict=True)
        )
        assert sorted(closed) == sorted(meaning.closed[over:])
        assert len(violations) == len(meaning.violations) - refused
        assert set(join.held_sequences().tolist()) == meaning.held()


of_events_or_time = st.one_of(
    st.just(Window()),
    st.builds(Window, st.just("time"), st.integers(1, 6)),
    st.builds(Window, st.just("events-of-key"), st.integers(0, 3)),
)


@settings(max_examples=300, deadline=None)
@given(workloads(), st.data())
def test_other_windows_keep_what_is_inside_of_them(workload, data):
    declared, outer, items = workload
    kept = [[window] if window.kind == "events" else None for window in declared]
    join, meaning = WindowJoin(declared, outer=outer), ReferenceJoin(declared, outer)
    again = WindowJoin(declared, outer=outer)
    for item in items:
        if data.draw(st.integers(0, 4)) == 0:
            declared = [one[0] if one else data.draw(of_events_or_time) for one in kept]
            done, over = len(meaning.results), len(meaning.closed)
            found = join.change(declared)
            meaning.change(declared)
            results = [
                (time, tuple(one)) for time, one in zip(found.result_times_us, found.members.tolist(), strict=True)
            ]
            assert sorted(results) == sorted(meaning.results[done:])
            assert sorted(found.closing_keys.tolist()) == sorted(meaning.closed[over:])
            saved, again = again.dump(), WindowJoin(declared, outer=outer)
            again.load(*saved)
            assert again.change(declared).members.tolist() == found.members.tolist()
        done, over = len(meaning.results), len(meaning.closed)
        members, closed, _ = joined(join, [item])
        assert joined(again, [item])[0] == members
        meaning.push(*item)
        assert sorted(members) == sorted(
            zip((one for _, one in meaning.results[done:]), meaning.whys[done:], strict=True)
        )
        assert sorted(closed) == sorted(meaning.closed[over:])
        assert set(join.held_sequences().tolist()) == meaning.held()
    assert asdict(again.stats) == asdict(join.stats)


@pytest.mark.parametrize("windows", [[Window("events", 2), Window()], [Window()]])
def test_a_window_of_events_of_an_input_stays_one(windows):
    with pytest.raises(ValueError, match="cannot change"):
        WindowJoin([Window(), Window()]).change(windows)


@settings(max_examples=200, deadline=None)
@given(workloads(), st.data())
def test_neither_cuts_nor_reloads_change_anything(workload, data):
    declared, outer, items = workload
    whole, parts = WindowJoin(declared, outer=outer), WindowJoin(declared, outer=outer)
    expected = joined(whole, items)
    border = data.draw(st.integers(0, len(items)))
    first = joined(parts, items[:border])
    saved = parts.dump()
    parts = WindowJoin(declared, outer=outer)
    parts.load(*saved)
    second = joined(parts, items[border:])
    assert first[0] + second[0] == expected[0]
    assert first[1] + second[1] == expected[1]
    assert first[2] + [border + place for place in second[2]] == expected[2]
    assert asdict(parts.stats) == asdict(whole.stats)


@settings(max_examples=100, deadline=None)
@given(workloads(outer=False))
def test_the_state_is_empty_once_every_input_has_closed_every_key(workload):
    declared, _, items = workload
    join = WindowJoin(declared)
    last = max((time for *_, time in items), default=0)
    join.push(ItemColumns.of(items))
    closed = {(number, key) for kind, number, key, _ in items if kind is Item.CLOSING}
    every = [(number, key) for number in range(len(declared)) for key in KEYS]
    join.push(ItemColumns.of([(Item.CLOSING, *one, last) for one in every if one not in closed]))
    join.push(ItemColumns.of([(Item.TIME, 0, 0, last + 10)]))
    assert (join.stats.stored, join.stats.keys, join.stats.remembered) == (0, 0, 0)
    assert len(join.held_sequences()) == 0


@settings(max_examples=100, deadline=None)
@given(workloads(outer=False))
def test_a_dropped_key_leaves_the_others_as_they_are(workload):
    declared, _, items = workload
    if any(window.kind == "events" for window in declared):
        declared = [Window() if window.kind == "events" else window for window in declared]
    whole, without = WindowJoin(declared), WindowJoin(declared)
    middle = len(items) // 2
    whole.push(ItemColumns.of(items[:middle]))
    without.push(ItemColumns.of(items[:middle]))
    known = without.keys()
    without.drop(known[known == KEYS[1]])
    rest = [item for item in items[middle:] if item[0] is Item.TIME or item[2] != KEYS[1]]
    assert joined(without, rest)[0] == joined(whole, rest)[0]


def closing_case(last_us, closed_us, other_us):
    """Times at which a key is over: its last event on the first input, whose window is 10, and two closings."""
    join = WindowJoin([Window("time", 10), Window("time", 10)])
    items = [] if last_us is None else [(Item.EVENT, 0, 5, last_us)]
    items += [(Item.CLOSING, 0, 5, closed_us), (Item.TIME, 0, 0, other_us), (Item.CLOSING, 1, 5, other_us)]
    found = join.push(ItemColumns.of(items))
    return found.closing_times_us.tolist(), found.closing_causes.tolist()


def test_a_key_is_over_at_the_first_item_at_which_that_is_known():
    assert closing_case(None, 20, 90) == ([20], [2])
    assert closing_case(5, 20, 90) == ([20], [2])
    assert closing_case(5, 12, 90) == ([15], [1])
    assert closing_case(5, 12, 14) == ([14], [0])


def test_an_event_at_the_border_of_a_window_is_out():
    join = WindowJoin([Window("time", 10), Window("time", 10)])
    found = join.push(
        ItemColumns.of([(Item.EVENT, 0, 5, 0), (Item.EVENT, 1, 5, 9), (Item.EVENT, 1, 5, 10), (Item.EVENT, 0, 5, 10)])
    )
    assert found.members.tolist() == [[0, 1], [3, 1], [3, 2]]


def test_purged_events_keep_their_places_in_a_window_of_a_number_of_events():
    join = WindowJoin([Window("events", 10), Window("events", 10)])
    letters = [(Item.EVENT, 1, 4 if number in (4, 7) else 100 + number, number) for number in range(1, 13)]
    join.push(ItemColumns.of([*letters, (Item.CLOSING, 0, 4, 12)]))
    assert join.stats.stored == 8


def test_each_event_and_closing_costs_one_look_up():
    join = WindowJoin([Window(), Window(), Window(), Window()])
    join.push(ItemColumns.of([(Item.EVENT, number, 9, number) for number in (0, 1, 2, 3, 3)]))
    join.push(ItemColumns.of([(Item.CLOSING, number, 9, 9) for number in range(4)]))
    assert (join.stats.lookups, join.stats.results) == (9, 2)


def test_keys_that_are_over_are_remembered_up_to_a_number():
    join = WindowJoin([Window(), Window()], most_remembered=2)
    join.push(ItemColumns.of([(Item.CLOSING, 0, key, 1) for key in range(5)]))
    assert (join.stats.remembered, join.stats.forgotten, join.stats.keys) == (2, 3, 2)


def test_one_event_can_complete_more_combinations_than_there_was_room_for():
    join = WindowJoin([Window(), Window(), Window()])
    items = [(Item.EVENT, number, 9, 0) for number in (0, 1) for _ in range(40)]
    found = join.push(ItemColumns.of([*items, (Item.EVENT, 2, 9, 1)]))
    assert len(found.members) == 1600
    assert len(np.unique(found.members, axis=0)) == 1600


def test_a_saved_join_of_another_form_is_refused():
    head, arrays = WindowJoin([Window(), Window()]).dump()
    with pytest.raises(JoinStateError, match="has 3"):
        WindowJoin([Window(), Window(), Window()]).load(head, arrays)
    with pytest.raises(JoinStateError, match="cannot be read"):
        WindowJoin([Window(), Window()]).load({**head, "clusters": 3}, arrays)


def test_windows_have_sizes():
    with pytest.raises(ValueError, match="cannot have the size 0"):
        Window("time", 0)
    with pytest.raises(ValueError, match="2 to 16 inputs"):
        WindowJoin([Window()])


plain_windows = st.one_of(st.just(Window()), st.builds(Window, st.just("time"), st.integers(1, 6)))
rarely_closing = st.sampled_from([Item.EVENT] * 20 + [Item.CLOSING, Item.TIME, Item.PLACE])


@st.composite
def plain_workloads(draw):
    """Windows of time or none, and items that are mostly events; a key that all have closed is another one then."""
    declared = draw(st.lists(plain_windows, min_size=2, max_size=4))
    steps = st.tuples(rarely_closing, st.integers(0, len(declared) - 1), st.sampled_from(KEYS), st.integers(0, 3))
    time, items, current = 0, [], {key: key for key in KEYS}
    for kind, number, name, step in draw(st.lists(steps, max_size=60)):
        key, time = current[name], time + step
        items.append((kind, number, key, time))
        if kind is Item.CLOSING:
            items += [(kind, other, key, time) for other in range(len(declared)) if other != number]
            current[name] += 10
    return declared, items


@settings(max_examples=200, deadline=None)
@given(plain_workloads(), st.data())
def test_events_while_no_key_is_closed_equal_their_meaning(workload, data):
    declared, items = workload
    join, meaning = WindowJoin(declared), ReferenceJoin(declared)
    border = data.draw(st.integers(0, len(items)))
    found = [joined(join, items[:border])]
    again = WindowJoin(declared)
    again.load(*join.dump())
    found.append(joined(again, items[border:]))
    for item in items:
        meaning.push(*item)
    members = [one for part, _, _ in found for one, _ in part]
    assert sorted(members) == sorted(one for _, one in meaning.results)
    assert set(again.held_sequences().tolist()) == meaning.held()
    assert again.stats.stored == len(meaning.held())


def test_an_event_of_a_closed_key_is_dropped_though_the_join_was_loaded_in_between():
    declared = [Window("time", 10), Window("time", 10)]
    join, again = WindowJoin(declared), WindowJoin(declared)
    join.push(ItemColumns.of([(Item.EVENT, 0, 5, 0), (Item.CLOSING, 0, 5, 1)]))
    again.load(*join.dump())
    found = again.push(ItemColumns.of([(Item.EVENT, 1, 5, 2), (Item.TIME, 0, 0, 20), (Item.EVENT, 1, 5, 20)]))
    assert found.members.tolist() == [[0, 1]]
    assert (again.stats.on_the_fly, again.stats.dropped, again.stats.stored) == (1, 1, 0)

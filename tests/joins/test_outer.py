"""Joins of more than two inputs some of which may be absent, against their brute-force meaning."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Item, ItemColumns, JoinRun, Window, WindowJoin, merged_id, read_join
from streams import Event, EventBatch
from tests.joins.test_windowed import KEYS, joined, of_events_or_time, workloads
from tests.references.joins import ReferenceJoin
from tests.references.outer import ReferenceOuterJoin


def both(declared, optional):
    return WindowJoin(declared, optional=optional), ReferenceOuterJoin(declared, optional)


def since(meaning, results, closed):
    """The results after the first ``results``, each with its reason, and the closed keys after the first ``closed``."""
    found = zip((one for _, one in meaning.results[results:]), meaning.whys[results:], strict=True)
    return sorted(found), sorted(meaning.closed[closed:])


@settings(max_examples=400, deadline=None)
@given(workloads(least=1, inputs=3))
def test_the_join_equals_its_meaning_after_every_item(workload):
    declared, optional, items = workload
    join, meaning = both(declared, optional)
    for item in items:
        done, over, refused = len(meaning.results), len(meaning.closed), len(meaning.violations)
        members, closed, violations = joined(join, [item])
        meaning.push(*item)
        assert (sorted(members), sorted(closed)) == since(meaning, done, over)
        assert len(violations) == len(meaning.violations) - refused
        assert set(join.held_sequences().tolist()) == meaning.held()


@settings(max_examples=200, deadline=None)
@given(workloads(least=1))
def test_of_two_inputs_it_means_what_the_join_of_two_inputs_means(workload):
    declared, optional, items = workload
    outer = [number for number in (0, 1) if number in optional]
    pair = ReferenceJoin(declared[:2], [1 - number for number in outer])
    meaning = ReferenceOuterJoin(declared[:2], outer)
    for item in items:
        if item[1] < 2:
            pair.push(*item)
            meaning.push(*item)
    found = zip(meaning.results, meaning.whys, strict=True)
    as_pairs = [((time, tuple(max(-1, one) for one in members)), why) for (time, members), why in found]
    assert sorted(as_pairs) == sorted(zip(pair.results, pair.whys, strict=True))
    assert (meaning.closed, meaning.violations) == (pair.closed, pair.violations)


@settings(max_examples=300, deadline=None)
@given(workloads(least=1, inputs=3), st.data())
def test_other_windows_keep_what_is_inside_of_them(workload, data):
    declared, optional, items = workload
    kept = [[window] if window.kind == "events" else None for window in declared]
    (join, meaning), again = both(declared, optional), WindowJoin(declared, optional=optional)
    for item in items:
        if data.draw(st.integers(0, 4)) == 0:
            declared = [one[0] if one else data.draw(of_events_or_time) for one in kept]
            done, over = len(meaning.results), len(meaning.closed)
            found = join.change(declared)
            meaning.change(declared)
            members = map(tuple, found.members.tolist())
            results = list(zip(members, found.result_whys.tolist(), strict=True))
            assert (sorted(results), sorted(found.closing_keys.tolist())) == since(meaning, done, over)
            saved, again = again.dump(), WindowJoin(declared, optional=optional)
            again.load(*saved)
            assert again.change(declared).members.tolist() == found.members.tolist()
        done, over = len(meaning.results), len(meaning.closed)
        members, closed, _ = joined(join, [item])
        assert joined(again, [item])[0] == members
        meaning.push(*item)
        assert (sorted(members), sorted(closed)) == since(meaning, done, over)
        assert set(join.held_sequences().tolist()) == meaning.held()
    assert asdict(again.stats) == asdict(join.stats)


@settings(max_examples=200, deadline=None)
@given(workloads(least=1, inputs=3), st.data())
def test_neither_cuts_nor_reloads_nor_the_disk_change_anything(workload, data):
    declared, optional, items = workload
    whole, parts = WindowJoin(declared, optional=optional), WindowJoin(declared, optional=optional)
    expected = joined(whole, items)
    border = data.draw(st.integers(0, len(items)))
    first = joined(parts, items[:border])
    saved = parts.dump()
    parts = WindowJoin(declared, optional=optional)
    parts.load(*saved)
    if all(window.kind != "events" for window in declared):  # their places cannot be on disk
        keys, rows = parts.take(parts.coldest(data.draw(st.integers(1, 9))))
        parts.put_back(keys, rows[np.argsort(rows["sequence"], kind="stable")])
    second = joined(parts, items[border:])
    assert first[0] + second[0] == expected[0]
    assert first[1] + second[1] == expected[1]
    assert first[2] + [border + place for place in second[2]] == expected[2]
    assert asdict(parts.stats) == asdict(whole.stats)


@settings(max_examples=100, deadline=None)
@given(workloads(least=1, inputs=3))
def test_the_state_is_empty_once_every_input_has_closed_every_key(workload):
    declared, optional, items = workload
    join = WindowJoin(declared, optional=optional)
    last = max((time for *_, time in items), default=0)
    join.push(ItemColumns.of(items))
    closed = {(number, key) for kind, number, key, _ in items if kind is Item.CLOSING}
    every = [(number, key) for number in range(len(declared)) for key in KEYS]
    join.push(ItemColumns.of([(Item.CLOSING, *one, last) for one in every if one not in closed]))
    join.push(ItemColumns.of([(Item.TIME, 0, 0, last + 10)]))
    assert (join.stats.stored, join.stats.keys, join.stats.remembered) == (0, 0, 0)


def test_a_combination_is_reported_where_it_is_part_of_no_larger_one():
    join = WindowJoin([Window("time", 10)] * 3, optional=[1, 2])
    items = [(Item.EVENT, 0, 5, 0), (Item.EVENT, 1, 5, 4), (Item.EVENT, 2, 5, 12), (Item.EVENT, 0, 5, 13)]
    found = join.push(ItemColumns.of([*items, (Item.TIME, 0, 0, 90)]))
    assert found.members.tolist() == [[0, 1, -1], [3, 1, 2]]  # not [3, -1, 2], nor [-1, 1, 2]
    assert found.result_times_us.tolist() == [10, 13]


def test_each_absent_input_says_whether_it_was_finished():
    join = WindowJoin([Window("time", 10)] * 3, optional=[1, 2])
    rows = [(Item.EVENT, 0, 5, 0), (Item.CLOSING, 2, 5, 1), (Item.EVENT, 0, 5, 2), (Item.CLOSING, 1, 5, 11)]
    found = join.push(ItemColumns.of(rows))
    assert found.members.tolist() == [[0, -1, -2], [2 - 1, -2, -2]]
    assert (found.result_times_us.tolist(), found.result_whys.tolist()) == ([10, 11], [1, 2])


A, B, C = range(3)


@pytest.mark.parametrize("last", [[], [(Item.EVENT, A, 5, 4)]], ids=["it was stored", "it came when the others were"])
def test_an_event_that_the_others_need_no_more_was_seen_with_them(last):
    """When the others have closed the key, an event of the first input is in all combinations that it will be in."""
    join = WindowJoin([Window(), Window("time", 10), Window()], optional=[A, B, C])
    first = [(Item.EVENT, A, 5, 0)] if not last else []
    items = [*first, (Item.EVENT, B, 5, 1), (Item.CLOSING, B, 5, 2), (Item.CLOSING, C, 5, 3), *last]
    found = join.push(ItemColumns.of([*items, (Item.TIME, 0, 0, 90)]))
    assert found.members.tolist() == [[0, 1, -2] if first else [1, 0, -2]]


def test_many_combinations_are_not_stored():
    join = WindowJoin([Window("time", 1_000)] * 3, optional=[0, 1, 2])
    join.push(ItemColumns.of([(Item.EVENT, number, 9, place) for place in range(60) for number in (0, 1)]))
    before = sum(one.nbytes for one in vars(join)["_state"])
    found = join.push(ItemColumns.of([(Item.TIME, 0, 0, 5_000)]))
    assert len(np.unique(found.members, axis=0)) == len(found.members) == 60 * 60
    assert sum(one.nbytes for one in vars(join)["_state"]) == before < 20_000


def test_keys_that_may_have_no_event_any_more_are_remembered_up_to_a_number():
    join = WindowJoin([Window()] * 3, optional=[0], most_remembered=2)
    join.push(ItemColumns.of([(Item.CLOSING, 0, key, 1) for key in range(5)]))
    assert (join.stats.remembered, join.stats.forgotten, join.stats.keys) == (2, 3, 2)


THREE: dict[str, Any] = {
    "inputs": [
        {"stream": "a", "as": "o", "window": "9 us"},
        {"stream": "b", "as": "p", "window": "9 us", "closed_by": "end"},
        {"stream": "c", "as": "q", "window": "9 us", "closed_by": "end"},
    ],
    "outer": ["p", "q"],
    "return": {"o": "id(o)", "p": "id(p)", "q": "id(q)", "why_p": "decided_by(p)", "why_q": "decided_by(q)"},
}


def merged(time_us, kind, key, place=0, value=1):
    identity = merged_id("opq".index(kind[0]), place, f"{kind}{time_us}")
    return Event(id=identity, type=kind, time_us=time_us, key=key, data={"type": "T", "data": {"v": value}})


def test_the_end_of_the_input_decides_what_is_not_decided_before():
    run = JoinRun(read_join(THREE), "handled", 1)
    given_events = [merged(1, "o", "a"), merged(2, "p", "a"), merged(11, "o", "b"), merged(12, "q.closed", "b")]
    outputs = [run.process(EventBatch.from_events(given_events)), run.finish()]
    assert [(one.time_us, list(one.data.values())) for output in outputs for one in output.events.to_events()] == [
        (10, ["o1", "p2", None, None, "window"]),
        (12, ["o11", None, None, "end_of_input", "finished"]),
    ]


TOTALS = {
    **THREE,
    "inputs": [{**one, "closed_by": "end"} for one in THREE["inputs"]],
    "emit": "on_close",
    "return": {
        f"{function}_{alias}": f"{function}({alias}{path})"
        for alias in "opq"
        for function, path in [("count", ""), ("sum", ".v")]
    },
}
kinds_of_events = [f"{alias}{mark}" for alias in "opq" for mark in ("", "", "", "", ".last", ".closed")]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(kinds_of_events), st.sampled_from("ab")), max_size=40),
    st.lists(st.sampled_from("opq"), min_size=1, unique=True),
    st.sets(st.integers(0, 40), max_size=3),
)
def test_totals_are_of_the_events_of_reported_combinations(steps, outer, cuts):
    body = read_join({**TOTALS, "outer": outer})
    meaning, time, rows = ReferenceOuterJoin([Window("time", 9)] * 3, body.optional), 0, []
    values: list[int] = []
    sums: dict[int, tuple[int, list[Any]]] = {}
    for place, (step, kind, key) in enumerate(steps):
        number, place_of_key, time = "opq".index(kind[0]), "ab".index(key), time + step
        if all((one, place_of_key) in meaning._closings for one in range(3)):
            continue
        rows.append(merged(time, kind, key, place, 3**place))
        if not kind.endswith(".closed"):
            values.append(3**place)
            meaning.push(Item.EVENT, number, place_of_key, time)
        if len(kind) > 1:
            meaning.push(Item.CLOSING, number, place_of_key, time)
        for over in meaning.closed[len(sums) :]:
            members = {one for _, some in meaning.results for one in enumerate(some) if one[1] >= 0}
            mine = [(of, one) for of, one in members if meaning._events[one].key == over]
            counted = [[values[one] for of, one in mine if of == input_] for input_ in range(3)]
            sums[over] = (time, [one for some in counted for one in (len(some), sum(some) if some else None)])
    run, found, done = JoinRun(body, "totals", 1), [], 0
    for border in sorted({*cuts, len(rows)}):
        found += run.process(EventBatch.from_events(rows[done:border])).events.to_events()
        done, saved, run = max(done, border), run.dump(), JoinRun(body, "totals", 1)
        run.load(*saved)
    said = {"ab".index(one.key): list(one.data.values()) for one in found}
    assert len(said) == len(found)
    assert said == {key: total for key, (_, total) in sums.items() if any(total)}

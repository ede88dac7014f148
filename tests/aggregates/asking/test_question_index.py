"""The index of questions against the list of events, for every configuration, window, and order of operations."""

import json
import tracemalloc
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates.asking import Question, QuestionIndex
from aggregates.asking.ring import LEAST_ROOM, EventColumns, EventRing
from aggregates.errors import AggregateStateError, QuestionRefused
from tests.builders.questions import ATTRIBUTES, VALUES, columns_of, data, held, index_of, insert, questions
from tests.references.questions import ListedEvents

N = {"n": VALUES["n"]}
CONFIGURATIONS = [(), (2, 1, 3), (0, 0, 4), (3, 0, 0), (1, 1, 1)]


def windows():
    return st.sampled_from([held(40), held(15), held(1)])


def steps(least_time=0):
    times = st.integers(least_time, 60)
    events = st.lists(st.tuples(times, data()), max_size=25)
    return st.lists(
        st.one_of(
            st.tuples(st.just("insert"), events),
            st.tuples(st.just("expire"), times),
            st.tuples(st.just("configure"), st.sampled_from(CONFIGURATIONS[1:])),
            st.tuples(st.just("move"), st.integers(1, 3)),
            st.tuples(st.just("reload"), st.none()),
            st.tuples(st.just("ask"), questions()),
        ),
        max_size=20,
    )


def inside(question, window):
    """The question with a window that is not longer than the held one."""
    return (
        question if question.window_us is None else replace(question, window_us=min(question.window_us, window.span_us))
    )


def check_chains(index):
    """The chains of all partitions hold each event once, newest first, where its codes belong."""
    ring = index._ring
    seen = []
    layouts = [(ring._layout, ring._border if ring._old else ring.first, ring.end)]
    if ring._old is not None:
        layouts.append((ring._old, ring.first, ring._border))
    for layout, first, end in layouts:
        for address, newest in enumerate(layout.tails.tolist()):
            number = newest
            while number >= max(first, ring.first):
                assert number < end
                codes = ring.rows[number % ring.room, 1:]
                assert int(((codes & layout.masks) << layout.shifts).sum()) == address
                seen.append(number)
                number -= int(ring.rows[number % ring.room, 0])
    assert sorted(seen) == list(range(ring.first, ring.end))


def run(index, listed, given_steps):
    for step, argument in given_steps:
        if step == "insert":
            insert(index, argument)
            listed.insert(argument)
        elif step == "expire":
            index.expire(argument)
            listed.expire(argument)
        elif step == "configure":
            index.configure(dict(zip(ATTRIBUTES, argument, strict=True)))
        elif step == "move":
            index._ring.move(argument)
        elif step == "reload":
            head, sections = index.dump()
            index = QuestionIndex(index._window, is_tuned=False)
            index.load(json.loads(json.dumps(head)), sections)
        elif step == "ask" and listed.now_us is not None:
            question = inside(argument, index._window)
            assert index.ask(question).rows() == listed.ask(question)
        assert len(index) == len(listed.events)
        check_chains(index)
    return index


@settings(max_examples=600)
@given(windows(), st.sampled_from(CONFIGURATIONS), steps())
def test_the_index_equals_its_meaning_after_every_step(window, bits, given_steps):
    run(index_of(window, bits, is_tuned=False), ListedEvents(window), given_steps)


def history(chance, count):
    """Operations in time that passes; some events are late, and some are too late."""
    values: dict[str, list] = {"user": ["ann", "bob", None, 1, True], "region": ["eu", "us"], "kind": [*range(9)]}
    for now in range(count):
        step = chance.choices(["insert", "expire", "configure", "move", "ask"], [40, 10, 1, 9, 40])[0]
        if step == "insert":
            some = [{name: chance.choice(own) for name, own in values.items()} for _ in range(chance.randrange(3))]
            yield step, [(now - chance.randrange(50), one | {"price": chance.randrange(9)}) for one in some]
        elif step == "ask":
            fixed = chance.sample([*values], chance.randrange(3))
            where = {name: chance.choice([one for one in values[name] if one is not None]) for name in fixed}
            by, window_us = tuple(chance.sample(ATTRIBUTES, chance.randrange(3))), chance.choice([None, 9, 40])
            value = chance.choice([*VALUES])
            yield step, Question(values={value: VALUES[value]}, by=by, where=where, window_us=window_us)
        else:
            yield step, {"expire": now, "configure": chance.choice(CONFIGURATIONS[1:]), "move": 3}[step]


@pytest.mark.deep
@pytest.mark.compiled
def test_a_history_of_100_000_operations_equals_its_meaning():
    window = held(40)
    index = run(index_of(window), ListedEvents(window), history(Random(5), 100_000))
    assert index.questions > 30_000
    assert index.migrations > 500


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 60), data()), min_size=1, max_size=60),
    st.lists(questions(), max_size=4),
    st.data(),
)
def test_answers_depend_on_neither_configuration_nor_cuts_nor_the_way(events, asked, draw):
    events.sort(key=lambda event: event[0])
    cut = draw.draw(st.integers(0, len(events)))
    indexes = [index_of(held(30), bits, is_tuned=False) for bits in CONFIGURATIONS]
    for number, index in enumerate(indexes):
        for part in (events,) if number % 2 else (events[:cut], events[cut:]):
            insert(index, part)
    for question in asked:
        answers = [index.ask(inside(question, held(30))) for index in indexes]
        assert all(answer.rows() == answers[0].rows() for answer in answers)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 60), data()), min_size=1, max_size=40),
    st.dictionaries(st.sampled_from(ATTRIBUTES), st.sampled_from(["ann", "eu", 3, 1])),
    st.sampled_from(CONFIGURATIONS[1:]),
    st.integers(0, 40),
)
def test_a_probe_visits_the_partitions_that_agree_and_compares_their_events(events, where, bits, moved):
    index = index_of(held(30), bits, is_tuned=False)
    insert(index, events)
    ring = index._ring
    places = [ATTRIBUTES.index(name) for name in where]
    codes = [index._values[place].code_of(value) for place, value in zip(places, where.values(), strict=True)]
    if -1 in codes:
        return
    columns, wanted = np.array(places, np.int64), np.array(codes, np.int32)
    scanned = ring.scan(columns, wanted, ring.first)
    probed = ring.probe(columns, wanted, ring.first)
    assert sorted(scanned.slots.tolist()) == sorted(probed.slots.tolist())
    assert probed.visited == 2 ** (sum(bits) - sum(bits[place] for place in places))
    held_codes = ring.columns(ring.first, ring.end).codes
    agree = [
        held_codes[:, place] & (2 ** bits[place] - 1) == code & (2 ** bits[place] - 1)
        for place, code in zip(places, codes, strict=True)
    ]
    assert probed.compared == (np.logical_and.reduce(agree).sum() if agree else len(ring))
    index.configure({"user": 1, "region": 2})
    ring.move(moved)
    again = ring.probe(columns, wanted, ring.first)
    assert sorted(again.slots.tolist()) == sorted(probed.slots.tolist())
    check_chains(index)


def test_every_slot_of_a_full_ring_is_found():
    rng, ring, events = np.random.default_rng(8), EventRing(2, 0), list[Any]()
    ring.begin_move((2, 1))
    for time_us in range(400):
        events = [*events, rng.integers(0, 4, 2).astype(np.int32)][-LEAST_ROOM:]
        ring.expire(ring.end + 1 - LEAST_ROOM)
        ring.append(EventColumns(np.array([time_us]), events[-1][None, :], np.zeros((0, 1))))
        assert len(ring) == len(events)
        for start in (ring.first, ring.end - 1):
            columns, codes = (np.array([0, 1])[: start % 3], events[-1][: start % 3])
            wanted = [
                number % ring.room
                for number, event in enumerate(events, ring.first)
                if number >= start and (event[columns] == codes).all()
            ]
            assert sorted(ring.probe(columns, codes, start).slots.tolist()) == sorted(wanted)
            assert ring.scan(columns, codes, start).slots.tolist() == wanted
    assert ring.room == LEAST_ROOM


def test_an_event_at_the_border_of_a_window_is_out():
    index = index_of(held(10))
    insert(index, [(0, {}), (1, {}), (10, {})])
    assert index.ask(Question(values=N)).rows() == [{"n": 2}]
    assert index.ask(Question(values=N, window_us=9)).rows() == [{"n": 1}]
    assert index.ask(Question(values=N, window_us=0)).rows() == [{"n": 0}]
    assert index.ask(Question(values=N, until_us=11)).rows() == [{"n": 1}]
    assert index.ask(Question(values=N, window_us=9, until_us=3)).rows() == [{"n": 1}]
    index.expire(11)
    assert index.ask(Question(values=N)).rows() == [{"n": 1}]
    index.expire(5)
    assert (len(index), index.ask(Question(values=N)).end_us) == (1, 11)
    insert(index, [(1, {}), (2, {})])
    assert len(index) == 2


def test_without_events_one_group_is_empty_and_groups_by_attributes_do_not_exist():
    index = index_of(held())
    counts, others = (
        dict.fromkeys(("n", "users", "known", "prices"), 0),
        VALUES.keys() - {"n", "users", "known", "prices"},
    )
    assert index.ask(Question(values=VALUES)).rows() == [counts | dict.fromkeys(others)]
    assert index.ask(Question(values=N, by=("user",), window_us=5)).rows() == []
    assert index.ask(Question(values=N, where={"user": "ann"})).rows() == [{"n": 0}]


def test_columns_of_arrow_and_numpy_are_taken_as_lists_are():
    times = np.arange(4)
    columns = {
        "user": pa.array(["ann", None, "bob", "ann"]).dictionary_encode(),
        "region": pa.nulls(4),
        "kind": np.array([1.0, np.nan, 2.0, 1.0]),
        "price": pa.array([1, None, 3, 4]),
        "size": pa.array(["no", "number", "at", "all"]),
    }
    listed = {
        "user": ["ann", None, "bob", "ann"],
        "kind": [1, None, 2, 1],
        "price": [1, None, 3, 4.0],
        "size": [True, {}, [], "x"],
    }
    one, other = index_of(held()), index_of(held())
    one.insert(times, columns)
    other.insert(times, listed)
    flags = index_of(held())
    flags.insert(
        times,
        {"user": np.array([True, False, True, True]), "price": np.array([True] * 4), "size": pa.array([True] * 4)},
    )
    assert flags.ask(Question(values=VALUES, where={"user": True})).rows()[0]["n"] == 3
    assert (
        flags.ask(Question(values=VALUES, where={"user": 1})).rows()[0]
        == other.ask(Question(values=VALUES, window_us=0)).rows()[0]
    )
    for by in ATTRIBUTES:
        question = Question(values=VALUES, by=(by,))
        assert one.ask(question).rows() == other.ask(question).rows()
    assert one.ask(Question(values=N, by=("kind",))).rows() == [
        {"kind": None, "n": 1},
        {"kind": 1, "n": 2},
        {"kind": 2, "n": 1},
    ]


def test_sums_do_not_depend_on_the_order_of_events():
    rng = np.random.default_rng(1)
    prices = np.concatenate([rng.normal(size=2_000) * 10.0 ** rng.integers(-3, 9, 2_000), [1e16, -1e16]])
    rows = []
    for seed in range(3):
        index = index_of(held(10))
        index.insert(np.zeros(len(prices), np.int64), {"price": np.random.default_rng(seed).permutation(prices)})
        rows.append(index.ask(Question(values={"total": VALUES["total"]})).rows())
    assert rows[0] == rows[1] == rows[2]


def test_values_that_left_the_window_are_forgotten():
    index = index_of(held(2_000), (0, 0, 3), is_tuned=False)
    for begin in range(0, 40_000, 1_000):
        times = np.arange(begin, begin + 1_000)
        index.insert(times, {"user": [f"user {time}" for time in times.tolist()], "kind": times % 7})
    check_chains(index)
    assert len(index._values[0]) <= 8_000
    assert len(index._values[2]) == 8
    last = index.ask(Question(values=N, by=("user",), where={"kind": 39_998 % 7}, window_us=2)).rows()
    assert last == [{"user": "user 39998", "n": 1}]
    again = QuestionIndex(index._window, is_tuned=False)
    again.load(*index.dump())
    question = Question(values=N | {"users": VALUES["users"]}, by=("kind",))
    assert again.ask(question).rows() == index.ask(question).rows()
    assert again.explain()["configuration"] == {"user": 0, "region": 0, "kind": 3}


def test_an_empty_window_has_no_values_of_attributes():
    index = index_of(held(10), (2, 0, 3), is_tuned=False)
    for now in (0, 100):
        insert(index, [(now + n, {"user": f"user {n}", "kind": n % 7}) for n in range(9)])
        assert index.ask(Question(values=N, where={"user": "user 3"}, by=("kind",))).rows() == [{"kind": 3, "n": 1}]
        check_chains(index)
        index.expire(now + 50)
        assert json.loads(index.dump()[1]["values"]) == [[None]] * 3
    assert index.explain()["configuration"] == {"user": 2, "region": 0, "kind": 3}


def test_memory_is_at_most_1_3_times_the_columns_and_falls_with_the_events():
    index = index_of(held(20_000))
    for begin in range(0, 100_000, 500):
        times = np.arange(begin, begin + 500)
        index.insert(times, {"user": times % 1_000, "region": times % 5, "kind": times % 50, "price": times * 0.5})
        for place in range(4):
            index.ask(Question(values=N, where={"user": place, "kind": place}))
    columns = index._ring.column_bytes
    assert columns == 20_000 * (8 + 3 * 4 + 2 * 8)
    assert index.explain()["partitions"] > 1
    assert index._ring.unmoved == 0
    assert index.size_bytes <= 1.3 * columns
    index.expire(10**9)
    assert len(index) == 0
    assert index.size_bytes < 20_000


@pytest.mark.compiled
def test_expiry_reads_no_events():
    index = index_of(held(1_000_000))
    index.insert(np.arange(600_000), {"user": np.arange(600_000) % 10})
    tracemalloc.start()
    index.expire(1_000_000 + 200_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == 399_999
    assert peak < 10_000


def test_answers_with_too_many_groups_are_refused():
    index = index_of(held(10))
    times_us = np.concatenate([[0], np.ones(100_000, np.int64)])
    index.insert(times_us, {"user": np.arange(100_001), "kind": np.arange(100_001) % 2})
    for question, member in (
        (Question(values=N, by=("user", "kind")), "by"),
        (Question(values={"u": VALUES["users"]}, by=("kind",)), "values.u"),
    ):
        with pytest.raises(QuestionRefused, match="more than 100,000") as refused:
            index.ask(question)
        assert refused.value.details["field"] == member
    assert len(index.ask(Question(values=N, by=("user",), window_us=1)).groups) == 100_000


def test_a_saved_state_of_other_columns_is_refused():
    index = index_of(held())
    insert(index, [(1, {"user": "ann"})])
    head, sections = index.dump()
    for wrong in ((head | {"format": 9}, sections), (head, sections | {"times": b""})):
        with pytest.raises(AggregateStateError):
            index_of(held()).load(*wrong)


def test_columns_named_as_attributes_only_are_read():
    index = index_of(held())
    index.insert(np.array([1]), columns_of([(1, {"user": "ann"})]) | {"other": [1]})
    assert index.ask(Question(values=N, by=("user",))).rows() == [{"user": "ann", "n": 1}]

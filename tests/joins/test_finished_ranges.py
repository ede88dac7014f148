"""Ranges of keys that inputs finish: which keys are in them, and what a join keeps of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins import CLOSED, JoinRun, finished_range, merged_id, read_join
from joins.finished_ranges import FinishedRanges
from streams import Event, EventBatch, KeyRange, key_hash

bounds = st.one_of(st.none(), st.integers(-9, 9))


@st.composite
def key_ranges(draw: st.DrawFn) -> KeyRange:
    low, high = draw(bounds), draw(st.integers(-9, 9))
    return KeyRange(low=low, high=high) if low is None or low <= high else KeyRange(low=low)


@given(st.lists(st.tuples(st.integers(0, 1), key_ranges()), max_size=8), st.sets(st.integers(-10, 10)))
def test_keys_are_in_the_ranges_that_were_said(said: list[tuple[int, KeyRange]], known: set[int]) -> None:
    ranges = FinishedRanges(2)
    hashes = {key_hash(str(number)): number for number in known}
    ranges.note(pa.array([*map(str, known), "a"]), np.array([*hashes, key_hash("a")], np.uint64))
    expected: list[set[int]] = [set(), set()]
    for number, some in said:
        inside = {one for one in range(-10, 11) if str(one) in some}
        expected[number] |= inside
        found = ranges.finish(number, some, np.array([*hashes], np.uint64))
        assert [hashes[one] for one in found.tolist()] == sorted(inside & known)
    every = np.arange(-10, 11)
    pairs, sections = ranges.dump()
    for one in (ranges, FinishedRanges.load(pairs, sections)):
        for number, keys in enumerate(expected):
            assert set(every[one.covers(number, every)].tolist()) == keys
    assert ranges.has_any == bool(said)
    ranges.prune(np.array([*hashes], np.uint64))
    closed = np.array([1] * len(hashes), np.uint64)  # by the first input
    implied = ranges.implied(np.array([*hashes], np.uint64), closed)
    assert {hashes[one] for one in implied.tolist()} == known & expected[0]


JOIN: dict[str, Any] = {
    "inputs": [
        {"stream": "a", "as": "o", "window": "4 us"},
        {"stream": "b", "as": "p", "closed_by": "punctuation", "window": "9 us"},
    ],
    "outer": ["p"],
    "return": {"o": "id(o)", "p": "id(p)"},
}
THREE: dict[str, Any] = {
    "inputs": [*JOIN["inputs"], {**JOIN["inputs"][1], "stream": "c", "as": "q"}],
    "outer": ["p", "q"],
    "return": {"o": "id(o)", "p": "id(p)", "q": "id(q)"},
}


def merged(alias: str, key: str, time_us: int) -> EventBatch:
    identity = merged_id("opq".index(alias), time_us, f"{alias}{key}")
    data = {"type": "T", "data": {}}
    return EventBatch.from_events([Event(id=identity, type=alias, time_us=time_us, key=key, data=data)])


def finished(alias: str, said: dict[str, int], time_us: int) -> EventBatch:
    return finished_range("opq".index(alias), alias, KeyRange.from_json(said), time_us)


@pytest.mark.compiled
@pytest.mark.parametrize("document", [JOIN, THREE], ids=["two", "three"])
def test_keys_that_are_over_by_ranges_are_not_remembered_one_by_one(document: dict[str, Any]) -> None:
    run, most_rows, most_bytes, absent = JoinRun(read_join(document), "pairs", 1), 0, 0, 0
    for part in range(80):
        until = 50 * part + 25  # keys come before and after the range that they are in
        keys = [merged("o", str(50 * part + place), part) for place in range(50)]
        ends = [finished(alias, {"to": until}, part) for alias in document["outer"]]
        output = run.process(EventBatch.joined([*keys[:40], *ends, *keys[40:]]))
        absent += sum(event.data["p"] is None for event in output.events.to_events())
        measures = run.measures()
        most_rows = max(most_rows, measures["remembered"] + measures["stored"])
        head, sections = run.dump()
        most_bytes = max(most_bytes, sum(map(len, sections.values())))
        assert head["ranges"] == [[], *[[[-(2**63), until]]] * len(ends)]
    assert absent == 80 * 50 - 24  # the last keys are open
    assert most_rows < 1_024 + 100 < 80 * 50
    assert most_bytes < 200_000
    assert run.measures()["violations"] == run.measures()["duplicates"] == 0


def test_an_event_of_a_key_that_a_range_has_finished_is_a_violation() -> None:
    run = JoinRun(read_join(JOIN), "pairs", 1)
    run.process(finished("p", {"from": 1, "to": 3}, 1))
    output = run.process(EventBatch.joined([merged("p", key, 2) for key in ("0", "1", "3", "4", "x")]))
    assert [broken.event.id for broken in output.broken] == ["p1", "p3"]


def test_what_was_saved_before_there_were_ranges_knows_the_keys_that_it_holds() -> None:
    run = JoinRun(read_join(JOIN), "pairs", 1)
    run.process(EventBatch.joined([merged("o", "7", 1), merged("o", "x", 1)]))
    head, sections = run.dump()
    del head["ranges"]
    older = {name: one for name, one in sections.items() if not name.startswith("ranges/")}
    loaded = JoinRun(read_join(JOIN), "pairs", 1)
    loaded.load(head, older)
    output = loaded.process(finished("p", {"to": 9}, 2))
    assert [(event.time_us, event.data["o"]) for event in output.events.to_events()] == [(2, "o7")]


def test_a_join_that_may_not_be_contradicted_is_suspended_by_an_event_of_a_finished_range() -> None:
    run = JoinRun(read_join({**JOIN, "late": "fail"}), "pairs", 1)
    rows = [merged("o", "7", 1), finished("p", {"to": 5}, 1), merged("p", "7", 2), merged("p", "5", 3)]
    output = run.process(EventBatch.joined([*rows, merged("p", "7", 4), finished("p", {"to": 9}, 5)]))
    assert ([broken.event.id for broken in output.broken], output.is_suspended) == (["p5"], True)
    assert [event.data for event in output.events.to_events()] == [{"o": "o7", "p": "p7"}]
    assert run.process(merged("p", "7", 6)).events.to_events() == []


def test_another_version_knows_the_keys_that_are_held_and_the_ranges_that_were_finished() -> None:
    plain = {**JOIN, "inputs": [JOIN["inputs"][0], {"stream": "b", "as": "p", "closed_by": "unique", "window": "9 us"}]}
    run = JoinRun(read_join(plain), "pairs", 1)
    run.process(EventBatch.joined([merged("o", "7", 1), merged("o", "8", 1)]))
    run.change(read_join(JOIN), 2)
    output = run.process(finished("p", {"to": 7}, 2))
    assert [(event.time_us, event.data["o"]) for event in output.events.to_events()] == [(2, "o7")]
    run.change(read_join(plain), 3)
    head, sections = run.dump()
    loaded = JoinRun(read_join(plain), "pairs", 3)
    loaded.load(head, sections)
    output = loaded.process(EventBatch.joined([merged("p", "7", 3), merged("p", "8", 3)]))
    assert [broken.event.id for broken in output.broken] == ["p7"]
    assert [event.data for event in output.events.to_events()] == [{"o": "o8", "p": "p8"}]


@pytest.mark.parametrize(("document", "aliases"), [(JOIN, "p"), (THREE, "pq")], ids=["two", "three"])
def test_a_key_that_comes_after_its_range_is_finished_as_by_itself(document: dict[str, Any], aliases: str) -> None:
    outputs = []
    for is_range in (False, True):
        run = JoinRun(read_join(document), "pairs", 1)
        for alias in aliases:
            identity = merged_id("opq".index(alias), 1, "")
            one = Event(id=identity, type=alias + CLOSED, time_us=1, key="7", data={})
            run.process(finished(alias, {"from": 7, "to": 7}, 1) if is_range else EventBatch.from_events([one]))
        output = run.process(merged("o", "7", 2))
        outputs.append([(event.time_us, event.data) for event in output.events.to_events()])
    assert outputs[0] == outputs[1] == [(2, {"o": "o7", **dict.fromkeys(aliases)})]

"""What a join may cost: totals need no combinations, and the number of its results is limited."""

import re
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import (
    Column,
    Item,
    ItemColumns,
    JoinRefused,
    JoinRun,
    Placed,
    Window,
    WindowJoin,
    explain,
    merged_id,
    read_join,
    warnings,
    windowed,
)
from streams import Event, EventBatch
from tests.joins.test_windowed import joined, workloads

INPUTS = [{"stream": alias, "as": alias, "window": "9 us", "closed_by": "end"} for alias in "opq"]
FUNCTIONS = {"count": "", "sum": ".v", "min": ".v", "max": ".v", "avg": ".v", "first": ".v", "last": ".v"}


def totals_of(aliases: str, *outer: str, window: Any = "9 us") -> dict[str, Any]:
    inputs = [{**one, "window": window} for one in INPUTS if one["as"] in aliases]
    columns = {f"{name}_{one}": f"{name}({one}{path})" for one in aliases for name, path in FUNCTIONS.items()}
    return {"inputs": inputs, "emit": "on_close", "outer": list(outer), "return": columns}


DOCUMENTS = [
    totals_of("op"),
    totals_of("op", "p"),
    totals_of("op", window={"last": 2}),
    totals_of("opq"),
    totals_of("opq", "p"),
    totals_of("opq", "o", "p", "q"),
    totals_of("opq", "q", window={"last": 2}),
]


def merged(place: int, kind: str, time_us: int, key: str) -> Event:
    data = {"type": "T", "data": {"v": 3 ** min(place, 39)}}
    return Event(id=merged_id("opq".index(kind[0]), place, f"e{place}"), type=kind, time_us=time_us, key=key, data=data)


def said(output: Any) -> list[tuple[int, str, dict[str, Any]]]:
    return [(one.time_us, one.key, dict(one.data)) for one in output.events.to_events()]


kinds = [f"{alias}{mark}" for alias in "opq" for mark in ("", "", "", "", ".last", ".closed")]
histories = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(kinds), st.sampled_from("ab")), min_size=1, max_size=40
)


def events_of(document: dict[str, Any], history: list[tuple[int, str, str]]) -> list[Event]:
    aliases, time_us, events = {one["as"] for one in document["inputs"]}, 0, []
    for place, (step, kind, key) in enumerate(history):
        time_us += step
        if kind[0] in aliases:
            events.append(merged(place, kind, time_us, key))
    return events


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(DOCUMENTS), histories, st.sets(st.integers(0, 40), max_size=3))
def test_totals_need_no_more_combinations_than_each_event_needs_to_be_in_one(document, history, cuts):
    events = events_of(document, history)
    whole = JoinRun(read_join(document), "j", 1)
    whole._join.limit(windowed.MOST_RESULTS, covers=False)
    expected = said(whole.process(EventBatch.from_events(events))) + said(whole.finish())
    run, found, done = JoinRun(read_join(document), "j", 1), [], 0
    for border in sorted({*cuts, len(events)}):
        found += said(run.process(EventBatch.from_events(events[done:border])))
        done, saved, run = max(done, border), run.dump(), JoinRun(read_join(document), "j", 1)
        run.load(*saved)
    assert found + said(run.finish()) == expected


def peak_of(run: JoinRun, batch: EventBatch) -> int:
    tracemalloc.start()
    run.process(batch)
    run.finish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def of_one_key(aliases: str, number: int, kind: str = "unknown") -> EventBatch:
    return EventBatch.from_events(
        [merged(place % 30, aliases[place % len(aliases)], place, kind) for place in range(number)]
    )


@pytest.mark.compiled
@pytest.mark.parametrize("aliases", ["op", "opq"])
@pytest.mark.parametrize("outer", ["", "p"])
def test_totals_of_many_events_of_a_key_need_memory_like_their_number(aliases, outer):
    document = totals_of(aliases, *outer, window="1 h")
    peaks = [peak_of(JoinRun(read_join(document), "j", 1), of_one_key(aliases, size)) for size in (500, 1_000, 4_000)]
    assert peaks[2] < 6 * peaks[1]  # 16 times as much, if it were by combinations
    assert peaks[2] < 40_000_000


EACH: dict[str, Any] = {
    "inputs": [{"stream": one, "as": one, "window": "1 h"} for one in "op"],
    "return": {"o": "id(o)", "p": "id(p)"},
}


@settings(max_examples=100, deadline=None)
@given(workloads(), st.booleans())
def test_parts_of_a_call_have_the_results_of_the_whole_call(workload, is_optional):
    declared, outer, items = workload
    kept = {"optional": outer or [0]} if is_optional else {"outer": outer}
    whole, parts = WindowJoin(declared, **kept), WindowJoin(declared, **kept)
    results, closed, violations = joined(whole, items)
    given_items, found, begun = ItemColumns.of(items), [], 0
    while True:
        part, done = parts._take(given_items.slice(begun, len(items)), 1)
        found.append((part, begun))
        begun += done
        if begun == len(items):
            break
    assert [tuple(row) for part, _ in found for row in part.members.tolist()] == [one for one, _ in results]
    assert [key for part, _ in found for key in part.closing_keys.tolist()] == closed
    assert [first + item for part, first in found for item in part.violations.tolist()] == violations
    assert parts.dump() == whole.dump()


def test_what_a_part_makes_is_bounded(monkeypatch):
    monkeypatch.setattr(windowed, "_PART", 1_000)
    sizes: list[int] = []
    run, make = JoinRun(read_join(EACH), "j", 1), windowed._columns

    def noted(found: Any) -> Any:
        columns = make(found)
        sizes.append(len(columns.members))
        return columns

    monkeypatch.setattr(windowed, "_columns", noted)
    output = run.process(of_one_key("op", 400))
    assert len(output.events) == 200 * 200
    assert max(sizes) <= 2_500
    assert sum(sizes) == 200 * 200


def limited(**limits: int) -> dict[str, Any]:
    return {**EACH, "results": limits}


def test_one_event_leads_to_so_many_results_and_no_more():
    run = JoinRun(read_join(limited(per_event=3)), "j", 1)
    output = run.process(EventBatch.from_events([merged(place, "ooooop"[place], place, "k") for place in range(6)]))
    assert [one.data["o"] for one in output.events.to_events()] == ["e0", "e1", "e2"]
    assert [(cut.event.id, cut.alias) for cut in output.cut] == [("e5", "p")]
    assert run.measures()["results_cut"] == 1


@pytest.mark.parametrize("document", [EACH, {**EACH, "outer": ["p"]}])
@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(st.tuples(st.sampled_from("oopp"), st.sampled_from("kkl"), st.integers(0, 3)), max_size=40),
    cuts=st.sets(st.integers(0, 40), max_size=4),
    average=st.integers(1, 3),
    ahead=st.integers(1, 12),
)
def test_a_join_is_suspended_at_the_same_event_however_events_are_cut(document, history, cuts, average, ahead):
    window = {"inputs": [{**one, "window": "9 us"} for one in EACH["inputs"]]}
    body = read_join({**document, **window, "results": {"average": average, "ahead": ahead}})
    free = read_join({**document, **window})
    time_us, events = 0, []
    for place, (alias, key, step) in enumerate(history):
        time_us += step
        events.append(merged(place, alias, time_us, key))
    expected, owed, stops = [], 0, False
    meaning = JoinRun(free, "j", 1)
    for event in events:
        for result in meaning.process(EventBatch.from_events([event])).events.to_events():
            expected.append((result.time_us, result.key, dict(result.data)))
            owed += 1
            if stops := owed > ahead:
                break
        if stops:
            break
        owed = max(0, owed - average)
    run, results, done, excess = JoinRun(body, "j", 1), [], 0, list[Any]()
    for border in sorted({*cuts, len(events)}):
        output = run.process(EventBatch.from_events(events[done:border]))
        results += said(output)
        excess += output.excess
        done, saved, run = max(done, border), run.dump(), JoinRun(body, "j", 1)
        run.load(*saved)
    assert results == expected
    assert run.is_suspended == stops
    newest = [max(filter(None, expected[-1][2].values()), key=lambda one: int(one[1:]))] if stops else []
    assert [one.event.id for one in excess] == newest


class Ordered:
    """The condition that the number of o's id, modulo 3, is less than the number of p's id, modulo 3."""

    reads = (Column(name="", alias="o", function="id"), Column(name="", alias="p", function="id"))

    def holds(self, values: Sequence[Placed], size: int) -> np.ndarray:
        ids = [[known[place] for place in places.tolist()] for known, places in values]
        return np.array([int(o[1:]) % 3 < int(p[1:]) % 3 for o, p in zip(*ids, strict=True)], np.bool_)


def conditional(document: dict[str, Any]) -> JoinRun:
    return JoinRun(read_join(document), "j", 1, conditions=lambda body: None if body.where is None else Ordered())


ASKED = {**EACH, "where": "id(o) < id(p)"}
NINE = {"inputs": [{**one, "window": "9 us"} for one in EACH["inputs"]]}


@pytest.mark.parametrize("outer", [[], ["p"], ["o", "p"]])
@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(st.tuples(st.sampled_from("oopp"), st.sampled_from("kkl"), st.integers(0, 3)), max_size=40),
    cuts=st.sets(st.integers(0, 40), max_size=4),
    per_event=st.integers(1, 3),
    ahead=st.integers(1, 8),
)
def test_limits_count_results_and_a_tenth_of_what_a_condition_drops(outer, history, cuts, per_event, ahead):
    free = {**EACH, **NINE, "outer": outer}
    document = {**free, "where": ASKED["where"], "results": {"per_event": per_event, "average": 1, "ahead": ahead}}
    time_us, events = 0, []
    for place, (alias, key, step) in enumerate(history):
        time_us += step
        events.append(merged(place, alias, time_us, key))
    expected, owed, cut, whole = [], 0, [], conditional({**free, "where": ASKED["where"]})
    candidates = JoinRun(read_join({**EACH, **NINE}), "j", 1)
    for event in events:
        batch, kept = EventBatch.from_events([event]), 0
        tried = [tuple(one.data.values()) for one in candidates.process(batch).events.to_events()]
        results = said(whole.process(batch))
        alone = [one for one in results if None in one[2].values()]
        good = {tuple(one[2].values()): one for one in results if one not in alone}
        for one in [*alone, *tried]:
            is_good = one not in alone and one in good
            kept += is_good
            is_result = kept <= per_event if is_good else one in alone
            expected += [good[one] if is_good else one] if is_result else []
            owed += 10 if is_result else 1
            if owed > 10 * ahead:
                break
            if is_good and kept == per_event < len(good):
                cut.append(event.id.rpartition("e")[2])
        if owed > 10 * ahead:
            break
        owed = max(0, owed - 10)
    run, results, done, found_cuts = conditional(document), [], 0, []
    for border in sorted({*cuts, len(events)}):
        output = run.process(EventBatch.from_events(events[done:border]))
        results += said(output)
        found_cuts += [one.event.id for one in output.cut]
        done, saved, run = max(done, border), run.dump(), conditional(document)
        run.load(*saved)
    assert results == expected
    assert run.is_suspended == (owed > 10 * ahead)
    assert [one.removeprefix("e") for one in found_cuts] == cut


@pytest.mark.parametrize("emit", ["each", "on_close"])
def test_work_of_a_condition_that_drops_all_is_bounded(emit, monkeypatch):
    monkeypatch.setattr(windowed, "_PART", 100)
    inputs = [{**one, "closed_by": "end"} for one in EACH["inputs"]]
    document = {
        **ASKED,
        "inputs": inputs,
        "emit": emit,
        "return": {"o": "id(o)"} if emit == "each" else {"o": "count(o)"},
    }
    run = conditional({**document, "results": {"average": 1, "ahead": 100}})
    output = run.process(
        EventBatch.from_events([merged(3 * place, "op"[place % 2], place, "k") for place in range(400)])
    )
    assert output.is_suspended
    assert len(output.events) == 0
    assert len(output.excess) == 1
    assert run.measures()["contradicting"] < 2_500


def test_one_event_of_many_inputs_is_asked_about_no_more_than_the_limit():
    inputs = [{"stream": one, "as": one, "window": "1 h"} for one in "opq"]
    run = conditional({**ASKED, "inputs": inputs, "results": {"ahead": 50}})
    events = [merged(3 * place, "op"[place % 2], place, "k") for place in range(100)]
    output = run.process(EventBatch.from_events([*events, merged(300, "q", 300, "k")]))
    assert output.is_suspended
    assert run.measures()["contradicting"] == 501


def test_totals_without_their_condition_are_of_all_events_of_a_key():
    inputs = [{**one, "closed_by": "end"} for one in EACH["inputs"]]
    document = {**EACH, "inputs": inputs, "emit": "on_close", "return": {"o": "count(o)", "p": "count(p)"}}
    run = conditional({**document, "where": ASKED["where"]})
    run.process(EventBatch.from_events([merged(place, "oopp"[place // 3], place, "k") for place in range(0, 12, 3)]))
    run.change(read_join(document), 2)
    run.process(EventBatch.from_events([merged(12, "o", 12, "k"), merged(13, "p", 13, "k")]))
    assert [one[2] for one in said(run.finish())] == [{"o": 3, "p": 3}]


@pytest.mark.compiled
@pytest.mark.parametrize("number", [2, 5])
def test_many_inputs_of_one_stream_never_run_out_of_memory(number):
    inputs = [{"stream": "a", "as": f"a{one}", "window": "1 h"} for one in range(16)]
    document = {"inputs": inputs, "return": {f"a{one}": f"id(a{one})" for one in range(16)}}
    events = [
        Event(
            id=merged_id(one, place, f"e{place}"),
            type=f"a{one}",
            time_us=place,
            key="unknown",
            data={"type": "T", "data": {}},
        )
        for place in range(number)
        for one in range(16)
    ]
    run = JoinRun(read_join(document), "j", 1)
    tracemalloc.start()
    output = run.process(EventBatch.from_events(events))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert output.is_suspended
    assert len(output.excess) == 1
    assert 20_000 < len(output.events) < 40_000
    assert peak < 200_000_000


def test_large_values_count_as_several_results():
    events = [
        Event(
            id=merged_id("op".index(alias), place, alias),
            type=alias,
            time_us=place,
            key="k",
            data={"type": "T", "data": data},
        )
        for place, (alias, data) in enumerate([("o", {"v": "x" * 50_000}), *[("p", {})] * 4_000])
    ]
    run = JoinRun(read_join({**EACH, "return": {f"v{number}": "o.v" for number in range(20)}}), "j", 1)
    output = run.process(EventBatch.from_events(events))
    assert output.is_suspended
    assert 80 <= len(output.events) <= 120  # of a megabyte each, where 200,000 units of 512 bytes are allowed


@pytest.mark.parametrize("optional", [[], [0], [0, 1, 2]])
def test_numbers_of_combinations_do_not_overflow(optional):
    windows = [Window("time", 1_000)] * 16
    join = WindowJoin(windows, optional=optional)
    join.limit(7, covers=False)
    items = [(Item.EVENT, number, 5, place) for place in range(60) for number in range(16)]
    found = join.push(ItemColumns.of(items))
    assert np.bincount(found.result_items).max() == 7
    assert len(found.cuts) > 800
    ended = join.push(ItemColumns.of([(Item.TIME, 0, 0, 5_000)]))
    assert len(ended.members) <= 7 * 16 * 60


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "'results' of a join is 5; write limits such as"),
        ({"most": 5}, "'results' of a join"),
        ({"ahead": 0}, "'ahead' of the results of a join is 0; write a whole number of 1 to"),
        ({"average": True}, "'average' of the results of a join is True"),
        ({"per_event": 2**40}, "write a whole number of 1 to 2,147,483,648"),
    ],
)
def test_limits_that_are_none_are_refused(value, message):
    with pytest.raises(JoinRefused, match=re.escape(message)):
        read_join({**EACH, "results": value})


def test_it_warns_where_nothing_bounds_the_product_of_the_inputs():
    (warning,) = warnings(read_join(EACH))
    assert warning.startswith("Nothing bounds how many events of one key o and p have at a time")
    assert warning in explain(read_join(EACH))
    bounded = [{**EACH["inputs"][0], "closed_by": "unique"}, EACH["inputs"][1]]
    assert warnings(read_join({**EACH, "inputs": bounded})) == []
    assert warnings(read_join(DOCUMENTS[0])) == []
    assert any("at most 10,000 results at once" in one for one in explain(read_join(EACH)))


PLAIN = [{"stream": one, "as": one} for one in "op"]


@pytest.mark.parametrize("member", [{"window": {"last": 2**70}}, {"memory": {"rows": 2**70, "spill": True}}])
def test_numbers_that_are_out_of_proportion_are_refused(member):
    with pytest.raises(JoinRefused, match="2,147,483,648"):
        read_join({**EACH, **member, "inputs": [{**one, "closed_by": "end"} for one in PLAIN]})

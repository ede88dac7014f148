"""The engine of aggregates against the reference, which computes every window anew."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates import AggregateRun, AggregateStateError, Emission, InBounds, group_text
from aggregates import read_aggregate as read
from aggregates.known_groups import KnownGroups
from shards.kinds.aggregates.reading import condition_and_bounds
from streams import key_hash
from tests.builders.aggregates import columns_of
from tests.references.aggregates import Naive, Row, value_of

VALUES = {
    "n": "count()",
    "known": "count(x)",
    "yes": "count_if(y)",
    "sum": "sum(x)",
    "mean": "avg(x)",
    "low": "min(x)",
    "high": "max(x)",
    "other": "sum(z)",
    "spread": "stddev(x)",
    "kinds": "distinct(x)",
    "head": "first(x)",
    "tail": "last(x)",
    "mid": "quantile(x, 0.5)",
    "top": "quantile(x, 0.9)",
}
WINDOWS: Sequence[Any] = [
    "4 us",
    {"last": 3},
    {"tumbling": "5 us"},
    {"hopping": "6 us", "every": "2 us"},
    {"session": "3 us"},
    "transaction",
]
CONDITIONS = [
    None,
    "n >= 2",
    "sum > 1 AND kinds < 3",
    "mean > 0.5 OR g = 'b'",
    "high - low > 1",
    "n = 1 AND NOT low > 0",
    "n = 2",
    "sum >= -3 AND mean <= 2.5",
    "sum >= 0.5 AND spread <= 1",
]
EARLIER = ["n > coalesce(before(n, 4 us), 0)", "sum > 2 * before(sum, 2 us)"]
OVERALL = ["2 * n > all(n) AND g != 'b'", "n + 1 > all(kinds)"]
NUMBERS = [None, 0, 1, 2, 5, -3, 0.1, 0.2, 0.3, -0.7, 1.0, 2.5, 2**62, 1e-5]
ARGUMENTS = [*NUMBERS, 1e150, -1e150, "a", "", 1e-300, True, 5e-324]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    window, conditions = draw(st.sampled_from(WINDOWS)), CONDITIONS
    is_fixed = read({"of": "x", "values": {"n": "count()"}, "window": window}).window.is_fixed
    if is_fixed or window == "4 us":
        conditions = draw(st.sampled_from([CONDITIONS, EARLIER, OVERALL]))  # has no None
    having = draw(st.sampled_from(conditions))
    if having and window == {"tumbling": "5 us"}:
        having = having.replace("4 us", "5 us").replace("2 us", "10 us")
    chosen = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    names = dict.fromkeys([*(name for name in VALUES if name in (having or "")), "n", *chosen] if having else chosen)
    is_grouped = having is not None and ("g " in having or "all(" in having)
    by = draw(st.sampled_from([["g"], ["g"], ["h", "g"]] + ([] if is_grouped else [[]])))
    found: dict[str, Any] = {"of": "x", "by": by, "values": {one: VALUES[one] for one in names}, "window": window}
    found |= {"events": 2} if draw(st.booleans()) else {}
    if having:
        found |= {"having": having} | ({} if is_fixed else {"clear": draw(st.booleans())})
    return found


@st.composite
def rows(draw: st.DrawFn, document: Mapping[str, Any], *, is_late: bool, is_revocable: bool) -> list[Row]:
    made, time_us, numbers = list[Row](), draw(st.integers(-3, 9)), ARGUMENTS if draw(st.booleans()) else NUMBERS
    ends = not is_late and document["window"] in ("transaction", {"last": 3})
    for number in range(draw(st.integers(1, 24))):
        time_us += draw(st.sampled_from([0, 0, 1, 1, 2, 5, 9]))
        at_us = time_us - (draw(st.sampled_from([0, 0, 1, 3, 6])) if is_late else 0)
        x, by = draw(st.sampled_from(numbers)), document["by"]
        group = tuple(draw(st.sampled_from(["a", None] if name == "h" else ["a", "b", None, 1, 1.0])) for name in by)
        arguments = {"": True, "x": x, "y": draw(st.sampled_from([True, False, None, 1])), "z": number - 2**62}
        some = tuple(arguments[one.argument] for one in read(document).values)
        key, old = group_text(group), [one for one in made if not one.retracts and one.id]
        if is_revocable and old and draw(st.integers(0, 3)) == 0:
            gone = draw(st.sampled_from(old))
            made.append(Row(at_us, (None,) * len(by), gone.key, gone.key_hash, f"r{number}", (), retracts=gone.id))
            continue
        is_end = ends and draw(st.integers(0, 4)) == 0
        made.append(Row(at_us, group, key, key_hash(key), f"e{number}", some, ends=is_end))
        if ends and draw(st.integers(0, 9)) == 0:
            made.append(Row(at_us, (), key, key_hash(key), "", (), ends=True))
    return made


def run_of(document: Mapping[str, Any], *, is_simultaneous: bool = False, is_revocable: bool = False) -> AggregateRun:
    body = read(document)
    holds, bounds = condition_and_bounds(body)
    return AggregateRun(body, holds, bounds, is_simultaneous=is_simultaneous, is_revocable=is_revocable)


def taken(run: AggregateRun, some: Sequence[Row]) -> list[Emission]:
    return run.process(columns_of(run.body, some))


def reloaded(run: AggregateRun, document: Mapping[str, Any], *, is_simultaneous: bool) -> AggregateRun:
    again = run_of(document, is_simultaneous=is_simultaneous, is_revocable=run.is_revocable)
    head, sections = run.dump()
    again.load(orjson.loads(orjson.dumps(head)), sections)
    return again


def shown(run: AggregateRun, found: Sequence[Emission]) -> list[Any]:
    names = [*(one.name for one in run.body.values), *(["events"] if run.body.events else [])]
    some = [(one.time_us, one.change, one.group, {name: one.data[name] for name in names}) for one in found]
    return sorted(some, key=lambda one: (one[0], one[2], one[1], repr(one[3])))


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_it_emits_what_every_window_computed_anew_has(data: st.DataObject) -> None:
    """Any cut and any saved state in between, also where events come late."""
    document, is_simultaneous = data.draw(documents()), data.draw(st.booleans())
    is_plain = "before" not in document.get("having", "")
    is_revocable, is_late = is_plain and data.draw(st.booleans()), is_plain and data.draw(st.booleans())
    events = data.draw(rows(document, is_late=is_late, is_revocable=is_revocable))
    run = run_of(document, is_simultaneous=is_simultaneous, is_revocable=is_revocable)
    expected = Naive(run.body, condition_and_bounds(run.body)[0], events, is_simultaneous).emitted()
    found: list[Emission] = []
    rest = list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        some, rest = rest[:size], rest[size:]
        found += taken(run, some)
        if data.draw(st.booleans()):
            run = reloaded(run, document, is_simultaneous=is_simultaneous)
    found += run.finish()
    assert shown(run, found) == expected
    assert {**run.measures(), "late": 0} == {"groups": 0, "held": 0, "late": 0}


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_batches_do_not_change_the_order(data: st.DataObject) -> None:
    document, is_simultaneous = data.draw(documents()), data.draw(st.booleans())
    events = data.draw(rows(document, is_late=False, is_revocable=False))
    whole, split = (run_of(document, is_simultaneous=is_simultaneous) for _ in range(2))
    parts = data.draw(st.lists(st.integers(1, len(events)), max_size=3)) if is_simultaneous else []
    found = [*(one for row in events for one in taken(split, [row])), *split.finish()]
    cuts = sorted({0, *parts, len(events)})
    in_parts = [one for begin, end in pairwise(cuts) for one in taken(whole, events[begin:end])]
    key = [(one.time_us, one.group, one.change, one.cause, one.data) for one in found]
    assert [(one.time_us, one.group, one.change, one.cause, one.data) for one in [*in_parts, *whole.finish()]] == key


def test_an_end_comes_before_changes_that_wait_for_the_events_of_its_time() -> None:
    document: dict[str, Any] = {"of": "x", "by": ["h", "g"], "values": {"n": "count()"}, "window": {"last": 3}}
    document |= {"having": "n >= 1", "clear": True}
    of_groups = [(11, "b", False), (11, "a", True), (11, "c", False), (11, "c", True), (12, "d", False)]
    events = [
        Row(time_us, (g, None), g, key_hash(g), f"e{n}", (True,), ends=ends)
        for n, (time_us, g, ends) in enumerate(of_groups)
    ]
    for size in range(1, 6):
        run = run_of(document, is_simultaneous=True)
        found = [one for begin in range(0, 5, size) for one in taken(run, events[begin : begin + size])]
        in_order = [(one.data["h"], one.change) for one in found]
        assert in_order == [("a", "met"), ("a", "cleared"), ("c", "met"), ("c", "cleared"), ("b", "met")]


def test_a_session_that_ends_comes_before_changes_that_wait_for_the_events_of_its_time() -> None:
    document: dict[str, Any] = {"of": "x", "by": ["g"], "values": {"n": "count()"}, "window": {"session": "3 us"}}
    document |= {"having": "n >= 1", "clear": True}
    of_groups = [(8, "c"), (11, "b"), (11, "a"), (12, "b")]
    events = [Row(time_us, (g,), g, key_hash(g), f"e{n}", (True,)) for n, (time_us, g) in enumerate(of_groups)]
    for size in range(1, 5):
        run = run_of(document, is_simultaneous=True)
        found = [one for begin in range(0, 4, size) for one in taken(run, events[begin : begin + size])]
        assert [one.group for one in found] == [group_text((g,)) for g in "ccab"], size


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_late_events_are_counted_until_the_aggregate_is_suspended(data: st.DataObject) -> None:
    document = data.draw(documents()) | {"memory": {"rows": data.draw(st.integers(1, 6))}}
    is_revocable = "before" not in document.get("having", "") and data.draw(st.booleans())
    events = data.draw(rows(document, is_late=True, is_revocable=is_revocable))
    whole, split = (run_of(document, is_revocable=is_revocable) for _ in range(2))
    taken(whole, events)
    for row in events:
        taken(split, [row])
    assert (whole.is_suspended, whole.measures()["late"]) == (split.is_suspended, split.measures()["late"])


def test_only_events_before_the_suspension_are_late() -> None:
    document = {"of": "x", "by": ["g"], "values": {"n": "count()"}, "window": {"tumbling": "5 us"}}
    document |= {"having": "n > 0", "memory": {"rows": 1}}
    times = [(0, "a"), (6, "a"), (2, "a"), (3, "b"), (7, "b"), (1, "a"), (7, "c")]  # the fifth one is too many
    events = [Row(time_us, (g,), g, key_hash(g), f"e{n}", (True,)) for n, (time_us, g) in enumerate(times)]
    for size in range(1, 8):
        run = run_of(document)
        for begin in range(0, len(events), size):
            taken(run, events[begin : begin + size])
        assert (run.is_suspended, run.measures()) == (True, {"groups": 0, "held": 0, "late": 2})
        assert reloaded(run, document, is_simultaneous=False).measures()["late"] == 2


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_is_dropped_leaves_the_other_groups_as_they_are(data: st.DataObject) -> None:
    document = data.draw(documents())
    document.pop("having", None) if "all" in document.get("having", "") else None
    document.pop("clear", None) if "having" not in document else None
    is_revocable = data.draw(st.booleans())
    events = data.draw(rows(document, is_late=False, is_revocable=is_revocable))
    cut = data.draw(st.integers(1, len(events)))
    run, expected = (run_of(document, is_revocable=is_revocable) for _ in range(2))
    taken(run, events[:cut])
    taken(expected, events[:cut])
    keys = run.keys()
    run.drop(keys % np.uint64(2) == 0, keys)
    rest = [row for row in events[cut:] if row.key_hash % 2]
    found = [*(taken(run, rest) if rest else []), *run.advance_time(10**6), *run.finish()]
    more = [*(taken(expected, rest) if rest else []), *expected.advance_time(10**6), *expected.finish()]
    assert [one.data for one in found] == [one.data for one in more if one.key_hash % 2]


def test_of_equal_events_of_one_time_each_counts_until_it_leaves() -> None:
    """Of a window of the last events, the first of two equal ones leaves before the other."""
    document = {"of": "x", "by": ["g"], "values": {"low": "min(x)", "high": "max(x)"}, "window": {"last": 2}}
    times = [(5, 9), (5, 9), (6, 1), (6, 1), (7, 5)]
    some = [Row(time_us, ("a",), "a", key_hash("a"), f"e{n}", (x, x)) for n, (time_us, x) in enumerate(times)]
    found = [(one.data["low"], one.data["high"]) for one in taken(run_of(document), some)]
    assert found == [(9, 9), (9, 9), (1, 9), (1, 1), (1, 5)]


def test_at_the_end_of_the_input_every_group_is_compared_with_all_groups() -> None:
    """Several windows of several groups are open: none of those over all groups is forgotten too early."""
    hopping = {"hopping": "6 us", "every": "2 us"}
    document = {"of": "x", "by": ["g"], "values": {"n": "count()"}, "window": hopping, "having": "2 * n > all(n)"}
    events = [
        Row(time_us, (group,), group, key_hash(group), f"e{number}", (True,))
        for number, (time_us, group) in enumerate([(6, "a"), (6, "b"), (6, "b"), (7, "c"), (9, "a")])
    ]
    run = run_of(document)
    expected = Naive(run.body, condition_and_bounds(run.body)[0], events).emitted()
    assert shown(run, [*taken(run, events), *run.finish()]) == expected


COUNTED = {
    "of": "x",
    "by": ["g"],
    "values": {"n": "count()", "sum": "sum(x)", "yes": "count_if(y)", "high": "max(x)"},
    "window": "4 us",
    "having": "n >= 2 AND sum > 1",
    "clear": True,
}


def counted(first: int, last: int) -> list[Row]:
    found = []
    for n in range(first, last):
        x, y, group = [1, 0.1, None, 2.5][n % 4], [True, False, None][n % 3], ["a", "b", None, 1][n * n % 7 % 4]
        found.append(Row(n // 2, (group,), f"k{group}", key_hash(f"k{group}"), f"e{n}", (True, x, y, x)))
    return found


def test_a_state_that_is_damaged_or_of_another_form_is_refused() -> None:
    run = run_of(COUNTED)
    taken(run, counted(0, 40))
    head, sections = run.dump()
    for changed in ((head, {**sections, "lows": b"1234"}), ({**head, "format": 4}, sections)):
        with pytest.raises(AggregateStateError):
            run_of(COUNTED).load(*changed)


@pytest.mark.parametrize(
    ("window", "most"), [("4 us", 3), ({"last": 3}, 3), ({"tumbling": "4 us"}, 2), ({"session": "4 us"}, 2)]
)
def test_more_events_or_windows_than_allowed_suspend_it(window: Any, most: int) -> None:
    document = {key: value for key, value in COUNTED.items() if key != "clear"} | {"window": window}
    whole, split = (run_of({**document, "memory": {"rows": most}}) for _ in range(2))
    found = [one._replace(place=0) for row in counted(0, 40) for one in taken(split, [row])]
    assert [one._replace(place=0) for one in taken(whole, counted(0, 40))] == found
    assert all(one.is_suspended and not one.measures()["held"] for one in (whole, split))


EARLIER_WINDOWS = ["4 us", {"tumbling": "4 us"}, {"hopping": "4 us", "every": "2 us"}, {"last": 3}, {"session": "4 us"}]


@pytest.mark.parametrize("is_simultaneous", [False, True])
@pytest.mark.parametrize("window", EARLIER_WINDOWS)
def test_earlier_values_count_as_events_do(window: Any, is_simultaneous: bool) -> None:
    """Whatever the cut, the same event is one too many, or none is once older values can no longer be read."""
    document = {key: value for key, value in COUNTED.items() if key != "clear"} | {"window": window}
    for ago_us, most, is_over in ((40, 12, True), (40, 30, True), (8, 60, False)):
        given = {**document, "having": f"n >= coalesce(before(n, {ago_us} us), 0)", "memory": {"rows": most}}
        whole, split = (run_of(given, is_simultaneous=is_simultaneous) for _ in range(2))
        events = counted(0, 200)
        found = [one._replace(place=0) for row in events for one in taken(split, [row])]
        assert [one._replace(place=0) for one in taken(whole, events)] == found != []
        assert (whole.is_suspended, split.is_suspended) == (is_over, is_over), (ago_us, most)
        assert whole.rows == split.rows <= most


@pytest.mark.parametrize("most", range(3, 9))
def test_a_session_that_ends_counts_no_row_twice(most: int) -> None:
    """Where a session ends before its next event enters, neither the limit nor the time may be that of a later row."""
    values = {"n": "count()"}
    document: dict[str, Any] = {"of": "x", "by": ["g"], "values": values, "window": {"session": "3 us"}}
    document |= {"having": "n >= coalesce(before(n, 4 us), 0)", "memory": {"rows": most}}
    chance = Random(most)
    for _ in range(40):
        times = sorted(chance.randrange(30) for _ in range(10))
        rows = [Row(at, (chance.choice("ab"),), "k", 1, f"e{n}", (True,)) for n, at in enumerate(times)]
        whole, split, free = run_of(document), run_of(document), run_of({**document, "memory": {"rows": 1_000}})
        found = [one._replace(place=0) for row in rows for one in taken(split, [row])]
        assert [one._replace(place=0) for one in taken(whole, rows)] == found
        assert whole.is_suspended == split.is_suspended
        expected = [one._replace(place=0) for one in taken(free, rows)]
        assert found == (expected[: len(found)] if whole.is_suspended else expected)


def test_earlier_values_of_ended_transactions_are_not_listed() -> None:
    document = {"of": "x", "by": ["g"], "values": {"n": "count()"}, "window": {"last": 3}}
    run = run_of({**document, "having": "n > coalesce(before(n, 7 d), 0)"})
    for number in range(1_000):
        taken(run, [Row(number, (f"g{number}",), f"k{number}", number, f"e{number}", (True,), ends=True)])
    assert run.rows == 0
    assert len(run._steps.past._changes) < 200


def test_earlier_values_of_dropped_groups_are_forgotten() -> None:
    document = {**COUNTED, "having": "n > before(n, 9 us)"}
    run, rows = run_of(document), counted(0, 40)
    taken(run, rows)
    keys, before = run.keys(), run.rows
    run.drop(keys == keys[0], keys)
    rest = run.rows
    run.drop(np.ones(len(run.keys()), np.bool_), run.keys())
    assert 0 == run.rows < rest < before


@pytest.mark.compiled
def test_tables_grow_and_shrink_with_the_window() -> None:
    """Many more steps, events, groups and extremes than a first table has room for."""
    values = {"n": "count()", "low": "min(x)", "high": "max(x)"}
    size = 60_000
    some = [
        Row(0 if n < size - 9 else 50, (n % 9_000,), "k", 1, f"e{n}", (True, n * 7 % 101, n * 7 % 101))
        for n in range(size)
    ]
    for window, count in (("10 us", 2 * 9_000), ({"tumbling": "10 us"}, 9_000), ({"session": "10 us"}, 2 * 9_000)):
        document = {"of": "x", "by": ["g"], "values": values, "window": window, "having": "n > 4"}
        run = run_of(document | ({} if count == 9_000 else {"clear": True}))
        assert len(taken(run, some)) == count
        assert run.measures() == {"groups": 9, "held": 9, "late": 0}
    document = {"of": "x", "by": ["g"], "values": {"n": "count()", "last": "last(x)"}, "window": {"last": 5}}
    run = run_of(document)
    run.process(columns_of(run.body, [row._replace(arguments=row.arguments[:2]) for row in some]))
    found = taken(run, [Row(60, (n,), "k", 1, f"f{n}", (True, n)) for n in range(9_000)])
    assert [(one.data["n"], one.data["last"]) for one in found] == [(5, n) for n in range(9_000)]


@pytest.mark.compiled
@pytest.mark.parametrize("window", ["10 us", {"tumbling": "10 us"}, {"last": 10}])
def test_texts_that_have_left_are_forgotten(window: Any) -> None:
    """Every event has a text of its own, so the tables begin again with those that are still needed."""
    values = {"kinds": "distinct(x)", "low": "min(x)", "high": "max(x)", "head": "first(x)"}
    run = run_of({"of": "x", "values": values, "window": window})
    texts = [f"{n * 7919 % 9_973:04} ä" for n in range(9_000)]
    rows = [Row(n, (), "k", 1, f"e{n}", (text,) * 4) for n, text in enumerate(texts)]
    found = [one.data for first in range(0, len(rows), 500) for one in taken(run, rows[first : first + 500])]
    if window == {"tumbling": "10 us"}:
        held = [texts[end - 10 : end] for end in range(10, 9_000, 10)]
    else:
        held = [texts[max(0, n - 9) : n + 1] for n in range(9_000)]
    expected = [(len(some), min(some), max(some), some[0]) for some in held]
    assert [(one["kinds"], one["low"], one["high"], one["head"]) for one in found] == expected
    assert len(run.dump()[0]["texts"]) <= 10


def test_a_sum_of_numbers_of_all_sizes_is_exact() -> None:
    values = {"sum": "sum(x)", "mean": "avg(x)", "spread": "stddev(x)"}
    run = run_of({"of": "x", "values": values, "window": {"last": 4}})
    numbers = [1e308, 1e308, 5e-324, -1e308, -1e308, 0.1, 1e-310, 1e-310, 5e-324, 3e-320]
    found = [one.data for n, x in enumerate(numbers) for one in taken(run, [Row(n, (), "k", 1, f"e{n}", (x,) * 3)])]
    held = [[Fraction(x) for x in numbers[max(0, n - 3) : n + 1]] for n in range(len(numbers))]
    assert [one["mean"] for one in found] == [float(sum(some) / len(some)) for some in held]
    assert [one["sum"] for one in found] == [
        float(sum(some)) if abs(sum(some, Fraction(0))) < Fraction(1.5e308) else None for some in held
    ]
    spreads = [value_of(run.body.values[2], numbers[n - 3 : n + 1]) for n in range(8, len(numbers))]
    assert [one["spread"] for one in found[8:]] == spreads
    assert found[3]["spread"] is None


def test_the_condition_is_examined_only_where_a_value_is_in_its_bounds() -> None:
    body = read(COUNTED)
    holds, bounds = condition_and_bounds(body)
    examined = list[int]()

    def noted(columns: Mapping[str, Any], size: int) -> Any:
        examined.append(size)
        return holds(columns, size)  # type: ignore[misc] # the document has a condition

    run = AggregateRun(body, noted, bounds)
    taken(run, [Row(n, (n,), "k", 1, f"e{n}", (True, 1, None, 1)) for n in range(50)])
    assert ([*bounds], examined) == ([("n", 2.0, np.inf), ("sum", 1.0, np.inf)], [])


@pytest.mark.parametrize("window", ["6 us", {"tumbling": "6 us"}, {"last": 3}])
@pytest.mark.parametrize("having", ["n >= 2 AND sum <= 39", "sum >= 39"])
def test_a_condition_of_ranges_is_not_evaluated(having: str, window: Any) -> None:
    body = read({**COUNTED, "having": having, "window": window, "clear": "tumbling" not in window})
    holds, bounds = condition_and_bounds(body)
    assert isinstance(holds, InBounds)
    values = [*range(44), *[None] * 16]
    some = [Row(n, (n % 3,), "k", 1, f"e{n}", (True, value, None, value)) for n, value in enumerate(values)]
    unread = InBounds(lambda columns, size: pytest.fail("the condition was evaluated"))
    found = [
        run.process(columns_of(body, some)) + run.finish()
        for run in (AggregateRun(body, one, bounds) for one in (unread, holds.holds))
    ]
    assert found[0] == found[1] != []
    for other in ("n > 1", "n = true", f"n <= {2**53}", "n >= 2 OR sum <= 1", "sum >= 1 AND 2 <= n"):
        assert not isinstance(condition_and_bounds(read({**COUNTED, "having": other}))[0], InBounds)


@pytest.mark.parametrize("window", ["6 us", {"tumbling": "6 us"}, {"last": 3}])
@pytest.mark.parametrize("calls", [[one for one in VALUES.values() if "(x" in one], ["max(x)"]])
def test_equal_values_share_what_they_compute(calls: list[str], window: Any) -> None:
    """Also while arguments change from short numbers to fractions and texts, and after loading."""
    document = {"of": "x", "values": {f"v{n}": one for n, one in enumerate(calls * 2)}, "window": window}
    run, found = run_of(document), list[Emission]()
    arguments: list[Any] = [1, 2, 2**40, "a", "b", 0.1, None, "c", "d", 2.5, 7, -3]
    rows = [Row(n, (), "k", 1, f"e{n}", (x,) * len(run.body.values)) for n, x in enumerate(arguments)]
    for first in range(0, len(rows), 2):
        found += taken(run, rows[first : first + 2])
        run = reloaded(run, document, is_simultaneous=False)
    found += run.finish()
    assert [[*one.data.values()][: len(calls)] for one in found] == [
        [*one.data.values()][len(calls) : 2 * len(calls)] for one in found
    ]
    expected = [value_of(one, arguments[:6]) for one in run.body.values]
    assert window != {"tumbling": "6 us"} or [found[0].data[one.name] for one in run.body.values] == expected


def test_a_window_takes_little_more_than_its_columns() -> None:
    """Time, group and value are 20 bytes; with one argument of 32 bits, ten events in each of many groups, and keys."""
    body = read({"of": "x", "by": ["key"], "values": {"n": "count()", "sum": "sum(x)"}, "window": "1 h"})
    runs = [AggregateRun(body, lambda columns, size: np.zeros(size, np.bool_), [("n", 99.0, np.inf)]) for _ in range(2)]
    rows = [Row(9, (key,), key, key_hash(key), key, (True, 5)) for key in map(str, range(6_000))]
    parts = [columns_of(body, rows[first : first + 1_000]) for first in range(0, 6_000, 1_000)]
    loading, run = runs
    loading.process(parts[0])  # loads the kernels, which take memory, too
    tracemalloc.start()
    for part in parts * 10:
        run.process(part)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 1.3 * 20 * run.measures()["held"]


@pytest.mark.parametrize("window", [{"tumbling": "5 us"}, {"hopping": "5 us", "every": "5 us"}, {"session": "5 us"}])
def test_windows_that_end_together_are_emitted_by_group_whatever_came_first(window: Any) -> None:
    document = {"of": "x", "by": ["key"], "values": {"n": "count()"}, "window": window}
    groups = []
    for keys in (range(9), range(8, -1, -1)):
        run = run_of(document)
        taken(run, [Row(0, (str(key),), str(key), key_hash(str(key)), str(key), (True,)) for key in keys])
        groups.append([emission.group for emission in run.advance_time(5)])
    assert groups[0] == groups[1] == sorted(groups[0])
    assert len(groups[0]) == 9


def test_windows_that_end_together_compute_the_hashes_of_keys_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body = read({"of": "x", "by": ["key"], "values": {"n": "count()"}, "window": {"tumbling": "5 us"}})
    run, asked, hashes = AggregateRun(body, None), list[int](), KnownGroups.key_hashes_of
    taken(run, [Row(0, (key,), key, key_hash(key), key, (True,)) for key in map(str, range(100))])

    def noted(groups: KnownGroups, codes: Any) -> Any:
        asked.append(len(codes))
        return hashes(groups, codes)

    monkeypatch.setattr(KnownGroups, "key_hashes_of", noted)
    found = run.advance_time(5)
    assert ({one.key_hash for one in found}, asked) == ({key_hash(str(n)) for n in range(100)}, [100])


def test_extremes_of_great_numbers_are_exact_and_written_alike_in_every_cut() -> None:
    body = read({"of": "x", "values": {"low": "min(x)", "high": "max(x)", "kinds": "distinct(x)"}, "window": "9 us"})
    cases: list[tuple[list[Any], list[list[Any]]]] = [
        ([1e16, "a"], [[10**16, 10**16, 1], [10**16, "a", 2]]),
        ([2**63 - 1, 2.0**63], [[2**63 - 1, 2**63 - 1, 1], [2**63 - 1, 2.0**63, 2]]),
        ([-(2.0**63), -(2**63)], [[-(2**63), -(2**63), 1]] * 2),
    ]
    for arguments, expected in cases:
        some = [Row(n, (), "k", key_hash("k"), f"e{n}", (one,) * 3) for n, one in enumerate(arguments)]
        for parts in ([some], [some[:1], some[1:]]):
            run = AggregateRun(body, None)
            found = [list(one.data.values()) for part in parts for one in taken(run, part)]
            assert repr(found) == repr(expected)


def test_a_state_is_small_again_after_most_windows_have_ended() -> None:
    values = {"d": "distinct(x)", "q": "quantile(x, 0.5)"}
    document = {"of": "x", "by": ["g"], "values": values, "window": "transaction"}
    many, few = (run_of(document) for _ in range(2))
    kept = [Row(0, ("b",), "b", key_hash("b"), f"b{n}", (n % 7,) * 2) for n in range(20)]
    for run in (many, few):
        taken(run, kept[:10])
        run.advance_time(1)
    taken(many, [Row(1, ("a",), "a", key_hash("a"), f"a{n}", (n,) * 2) for n in range(4_000)])
    for number in range(10, 20):
        for run in (many, few):
            run.end_key(key_hash("a"), 1)
            taken(run, kept[number : number + 1])
        assert len(many._tables.groups.reals) < 2_000
        many = reloaded(many, document, is_simultaneous=False)
    assert many.finish()[0].data == few.finish()[0].data


@pytest.mark.compiled
@pytest.mark.parametrize("window", [{"last": 2}, {"tumbling": "1 h"}])
def test_whole_floats_take_the_room_of_integers_and_stay_floats(window: Any) -> None:
    """As the reference; a sum of floats is a float, even when fractions cancel, and the sign of zero is kept."""
    calls = ["sum(x)", "avg(x)", "first(x)", "last(x)", "stddev(x)", "max(x)", "distinct(x)", "quantile(x, 0.5)"]
    values = {f"v{n}": call for n, call in enumerate(calls)}
    for numbers in ([3.0, 4.0], [3, 4.0], [-0.0, 2.0], [1.5, -1.5], [2.0**52, 2.0**60], [2**40, 1.0], [7, 8]):
        run = run_of({"of": "x", "values": values, "window": window})
        found = taken(run, [Row(n, (), "k", 1, f"e{n}", (x,) * len(calls)) for n, x in enumerate(numbers)])
        found = [*found, *run.finish()]
        expected = [value_of(one, numbers) for one in run.body.values]
        assert [found[-1].data[name] for name in values] == expected
        assert [repr(found[-1].data[f"v{n}"]) for n in range(5)] == [repr(one) for one in expected[:5]]

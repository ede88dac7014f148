"""Aggregates whose groups have windows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import orjson
import pytest

from aggregates import AggregateRun, EventColumns, RowWindows
from aggregates import read_aggregate as read
from shards.kinds.aggregates.reading import condition_and_bounds
from streams import key_hash
from tests.builders.aggregates import columns_of
from tests.references.aggregates import Row

SECOND_US = 1_000_000
DOCUMENT = {
    "of": "x",
    "by": ["user"],
    "for_each_row_of": "watched",
    "values": {"n": "count()"},
    "window": {"row": "within", "most": "1 min"},
    "having": "n > coalesce(before(n, 10 s), 0)",
    "clear": True,
}


def run_of(**members: Any) -> RowWindows:
    body = read({**DOCUMENT, **members})
    holds, bounds = condition_and_bounds(body)
    return RowWindows(body, lambda one: AggregateRun(one, holds, bounds))


def event(second: int, row: str, within: str) -> Row:
    return Row(second * SECOND_US, (row, "u", within), row, key_hash(row), f"e{second}-{row}", (True,))


def columns(run: RowWindows, rows: Sequence[Row]) -> EventColumns:
    return columns_of(run.body, rows)


def reloaded(run: RowWindows) -> RowWindows:
    again = run_of()
    head, sections = run.dump()
    again.load(orjson.loads(orjson.dumps(head)), sections)
    return again


@pytest.mark.parametrize("within", ["2 s", "5 s"])
def test_an_event_whose_window_has_passed_is_late_also_for_a_row_that_had_none(within: str) -> None:
    run = run_of()
    run.process(columns(run, [event(0, "a", "2 s")]))
    run.advance_time(100 * SECOND_US)
    for one in (reloaded(run), run):
        assert one.process(columns(one, [event(50, "b", within)])) == []
        assert one.measures() == {"groups": 0, "held": 0, "late": 1}


def test_a_saved_state_has_earlier_values_of_windows_that_are_empty() -> None:
    run = run_of()
    run.process(columns(run, [event(0, "a", "2 s"), event(0, "a", "2 s")]))
    run.advance_time(5 * SECOND_US)
    for one in (reloaded(run), run):
        assert one.process(columns(one, [event(11, "a", "2 s")])) == []


def test_the_order_does_not_depend_on_where_batches_begin() -> None:
    run, split = run_of(), run_of()
    rows = [event(1, "c", "2 s"), event(2, "b", "2 s"), event(2, "a", "5 s")]
    found = [one.cause for row in rows for one in split.process(columns(split, [row]))]
    assert [one.cause for one in run.process(columns(run, rows))] == found


def test_earlier_values_of_all_lengths_together_are_limited() -> None:
    run = run_of(memory={"rows": 9})
    suspended = []
    for second in (0, 3, 6):  # each event is a value, and each empty window
        run.process(columns(run, [event(second, "a", "1 s"), event(second, "b", "2 s")]))
        suspended.append(run.is_suspended)
    assert suspended == [False, False, True]


@pytest.mark.parametrize("most", range(4, 13))
def test_whether_rows_of_all_lengths_are_too_many_does_not_depend_on_where_batches_begin(most: int) -> None:
    random = Random(most)
    seconds = sorted(random.choices(range(30), k=40))
    rows = [event(second, random.choice("ab"), random.choice(["1 s", "2 s", "5 s"])) for second in seconds]
    for cuts in ([0, 40], sorted(random.sample(range(1, 40), 5))):
        run, split = run_of(memory={"rows": most}), run_of(memory={"rows": most})
        found = [
            (one.time_us, one.change, one.cause, one.data)
            for row in rows
            for one in split.process(columns(split, [row]))
        ]
        parts = [rows[begin:end] for begin, end in pairwise([0, *cuts, 40])]
        assert [
            (one.time_us, one.change, one.cause, one.data)
            for part in parts
            if part
            for one in run.process(columns(run, part))
        ] == found
        assert (run.is_suspended, run.measures()) == (split.is_suspended, split.measures())


def test_lengths_that_no_row_has_any_more_are_forgotten() -> None:
    run = run_of()
    for second in range(1, 50):
        run.process(columns(run, [event(20 * second, "a", f"{second} s"), event(1, "b", f"{second} s")]))
        run.process(columns(run, [event(20 * second, "b", "1 min")]))
    assert len(run._runs) <= 17
    late = run.measures()["late"]
    assert reloaded(run).measures()["late"] == late > 30

"""Sliding windows of columns against the same aggregate over rows: results, states, and what does not fit."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates import (
    AggregateRun,
    AggregateStateError,
    Emission,
    EventColumns,
    EventRows,
    Row,
    SlidingRun,
    begun_run,
    group_text,
    is_columnar,
    read_aggregate,
)
from shards.kinds.aggregates.reading import condition_and_bounds
from streams import key_hash

GOLDEN = Path(__file__).parent / "golden"
VALUES = {
    "n": "count()",
    "known": "count(x)",
    "yes": "count_if(y)",
    "sum": "sum(x)",
    "mean": "avg(x)",
    "low": "min(x)",
    "high": "max(x)",
    "other": "sum(z)",
}
CONDITIONS = [None, "n >= 2", "sum > 1 AND known < 3", "mean > 0.5 OR g = 'b'", "high - low > 1", "sum > 0.3"]
CONDITIONS += ["sum = 3", "n < 3 AND sum >= -2", "known >= 2 AND mean < 2", "n = 1 AND NOT low > 0", "sum <= -1"]
NUMBERS = [None, 0, 1, 2, 5, -3, 0.1, 0.2, 0.3, -0.7, 1.0, 2.5, 2**62, 1e-5]
UNFIT = [*NUMBERS, 1e150, -1e150, "a", "", 1e-300]
Run = AggregateRun | SlidingRun


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    having = draw(st.sampled_from(CONDITIONS))
    chosen = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    names = dict.fromkeys(["n", "known", "sum", "mean", "low", "high", *chosen] if having else chosen)
    if having and "low" not in having and draw(st.booleans()):
        having, names = having.replace("mean", "n"), dict.fromkeys(["n", "known", "sum", *chosen])
    found: dict[str, Any] = {"of": "x", "by": ["g"], "values": {one: VALUES[one] for one in names}, "window": "4 us"}
    return found | ({"having": having, "clear": draw(st.booleans())} if having else {})


@st.composite
def rows(draw: st.DrawFn, document: Mapping[str, Any], *, numbers: Sequence[Any], is_late: bool) -> list[Row]:
    made, time_us = [], draw(st.integers(-3, 9))
    for number in range(draw(st.integers(1, 30))):
        time_us += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5]))
        late_us = draw(st.sampled_from([0, 0, 1, 3, 6])) if is_late else 0
        x, group = draw(st.sampled_from(numbers)), draw(st.sampled_from(["a", "b", "c", None, 1, 1.0, True]))
        z = draw(st.integers(-(2**63), 2**63 - 1))
        arguments = {"": True, "x": x, "y": draw(st.sampled_from([True, False, None, 1])), "z": z}
        some = tuple(arguments[one.argument] for one in read_aggregate(document).values)
        key = group_text((group,))
        made.append(Row(time_us - late_us, (group,), key, key_hash(key), f"e{number}", some))
    return made


def run_of(kind: type[Run], document: Mapping[str, Any], *, is_simultaneous: bool = False) -> Any:
    body = read_aggregate(document)
    holds, bounds = condition_and_bounds(body)
    if kind is SlidingRun:
        return SlidingRun(body, holds, bounds, is_simultaneous=is_simultaneous)
    return AggregateRun(body, holds, is_simultaneous=is_simultaneous)


def taken(run: Any, some: EventRows) -> tuple[Any, list[Emission]]:
    """The run after some events, over rows if they do not fit, and what it emitted."""
    if isinstance(run, SlidingRun):
        columns = EventColumns.of(run.body, some)
        if columns is not None and run.fits(columns):
            return run, run.process(columns)
        run = run.as_rows()
    return run, run.process(some)


def reloaded(run: Any, document: Mapping[str, Any], *, is_simultaneous: bool) -> Any:
    again = run_of(type(run), document, is_simultaneous=is_simultaneous)
    head, sections = orjson.loads(orjson.dumps(run.dump()[0])), run.dump()[1]
    if isinstance(run, AggregateRun):
        sliding = run_of(SlidingRun, document, is_simultaneous=is_simultaneous)
        if sliding.load_rows(head, sections):
            return sliding
    again.load(head, sections)
    return again


@settings(max_examples=1000, deadline=None)
@given(data=st.data())
def test_columns_give_the_results_of_rows(data: st.DataObject) -> None:
    document = data.draw(documents())
    is_simultaneous = data.draw(st.booleans())
    numbers: Sequence[Any] = data.draw(st.sampled_from([NUMBERS, NUMBERS, UNFIT]))
    events = data.draw(rows(document, numbers=numbers, is_late=data.draw(st.booleans())))
    expected = run_of(AggregateRun, document, is_simultaneous=is_simultaneous)
    run = run_of(SlidingRun, document, is_simultaneous=is_simultaneous)
    assert is_columnar(run.body)
    while events:
        size = data.draw(st.integers(1, len(events)))
        some, events = events[:size], events[size:]
        batch = EventRows(some, max(row.time_us for row in some))
        run, found = taken(run, batch)
        assert found == expected.process(batch)
        assert run.measures() == expected.measures()
        match data.draw(st.integers(0, 5)):
            case 0:
                now_us = batch.newest_us + data.draw(st.integers(0, 6))
                assert run.advance_time(now_us) == expected.advance_time(now_us)
            case 1:
                run = reloaded(run, document, is_simultaneous=is_simultaneous)
            case 2:
                keys = run.keys()
                gone = keys % np.uint64(4) == 0
                run.drop(gone, keys)
                keys = expected.keys()
                expected.drop(keys % np.uint64(4) == 0, keys)
            case 3 if isinstance(run, SlidingRun):
                run = reloaded(run.as_rows(), document, is_simultaneous=is_simultaneous)
        assert run.measures() == expected.measures()
    assert run.finish() == expected.finish()
    assert run.measures() == expected.measures()


GOLDEN_DOCUMENT = {
    "of": "x",
    "by": ["g"],
    "values": {"n": "count()", "sum": "sum(x)", "yes": "count_if(y)", "high": "max(x)"},
    "window": "4 us",
    "having": "n >= 2 AND sum > 1",
    "clear": True,
}


def golden_rows(first: int, last: int) -> EventRows:
    found = []
    for n in range(first, last):
        x, y, group = [1, 0.1, None, 2.5][n % 4], [True, False, None][n % 3], ["a", "b", None, 1][n * n % 7 % 4]
        found.append(Row(n // 2, (group,), f"k{group}", key_hash(f"k{group}"), f"e{n}", (True, x, y, x)))
    return EventRows(found, found[-1].time_us)


@pytest.mark.parametrize("saved", orjson.loads((GOLDEN / "state-1.json").read_bytes()))
def test_a_state_of_rows_of_an_earlier_release_becomes_columns(saved: dict[str, Any]) -> None:
    require_as_if_not_saved(saved)


@pytest.mark.parametrize("saved", orjson.loads((GOLDEN / "state-2.json").read_bytes()))
def test_a_state_of_columns_is_read(saved: dict[str, Any]) -> None:
    require_as_if_not_saved(saved)


def require_as_if_not_saved(saved: dict[str, Any]) -> None:
    """A run that is loaded after 40 events emits the same for the next as one without a break."""
    body = read_aggregate(GOLDEN_DOCUMENT)
    sections = {name: b64decode(section) for name, section in saved["sections"].items()}
    holds, _ = condition_and_bounds(body)
    run = begun_run(body, holds, (saved["head"], sections), is_simultaneous=saved["simultaneous"])
    assert isinstance(run, SlidingRun)
    expected = AggregateRun(body, holds, is_simultaneous=saved["simultaneous"])
    expected.process(golden_rows(0, 40))
    assert run.measures() == expected.measures()
    assert taken(run, golden_rows(40, 80))[1] == expected.process(golden_rows(40, 80))
    assert run.advance_time(99) == expected.advance_time(99)


def test_a_damaged_or_unknown_state_is_refused() -> None:
    run = run_of(SlidingRun, GOLDEN_DOCUMENT)
    taken(run, golden_rows(0, 40))
    head, sections = run.dump()
    for changed in ((head, {**sections, "codes": b"1234"}), ({**head, "format": 9}, sections)):
        with pytest.raises(AggregateStateError):
            run_of(SlidingRun, GOLDEN_DOCUMENT).load(*changed)


@pytest.mark.parametrize(
    "changes",
    [
        {"window": {"last": 3}},
        {"values": {"n": "distinct(x)"}, "having": "n > 1"},
        {"having": "n > before(n, 1 s)"},
        {"having": "n > all(n)"},
        {"events": 3},
    ],
)
def test_what_needs_more_of_an_event_than_a_number_has_rows(changes: dict[str, Any]) -> None:
    assert not is_columnar(read_aggregate({**GOLDEN_DOCUMENT, **changes}))
    assert is_columnar(read_aggregate(GOLDEN_DOCUMENT))


def test_more_events_than_allowed_suspend_it() -> None:
    document = {**GOLDEN_DOCUMENT, "memory": {"rows": 3}}
    runs = [run_of(kind, document) for kind in (AggregateRun, SlidingRun)]
    expected, (run, found) = runs[0].process(golden_rows(0, 40)), taken(runs[1], golden_rows(0, 40))
    assert found == expected
    assert all(one.is_suspended and not one.measures()["held"] for one in (run, runs[0]))


@pytest.mark.compiled
def test_tables_grow_and_shrink_with_the_window() -> None:
    """Many more steps, events, groups and extremes than a first table has room for."""
    values = {"n": "count()", "low": "min(x)", "high": "max(x)"}
    document = {"of": "x", "by": ["g"], "values": values, "window": "10 us", "having": "n > 4", "clear": True}
    size = 60_000
    some = [
        Row(0 if n < size - 9 else 50, (n % 9_000,), "k", 1, f"e{n}", (True, n * 7 % 101, n * 7 % 101))
        for n in range(size)
    ]
    runs = [run_of(kind, document) for kind in (AggregateRun, SlidingRun)]
    expected, (run, found) = runs[0].process(EventRows(some, 50)), taken(runs[1], EventRows(some, 50))
    assert found == expected
    assert len(found) == 2 * 9_000
    assert run.measures() == {"groups": 9, "held": 9, "late": 0}


def test_a_number_that_does_not_fit_leads_to_no_warning() -> None:
    run = run_of(SlidingRun, {"of": "x", "values": {"sum": "sum(x)"}, "window": "4 us"})
    events = [Row(1, (), "k", key_hash("k"), "e1", (1e308,))]
    columns = EventColumns.of(run.body, EventRows(events, 1))
    assert columns is not None
    with np.errstate(over="raise"):
        assert not run.fits(columns)

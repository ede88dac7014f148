"""The engine of aggregates against the reference, which computes every window anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregates import AggregateRun, Emission, EventRows, Row, read_aggregate
from shards.kinds.aggregates.reading import condition_and_bounds
from streams import key_hash
from tests.references.aggregates import Naive

VALUES = {
    "n": "count()",
    "known": "count(x)",
    "yes": "count_if(x = 1)",
    "sum": "sum(x)",
    "mean": "avg(x)",
    "low": "min(x)",
    "high": "max(x)",
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
]
CONDITIONS = [
    None,
    "n >= 2",
    "sum > 1 AND kinds < 3",
    "n > coalesce(before(n, 4 us), 0)",
    "sum > 2 * before(sum, 2 us)",
    "2 * n > all(n) AND g != 'b'",
]
ARGUMENTS = st.sampled_from([None, 0, 1, 2, 0.1, 0.2, 0.3, 1e150, -1e150, "a", "b", True, 1.0])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    window, having = draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(CONDITIONS))
    if (
        isinstance(window, dict)
        and ("last" in window or "session" in window)
        and ("before" in (having or "") or "all" in (having or ""))
    ):
        having = "n >= 2"
    if having and window == {"tumbling": "5 us"}:
        having = having.replace("4 us", "5 us").replace("2 us", "10 us")
    chosen = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    names = ["n", "sum", "kinds", *chosen] if having else chosen
    found: dict[str, Any] = {"of": "x", "by": ["g"], "values": {one: VALUES[one] for one in names}, "window": window}
    if having:
        found |= {"having": having}
        if not isinstance(window, dict) or "last" in window or "session" in window:
            found |= {"clear": draw(st.booleans())}
    return found


@st.composite
def rows(draw: st.DrawFn, document: Mapping[str, Any]) -> list[Row]:
    made, time_us = [], draw(st.integers(0, 9))
    functions = [text.partition("(")[0] for text in document["values"].values()]
    for number in range(draw(st.integers(1, 24))):
        time_us += draw(st.sampled_from([0, 0, 1, 1, 2, 5, 9]))
        x, group = draw(ARGUMENTS), draw(st.sampled_from(["a", "b", None]))
        arguments = tuple(
            True if text == "count()" else (x == 1 and not isinstance(x, bool)) if function == "count_if" else x
            for function, text in zip(functions, document["values"].values(), strict=True)
        )
        key = str(group)
        is_revocable = draw(st.booleans())
        made.append(Row(time_us, (group,), key, key_hash(key), f"e{number}", arguments, is_revocable=is_revocable))
    return made


def run_of(document: Mapping[str, Any], *, is_simultaneous: bool = False) -> AggregateRun:
    body = read_aggregate(document)
    return AggregateRun(body, condition_and_bounds(body)[0], is_simultaneous=is_simultaneous)


def shown(run: AggregateRun, found: Sequence[Emission]) -> list[Any]:
    names = [one.name for one in run.body.values]
    return [(one.time_us, one.change, one.group, {name: one.data[name] for name in names}) for one in found]


@settings(max_examples=2000, deadline=None)
@given(data=st.data())
def test_it_emits_what_every_window_computed_anew_has(data: st.DataObject) -> None:
    document = data.draw(documents())
    events, is_simultaneous = data.draw(rows(document)), data.draw(st.booleans())
    run = run_of(document, is_simultaneous=is_simultaneous)
    expected = Naive(run.body, condition_and_bounds(run.body)[0], events, is_simultaneous).emitted()
    found: list[Emission] = []
    rest = list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        some, rest = rest[:size], rest[size:]
        found += run.process(EventRows(some, some[-1].time_us))
        if data.draw(st.booleans()):
            again = run_of(document, is_simultaneous=is_simultaneous)
            again.load(*run.dump())
            run = again
    found += run.finish()
    assert sorted(shown(run, found), key=lambda one: (one[0], one[2], one[1], repr(one[3]))) == expected
    assert run.measures() == {"groups": 0, "held": 0, "late": 0}


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_batches_do_not_change_the_order(data: st.DataObject) -> None:
    document = data.draw(documents())
    events = data.draw(rows(document))
    whole, split = run_of(document), run_of(document)
    found: list[Emission] = []
    for row in events:
        found += split.process(EventRows([row], row.time_us))
    at_once = whole.process(EventRows(events, events[-1].time_us))
    key = [(one.time_us, one.group, one.change, one.cause, one.data) for one in found]
    assert [(one.time_us, one.group, one.change, one.cause, one.data) for one in at_once] == key


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
    found = [*run.process(EventRows(events, 9)), *run.finish()]
    assert sorted(shown(run, found), key=lambda one: (one[0], one[2], one[1], repr(one[3]))) == expected

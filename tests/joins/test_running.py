"""A join that runs: what it keeps of events beside its numbers."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import Broken, JoinOutput, JoinRefused, JoinRun, Window, merged_id, read_join
from streams import Event, EventBatch

PAIRS = {
    "inputs": [
        {"stream": "a", "as": "o", "closed_by": "unique"},
        {"stream": "b", "as": "p", "closed_by": "unique"},
    ],
    "return": {"o": "id(o)", "p": "id(p)"},
}


def merged(number: int, alias: str, place: int) -> Event:
    data = {"type": "T", "data": {}}
    identity = merged_id("op".index(alias), place, f"{alias}{place}")
    return Event(id=identity, type=alias, time_us=number, key=f"k{place}", data=data)


def test_events_that_can_join_nothing_any_more_are_forgotten_while_it_runs() -> None:
    run, most = JoinRun(read_join(PAIRS), "pairs", 1), 0
    for place in range(200):
        run.process(EventBatch.from_events([merged(2 * place, "o", place)]))
        output = run.process(EventBatch.from_events([merged(2 * place + 1, "p", place)]))
        assert [event.data for event in output.events.to_events()] == [{"o": f"o{place}", "p": f"p{place}"}]
        most = max(most, len(run.rows.held))
    assert most <= 3
    assert run.measures()["stored"] == 0


ABSENT = {
    "inputs": [
        {"stream": "a", "as": "o", "closed_by": "unique", "window": "9 us"},
        {"stream": "b", "as": "p", "closed_by": "end"},
    ],
    "outer": "p",
    "return": {"o": "id(o)", "p": "id(p)", "why": "decided_by(p)"},
}


def test_an_absence_says_what_decided_it() -> None:
    run = JoinRun(read_join(ABSENT), "pairs", 1)
    closed = Event(id=merged_id(1, 9, ""), type="p.closed", time_us=3, key="k2", data={})
    given = [merged(1, "o", 1), merged(2, "o", 2), closed, merged(4, "o", 3), merged(5, "p", 3), merged(11, "o", 4)]
    outputs = [run.process(EventBatch.from_events(given)), run.finish()]
    events = [event for output in outputs for event in output.events.to_events()]
    assert [(event.time_us, event.data["o"], event.data["why"]) for event in events] == [
        (3, "o2", "finished"),
        (5, "o3", None),
        (10, "o1", "window"),
        (11, "o4", "end_of_input"),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"return": {"why": "decided_by(o)"}}, "it never is unless 'outer' lists it"),
        ({"return": {"why": "decided_by(p.v)"}}, "write decided_by"),
        ({"return": {"c": "key(p)"}}, "return, c: there is no function 'key' here; use id, type, time or decided_by"),
        ({"return": {"n": "sum(p.v)"}}, "return, n: sum is a total, which needs emit: on_close"),
        (
            {"return": {"why": "decided_by(p)"}, "emit": "on_close"},
            "no function 'decided_by' here; use id, type, time, count",
        ),
        ({"window": "99999999999 h"}, "'window' of a join is '99999999999 h'; write a duration such as '24 h' or"),
        ({"window": "1" + "0" * 400 + " s"}, "of at most 2^62 us"),
    ],
)
def test_what_cannot_say_why_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(JoinRefused, match=re.escape(message)):
        read_join(ABSENT | changes)


FAILING = {
    "inputs": [
        {"stream": "a", "as": "o", "closed_by": ["unique"], "window": "3 us"},
        {"stream": "b", "as": "p", "closed_by": [{"type": "Last"}], "window": "4 us"},
    ],
    "outer": ["o", "p"],
    "return": {"o": "id(o)", "p": "id(p)"},
}
TOTALS = {
    **FAILING,
    "emit": "on_close",
    "return": {"n": "count(p)", "o": "id(o)"},
}
given_events = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["o", "o.last", "p", "p", "p.last", "p.closed"]), st.integers(0, 2)),
    max_size=25,
)


def said(output: JoinOutput) -> list[tuple[int, str, dict[str, Any]]]:
    return [(event.time_us, event.key, dict(event.data)) for event in output.events.to_events()]


@settings(max_examples=150, deadline=None)
@given(given_events, st.sampled_from([FAILING, TOTALS]), st.sets(st.integers(0, 24)))
def test_with_late_fail_nothing_comes_after_the_first_contradiction(
    made: list[tuple[int, str, int]], document: dict[str, Any], cuts: set[int]
) -> None:
    time_us, events = 0, []
    for place, (step, kind, key) in enumerate(made):
        time_us += step
        identity = merged_id("op".index(kind[0]), place, f"e{place}")
        events.append(Event(id=identity, type=kind, time_us=time_us, key=f"k{key}", data={"type": "T", "data": {}}))
    reporting, expected, first = JoinRun(read_join(document), "j", 1), [], None
    for event in events:
        output = reporting.process(EventBatch.from_events([event]))
        expected += said(output)
        if output.broken:
            first = output.broken[0]
            break
    failing = {**document, "late": "fail"}
    run, found, begin = JoinRun(read_join(failing), "j", 1), [], 0
    broken: list[Broken] = []
    for border in sorted({*cuts, len(events)}):
        output = run.process(EventBatch.from_events(events[begin:border]))
        begin = max(begin, border)
        found += said(output)
        broken += output.broken
        assert output.is_suspended == bool(output.broken)
        saved = run.dump()
        run = JoinRun(read_join(failing), "j", 1)
        run.load(*saved)
    assert found == expected
    assert broken == ([] if first is None else [first])
    assert run.is_suspended == (first is not None)
    if first is not None:
        assert (run.measures()["stored"], len(run.keys())) == (0, 0)
        assert said(run.finish()) == said(run.advance_time(time_us + 100)) == []


@pytest.mark.parametrize("window", ["2 w", "2 weeks", "14 d", "1 week", "7 d"])
def test_weeks_are_written_as_in_patterns(window: str) -> None:
    inputs = [{"stream": alias, "as": alias} for alias in "op"]
    body = read_join({"inputs": inputs, "window": window, "return": {"o": "id(o)"}})
    days = 14 if window in ("2 w", "2 weeks", "14 d") else 7
    assert {one.window for one in body.inputs} == {Window("time", days * 86_400_000_000)}

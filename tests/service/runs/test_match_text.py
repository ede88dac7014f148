"""Matches written by columns are what their values are written as."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constraints import parse_constraints
from nfa import Prune, parse_patterns
from service.runs.match_text import matches_text
from service.runs.stream_report import StreamReport
from streams import LATEST_US, Event
from tests.references.runs import match_documents
from tests.service.runs.reports import report_on

PLAIN = "PATTERN p EVENT SEQ(A z, B y, A x) WITHIN 9 s"
LOOP = "PATTERN p EVENT SEQ(A a, B+ b, C c) WITHIN 9 s"
SAME = "EVENT SEQ(A|B a, C c)"
PATTERNS = [
    PLAIN,
    LOOP,
    "PATTERN p EVENT SEQ(A a, B b) PATTERN q EVENT SEQ(B b, A a)",
    "PATTERN p EVENT SEQ(A|B a) PATTERN q EVENT SEQ(A a, OR(B b, C c))",
    "PATTERN p EVENT SEQ(A|B+ z, B* y, C+ x) WITHIN 4 s PATTERN q EVENT SEQ(A|B{1,2} y, C? x, A z)",
    "PATTERN p EVENT AND(A+ z, B+ a) WITHIN 4 s",
    'PATTERN p EVENT SEQ(A a, OR(B+ `b ü`, C `"c`), A|B z) WITHIN 5 s',
    f"PATTERN r {SAME} PATTERN q {SAME} WITHIN 9 s PATTERN p EVENT SEQ(A|B c, C a) PATTERN o {SAME} WITHIN 2 s",
    "PATTERN p EVENT SEQ(A a, B* b, C c [v > a.v]) WITHIN 9 s",
    "PATTERN p EVENT SEQ(A a, NOT B) WITHIN 2 s",
    "PATTERN p EVENT SEQ(A|C+ a, NOT B) WITHIN 2 s",
    "PATTERN p EVENT SEQ(A a, B+ b) RETURN a.v, sum(b.v) AS s, last(b.w) AS l, id(a) AS i PATTERN q EVENT A a",
    "PATTERN p EVENT SEQ(A a, C c) SELECT NEXT PATTERN q EVENT C x",
    "PATTERN p EVENT SEQ(A a, B+ b) WHERE [key, w] PATTERN q EVENT SEQ(A a, B+ b)",
]
NAMES = st.text(st.sampled_from(["e", "é", "😀", '"', "\\", "\n", "\x00", "\x1f", "\x7f"]), min_size=1, max_size=2)
TIMES = st.sampled_from([0, 1, 1_500_000, 2_000_000, 5_000_000, LATEST_US])
VALUES = st.fixed_dictionaries({}, optional={"v": st.integers(0, 2), "w": NAMES})


@st.composite
def traces(draw, most=9):
    """Events of few kinds, times and names; some have the same id."""
    times = sorted(draw(st.lists(TIMES, max_size=most)))
    keys = draw(st.lists(NAMES, min_size=1, max_size=2))
    return [
        Event(
            id=draw(NAMES) + draw(st.sampled_from(["", str(number)])),
            type=draw(st.sampled_from("ABC")),
            time_us=time_us,
            key=draw(st.sampled_from(keys)),
            data=draw(VALUES),
        )
        for number, time_us in enumerate(times)
    ]


def is_written_as_its_values(report: StreamReport) -> bool:
    return report.to_json().startswith(b'{"matches":' + orjson.dumps(match_documents(report)) + b',"timeouts":')


@pytest.mark.parametrize("text", PATTERNS)
@given(traces(), st.booleans())
def test_text_is_that_of_the_values(text, events, is_open):
    report = report_on(parse_patterns(text), events, is_open=is_open)
    assert is_written_as_its_values(report)


@pytest.mark.parametrize("prune", [Prune.STATE, Prune.SHADOW])
@given(traces())
def test_marks_of_matches_are_those_of_the_values(prune, events):
    constraint_set = parse_constraints(["exclusive(A, C)", "prior(A, B)"]).constraint_set
    patterns = parse_patterns(f"{LOOP} PATTERN q EVENT SEQ(A a, NOT C) WITHIN 2 s PATTERN r EVENT SEQ(B+ b, A a)")
    report = report_on(patterns, events, constraint_set, prune=prune)
    assert is_written_as_its_values(report)


@given(traces(most=14), st.integers(1, 6), st.sampled_from([1, 7]))
def test_matches_of_several_batches_and_parts_are_in_one_order(events, rows, bound):
    patterns = parse_patterns(f"{LOOP} PATTERN q EVENT SEQ(C c, B b) WITHIN 4 s")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.runs.stream_run.BATCH_ROWS", rows)
        patched.setattr("service.runs.match_text._EVENTS_AT_ONCE", bound)
        report = report_on(patterns, events)
        assert is_written_as_its_values(report)


def test_many_matches_come_in_parts(monkeypatch):
    monkeypatch.setattr("service.runs.match_text._EVENTS_AT_ONCE", 40)
    kinds = "ABBCABABCBBABA" * 5
    events = [Event(id=f"e{n}", type=kind, time_us=n * 700_000, key="k") for n, kind in enumerate(kinds)]
    report = report_on(parse_patterns(LOOP), events)
    parts = matches_text(report.lanes)
    assert len(parts) > 2
    assert len(report.matches) > 50
    assert is_written_as_its_values(report)


def test_an_alias_that_ends_comes_before_one_that_goes_on():
    """Sorted bindings compare the ids of an alias before the next alias, whatever its name."""
    events = [Event(id=one, type=one[0], time_us=5, key="k") for one in ("A1", "B1", "C1", "B2")]
    patterns = parse_patterns("PATTERN p EVENT SEQ(A a, B+ b, C? c, B? d)")
    report = report_on(patterns, events)
    assert [match["bindings"].get("b") for match in report.matches] == [
        ["B1"],
        ["B1"],
        ["B1"],
        ["B1"],
        ["B1", "B2"],
        ["B2"],
    ]
    assert is_written_as_its_values(report)


def test_without_matches_there_is_no_text():
    report = report_on(parse_patterns(LOOP), [Event(id="e", type="A", time_us=0, key="k")])
    assert matches_text(report.lanes) == []
    assert is_written_as_its_values(report)


@pytest.mark.parametrize(
    ("prune", "marks"),
    [
        (Prune.STATE, ['"decided_by":"constraint"', '"decided_by":"trace_end"']),
        (Prune.SHADOW, ['"decided_by":"window"', '"deviating":true', '"would_be_lost":true']),
    ],
)
def test_every_mark_is_written(prune, marks):
    constraint_set = parse_constraints(["exclusive(A, C)"]).constraint_set
    patterns = parse_patterns(f"{LOOP} PATTERN q EVENT SEQ(A a, NOT C) WITHIN 2 s PATTERN r EVENT SEQ(B b, NOT A)")
    events = [Event(id=f"e{n}", type=kind, time_us=n, key="kj"[n > 3]) for n, kind in enumerate("ABBCA")]
    report = report_on(patterns, events, constraint_set, prune=prune)
    text = report.to_json().decode()
    assert [mark for mark in marks if mark not in text] == []
    assert is_written_as_its_values(report)

"""Questions of the log: they are answered at their place, and change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import CaseQuery, CaseState
from shards import OutputRow, ShardState
from shards.kinds.patterns.cases import MOST_CASES, case_query
from streams import Ask, ConstraintsOn, ControlRecordError, PatternOn, StreamDeclaration, StreamOn, Tick, TraceEnd
from tests.builders.shards import Step, bodies, event, log_of, saved_measures

BOUNDED = settings(max_examples=40, deadline=None)
STREAM = StreamOn(StreamDeclaration(name="orders", end_events=("End",), lateness=2))
HEAD: list[Step] = [
    STREAM,
    ConstraintsOn(name="orders", version=1, document={"exclusive": [["B", "Z"]], "end": ["End", "Stop"]}),
    PatternOn(name="ab", version=1, text="PATTERN ab EVENT SEQ(A a, B b)"),
    PatternOn(name="run", version=1, text="PATTERN run EVENT SEQ(A a, NEXT B b [b.x >= a.x], NOT C) WITHIN 5 s"),
    PatternOn(name="az", version=1, text="PATTERN az EVENT SEQ(A a, Z z)"),
]


def asked(number: int = 1, **question: Any) -> Ask:
    return Ask(id=f"q{number}", operator="pattern", question={"about": "traces", **question})


@st.composite
def steps(draw: st.DrawFn) -> list[Any]:
    """Events in disorder, ticks and ends of traces."""
    found: list[Any] = []
    for number in range(draw(st.integers(0, 8))):
        drawn = draw(st.integers(0, 9))
        if drawn == 0:
            found.append(Tick(time_us=draw(st.integers(0, 12)) * 1_000_000, cause="events"))
        elif drawn == 1:
            found.append(TraceEnd(key=draw(st.sampled_from("kl"))))
        else:
            types = draw(st.lists(st.sampled_from(["A", "B", "C", "Z", "Stop", "End"]), min_size=1, max_size=4))
            batch = [
                event(draw(st.integers(0, 12)), name, draw(st.sampled_from("kl")), x=draw(st.integers(0, 1)))
                for name in types
            ]
            found.append([replace(one, id=f"e{number}-{place}") for place, one in enumerate(batch)])
    return found


@BOUNDED
@given(steps(), st.data())
def test_questions_change_neither_other_rows_nor_the_state(drawn: list[Any], data: st.DataObject) -> None:
    plain = log_of([*HEAD, *drawn])[0]
    places = sorted(data.draw(st.lists(st.integers(1, len(plain)), max_size=4)))
    (question,) = log_of([asked()])[0]
    without, between = ShardState(0), ShardState(0)
    rows, other_rows = [], []
    for number, entry in enumerate(plain):
        for turn in range(places.count(number)):
            (answer,) = between.apply([replace(question, position=f"{number}-{turn + 9}")])
            assert answer.kind == "answer"
        rows += without.apply([replace(entry, position=f"{number + 1}-0")])
        other_rows += between.apply([replace(entry, position=f"{number + 1}-0")])
    assert other_rows == rows
    last = replace(question, position="99-0")
    assert bodies(without.apply([last]), "answer") == bodies(between.apply([last]), "answer")
    assert between.dump() == without.dump()


@BOUNDED
@given(steps(), st.data())
def test_an_answer_does_not_depend_on_cuts_and_reloads(drawn: list[Any], data: st.DataObject) -> None:
    entries = log_of([*HEAD, *drawn, asked()])[0]
    whole, cut = ShardState(0), ShardState(0)
    rows = whole.apply(entries)
    found = []
    first = 0
    while first < len(entries):
        size = data.draw(st.integers(1, 4))
        found += cut.apply(entries[first : first + size])
        first += size
        if data.draw(st.booleans()):
            cut = ShardState.load(cut.dump())
    assert _without_places(found) == _without_places(rows)
    assert saved_measures(cut) == saved_measures(whole)


def test_counts_by_type_have_one_order_however_types_came() -> None:
    """Found by a random test: types were counted in the order of their first batch."""
    late = [event(3, "A", "l", x=0), *(event(0, "A", "k", x=0) for _ in range(3))]
    drawn = [[event(0, "B", "k", x=0)], late, [event(5, "A", "k", x=0), event(0, "A", "k", x=0)]]
    named = [[replace(one, id=f"e{n}-{place}") for place, one in enumerate(batch)] for n, batch in enumerate(drawn)]
    entries = log_of([*HEAD, *named, asked()])[0]
    cut, rows = ShardState(0), []
    for entry in entries:
        rows += cut.apply([entry])
        cut = ShardState.load(cut.dump())
    assert _without_places(rows) == _without_places(ShardState(0).apply(entries))


def _without_places(rows: list[OutputRow]) -> list[tuple[str, str, bytes]]:
    return sorted((row.kind, row.id, row.body) for row in rows if row.kind != "dead-letter")


def answer_of(*given_steps: Any, **question: Any) -> dict[str, Any]:
    rows = ShardState(0).apply(log_of([*given_steps, asked(**question)])[0])
    (found,) = bodies(rows, "answer")
    return dict(found)


def test_an_answer_says_what_keeps_the_constraints_and_what_may_follow() -> None:
    plain = [StreamOn(StreamDeclaration(name="orders", end_events=("End",))), *HEAD[1:]]
    found = answer_of(
        *plain,
        [event(1, "A", "open"), event(2, "B", "open")],
        [event(3, "B", "bad"), event(4, "Z", "bad")],
        [event(5, "Stop", "over")],
        [event(6, "A", "gone"), event(7, "End", "gone")],
    )
    assert (found["question"], found["shard"]) == ("q1", 0)
    answer = found["answer"]
    assert (answer["open"], answer["matching"], answer["time_us"]) == (3, 3, 7_000_000)
    kept, bad, over = answer["traces"]
    assert [one["constraints"] for one in (kept, bad, over)] == ["kept", "deviating", "complete"]
    assert kept["following"] == {"possible": ["B", "End", "Stop"], "excluded": ["Z"], "more": 0}
    assert (bad["following"]["possible"], over["following"]["possible"]) == ([], [])
    states = {pattern["name"]: pattern["state"] for pattern in kept["patterns"]}
    assert states == {"ab": "alive", "run": "waiting", "az": "ended"}
    (ended,) = (pattern for pattern in kept["patterns"] if pattern["name"] == "az")
    assert "exclusive(B, Z)" in ended["reason"]


def test_a_stream_without_constraints_says_so() -> None:
    found = answer_of(STREAM, [event(1, "A"), event(9, "A", "l")])
    (case,) = found["answer"]["traces"]
    assert (case["constraints"], case["version"], case["events"]) == ("none", None, 1)


def test_who_does_not_answer_says_why() -> None:
    rows = ShardState(0).apply(log_of([STREAM, Ask(id="q", operator="tally", question={})])[0])
    (found,) = bodies(rows, "answer")
    assert "kind 'tally'" in found["error"]["message"]
    assert bodies(rows, "dead-letter") == []


@pytest.mark.parametrize(
    "question",
    [{}, {"about": "x"}, {"about": "traces", "limit": MOST_CASES + 1}, {"about": "traces", "older_than_us": -1},
     {"about": "traces", "state": "shut"}, {"about": "traces", "pattern": 3}, {"about": "traces", "more": 1}],
)  # fmt: skip
def test_a_question_of_another_form_is_refused(question: dict[str, Any]) -> None:
    with pytest.raises(ControlRecordError):
        case_query(question)


def test_a_question_is_read_as_it_was_asked() -> None:
    state: CaseState = "matching"
    question = {"about": "traces", "pattern": "p", "key": None, "state": state, "older_than_us": 5, "limit": 7}
    assert case_query(question) == CaseQuery(pattern="p", state=state, older_than_us=5, limit=7)

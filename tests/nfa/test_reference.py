"""The reference on cases that the worked examples leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nfa.language.parsing import parse_pattern
from nfa.syntax import Atom
from streams import Event
from tests.builders.worked_examples import examples_in
from tests.references.patterns.outcome import ReferenceResult, reference_matches, reference_outcome
from tests.references.patterns.values import takes

SECOND = 1_000_000


def events_of(trace: str) -> tuple[Event, ...]:
    (example,) = examples_in(f"T | A | {trace} | -")
    return example.events


def outcome_of(text: str, trace: str, **options: Any) -> ReferenceResult:
    return reference_outcome(
        parse_pattern(f"PATTERN p EVENT {text}"), events_of(trace), **{"ties": "simultaneous", **options}
    )


def found(text: str, trace: str, **options: Any) -> list[str]:
    """Matches in order of emission, such as ``a=A1 b=B2,B3``."""
    events = events_of(trace)
    return [written(match.bindings, events) for match in outcome_of(text, trace, **options).matches]


def timeouts(text: str, trace: str, **options: Any) -> list[str]:
    events = events_of(trace)
    partials = outcome_of(text, trace, **options).timeouts
    return [f"{written(partial.bindings, events)} at {partial.due_us // SECOND}" for partial in partials]


def written(bindings: Mapping[str, tuple[int, ...]], events: tuple[Event, ...]) -> str:
    return " ".join(f"{alias}={','.join(events[place].id for place in bindings[alias])}" for alias in sorted(bindings))


def value(expression: str, trace: str) -> object:
    """Value of a RETURN column over a group b of all B of the trace and an A before them."""
    (match,) = outcome_of(f"SEQ(A a, B* b GREEDY) SELECT NEXT LIMIT 1 RETURN {expression} AS x", trace).matches
    return match.returns["x"]


@pytest.mark.parametrize(
    ("expression", "trace", "expected"),
    [
        ("a.v", "A1:5", 5),
        ("a.w", "A1:5", None),
        ("a.v + 1", "A1:5", 6.0),
        ("-a.v", "A1:5", -5.0),
        ("a.v / 0", "A1:5", None),
        ("a.v * 1e308", "A1:50", None),
        ("a.v + 1", 'A1:"x"', None),
        ("coalesce(a.w, a.v, 7)", "A1:5", 5),
        ("time(a)", "A1", SECOND),
        ("key(a)", "A1", "k"),
        ("a.key", "A1", "k"),
        ("a.`key`", "A1", None),
        ("type(a)", "A1", "A"),
        ("id(a)", "A1", "A1"),
        ("count(b)", "A1", 0),
        ("sum(b.v)", "A1", None),
        ("count(b)", "A1 B2 B3:1", 2),
        ("count(b.v)", "A1 B2 B3:1", 1),
        ("sum(b.v)", "A1 B2:2 B3 B4:3", 5.0),
        ("avg(b.v)", "A1 B2:2 B3 B4:3", 2.5),
        ("sum(b.v)", 'A1 B2:2 B3:"x"', None),
        ("min(b.v)", "A1 B2:3 B3:2 B4", 2),
        ("max(b.v)", 'A1 B2:"x" B3:"y"', "y"),
        ("max(b.v)", 'A1 B2:"x" B3:1', None),
        ("first(b.v)", "A1 B2 B3:2", None),
        ("last(b.v)", "A1 B2 B3:2", 2),
        ("sum(b.v * 2)", "A1 B2:1 B3:2", 6.0),
        ("last(time(b))", "A1 B2 B3", 3 * SECOND),
    ],
)
def test_values_of_a_finished_match(expression: str, trace: str, expected: object) -> None:
    result = value(expression, trace)
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("condition", "trace", "is_taken"),
    [
        ("v LIKE 'a%'", 'A1:"abc"', True),
        ("v LIKE 'a_'", 'A1:"abc"', False),
        (r"v LIKE 'a\_'", 'A1:"a_"', True),
        (r"v LIKE 'a\_'", 'A1:"ab"', False),
        ("v LIKE '%'", "A1:5", False),
        ("NOT v LIKE '%'", "A1:5", False),
        ("v IN (1, 5)", "A1:5", True),
        ("v NOT IN (1, 2)", "A1:5", True),
        ("v NOT IN (1, NULL)", "A1:5", False),
        ("v IS NULL", "A1", True),
        ("v = 5.0", "A1:5", True),
        ("v < 'x'", "A1:5", False),
        ("NOT v < 'x'", "A1:5", False),
        ("v < 'x' OR v = 5", "A1:5", True),
    ],
)
def test_step_conditions(condition: str, trace: str, is_taken: bool) -> None:
    pattern = parse_pattern(f"PATTERN p EVENT A a [{condition}]")
    assert isinstance(pattern.event, Atom)
    assert takes(pattern.event, events_of(trace)[0]) is is_taken


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        # prev and aggregates run over all iterations of all repetitions around (D1)
        ("SEQ(A a, B b [v > coalesce(prev(v), 0)]){2}", "A1 B2:2 A3 B4:1 B5:3", ["a=A1,A3 b=B2,B5"]),
        ("SEQ(A a, B b [count(b) = 1 OR sum(a.v) = 3]){2}", "A1:1 B2 A3:2 B4", ["a=A1,A3 b=B2,B4"]),
        # a plain reference is to the same iteration (D2); to an absent step null
        ("SEQ(A a, B b [v = a.v]){2}", "A1:1 B2:1 A3:2 B4:1 B5:2", ["a=A1,A3 b=B2,B5"]),
        ("SEQ(A? a, B b [a.v IS NULL])", "A1:1 B2:1", ["b=B2"]),
        # NOT of the own type sees its own event only, and what is bound before its place
        ("SEQ(A a, NOT A n [count(n) != 1 OR n.v = a.v], B b)", "A1:1 A2:2 A3:1 B4", ["a=A2 b=B4", "a=A3 b=B4"]),
        # UNTIL sees what is bound before its group (D9)
        ("SEQ(A a, B{2} b UNTIL U u [v = a.v])", "A1:1 B2 U3:2 B4 U5:1 B6", ["a=A1 b=B2,B4"]),
        ("SEQ(A a, B+ b UNTIL B u [v > a.v])", "A1:1 B2:1 B3:2", ["a=A1 b=B2"]),
    ],
)
def test_what_conditions_see(text: str, trace: str, expected: list[str]) -> None:
    assert found(text, trace) == expected


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        # the prefix moves in to the first step that exists (D5)
        ("SEQ(A a, NEXT SEQ(B b, C c))", "A1 B2 B3 C4", ["a=A1 b=B2 c=C4"]),
        ("SEQ(A a, NEXT SEQ(B? b, C c))", "A1 C2 C3", ["a=A1 c=C2", "a=A1 c=C3"]),
        ("SEQ(A a, SEQ(B? b, NEXT C c))", "A1 C2 C3", ["a=A1 c=C2"]),
        ("SEQ(A a, WITHIN 2 s SEQ(B? b, C c))", "A1 C5", ["a=A1 c=C5"]),
        # limit and NOT of an edge into an AND hold for the AND as a whole, the mode for each branch
        ("SEQ(A a, WITHIN 2 s AND(B b, C c))", "A1 B2 C9", ["a=A1 b=B2 c=C9"]),
        ("SEQ(A a, NOT N, AND(B b, C c))", "A1 B2 N3 C4", ["a=A1 b=B2 c=C4"]),
        ("SEQ(A a, NOT N, AND(B b, C c))", "A1 N2 B3 C4", []),
        ("SEQ(A a, NEXT AND(B b, C c))", "A1 B2 C3 C4", ["a=A1 b=B2 c=C3"]),
        # but an own prefix after a skipped first step is measured for its step alone
        ("SEQ(A a, AND(B b, SEQ(D? d, WITHIN 2 s C c)))", "A1 B2 C3", []),
        ("SEQ(A a, AND(B b, SEQ(D? d, WITHIN 2 s C c)))", "A1 C2 B3", ["a=A1 b=B3 c=C2"]),
        # a leading AND is measured from its earliest event, which orders nothing
        ("AND(A a, B b) SELECT STRICT", "A1 X2 B3 A4", ["a=A4 b=B3"]),
        ("AND(A a, B b) SELECT STRICT", "A1 B1", ["a=A1 b=B1"]),
        ("AND(AND(A a, B b), C c) SELECT NEXT", "C1 A2 A3 B4", ["a=A2 b=B4 c=C1"]),
        ("AND(A a, SEQ(B? b, WITHIN 2 s C c))", "A1 C2 C3", ["a=A1 c=C2"]),
        # EACH is the edge between iterations, and NOTs at the edge of a repeated part are in each gap
        ("SEQ(A a, B b){2} EACH WITHIN 2 s", "A1 B2 A3 B4 A6 B7", ["a=A1,A3 b=B2,B4", "a=A1,A3 b=B2,B7"]),
        ("SEQ(NOT N, A a){2}", "A1 N2 A3", []),
        ("SEQ(NOT N, A a){2}", "A1 A2 N3", ["a=A1,A2"]),
    ],
)
def test_edges(text: str, trace: str, expected: list[str]) -> None:
    assert found(text, trace) == expected


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        # the next bound event may be of another branch, and may itself be one more (D4)
        ("AND(SEQ(B+ b GREEDY, C c), D d)", "B1 D2 B3 C4", ["b=B1,B3 c=C4 d=D2", "b=B1 c=C4 d=D2", "b=B3 c=C4 d=D2"]),
        ("SEQ(B+ b GREEDY, B|C c)", "B1 B2 C3", ["b=B1,B2 c=C3", "b=B2 c=C3"]),
        ("SEQ(A a, B* b GREEDY, C c)", "A1 B2 C3", ["a=A1 b=B2 c=C3"]),
        ("SEQ(B* b GREEDY, C c)", "B1 C2", ["b=B1 c=C2", "c=C2"]),
        ("SEQ(A a, WITHIN 2 s B* b GREEDY, C c)", "A1 B4 C5", ["a=A1 c=C5"]),
        ("SEQ(A a, STRICT B* b GREEDY, C c)", "A1 X2 B3 C4", ["a=A1 c=C4"]),
        (
            "SEQ(A a, B{1,2} b GREEDY, C c)",
            "A1 B2 B3 B4 C5",
            ["a=A1 b=B2,B3 c=C5", "a=A1 b=B2,B4 c=C5", "a=A1 b=B3,B4 c=C5", "a=A1 b=B4 c=C5"],
        ),
        ("SEQ(A a, B+ b EACH NEXT UNTIL U GREEDY, C c)", "A1 B2 U3 B4 C5", ["a=A1 b=B2 c=C5", "a=A1 b=B4 c=C5"]),
        ("SEQ(A a, B+ b EACH WITHIN 2 s GREEDY)", "A1 B2 B4", ["a=A1 b=B2", "a=A1 b=B4"]),
    ],
)
def test_greedy(text: str, trace: str, expected: list[str]) -> None:
    assert found(text, trace) == expected


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        # absent steps leave the NOTs beside them, and those of an absent sequence
        ("SEQ(X x, SEQ(A? a, NOT N), Y y)", "X1 N2 Y3", []),
        ("SEQ(A a, NOT B, C? c)", "A1 B2 C3", []),
        # without neighbour before it a NOT leads, whatever prefix it has
        ("SEQ(A? a, WITHIN 2 s NOT N, B b)", "N1 B5", []),
        ("SEQ(A? a, STRICT NOT N, B b)", "N1 A2 B3", ["a=A2 b=B3"]),
        ("SEQ(NOT _, A a)", "A1 A2", ["a=A1"]),
        # several in one gap, each with its own extent
        ("SEQ(A a, WITHIN 2 s NOT M, NOT N, B b)", "A1 M3 B4 A5 N8 B9", ["a=A1 b=B4"]),
        ("SEQ(A a, STRICT NOT B, C c)", "A1 X2 B2 C3", []),
    ],
)
def test_negations(text: str, trace: str, expected: list[str]) -> None:
    assert found(text, trace) == expected


@pytest.mark.parametrize(
    ("text", "trace", "detected"),
    [
        ("A a", "A1 X9", [1]),
        ("SEQ(A a, NOT N)", "A1 X9", [9]),
        ("SEQ(A a, NOT N) WITHIN 3 s", "A1 X2", [4]),
        ("SEQ(A a, WITHIN 2 s NOT N) WITHIN 9 s", "A1 X9", [3]),
        ("SEQ(A a, WITHIN 2 s NOT N, NOT M) WITHIN 9 s", "A1 X2", [10]),
        ("A+ a GREEDY WITHIN 5 s SELECT STRICT", "A1 X3", [3]),
        ("A+ a GREEDY WITHIN 5 s SELECT STRICT", "A1 X8", [6]),
        ("A+ a GREEDY WITHIN 5 s", "A1 X3", [6]),
        ("A{1,2} a GREEDY WITHIN 5 s SELECT STRICT", "A1 A2", [2, 7]),
        # two ways to one match: the earlier counts
        ("OR(SEQ(A a, NOT N), A a)", "A1 X9", [1]),
    ],
)
def test_detection(text: str, trace: str, detected: list[int]) -> None:
    assert [match.detected_us // SECOND for match in outcome_of(text, trace).matches] == detected


def test_an_open_trace_shows_what_its_watermark_shows() -> None:
    assert found("A a", "A1 A2", is_open=True) == ["a=A1"]
    assert found("A a", "A1 A2", is_open=True, watermark_us=3 * SECOND) == ["a=A1", "a=A2"]
    assert found("SEQ(A a, NOT N)", "A1 X9", is_open=True) == []
    assert found("SEQ(A a, NOT N) WITHIN 3 s", "A1 X3", is_open=True) == []
    assert found("SEQ(A a, NOT N) WITHIN 3 s", "A1 X4", is_open=True) == ["a=A1"]


def test_order_of_emission() -> None:
    # by end, then start, then first event, then more events first
    assert found("SEQ(A+ a, B b)", "A1 A2 B3 B4") == [
        "a=A1,A2 b=B3",
        "a=A1 b=B3",
        "a=A2 b=B3",
        "a=A1,A2 b=B4",
        "a=A1 b=B4",
        "a=A2 b=B4",
    ]
    # a match that had to wait comes when it is decided
    assert found("OR(SEQ(A a, NOT N), B b) WITHIN 3 s", "A1 B2 B5") == ["b=B2", "a=A1", "b=B5"]


@pytest.mark.parametrize(
    ("rule", "trace", "expected"),
    [
        ("ONCE PER KEY", "A1 B2 B3 A4 B5", ["a=A1 b=B2"]),
        ("SKIP TO NEXT", "A1 B2 B3 A4 B5", ["a=A1 b=B2", "a=A4 b=B5"]),
        ("SKIP PAST LAST", "A1 A2 B3 A3' B4 A5 B6", ["a=A1 b=B3", "a=A5 b=B6"]),
        ("SKIP TO FIRST b", "A1 A2 B3 A4 B5", ["a=A1 b=B3", "a=A4 b=B5"]),
        ("SKIP TO LAST a", "A1 A2 B3 A4 B5", ["a=A1 b=B3", "a=A2 b=B3", "a=A4 b=B5"]),
    ],
)
def test_after_match_rules(rule: str, trace: str, expected: list[str]) -> None:
    assert found(f"SEQ(A a, B b) SELECT {rule}", trace) == expected


def test_the_cap_is_of_one_detection_time_and_counts_what_it_drops() -> None:
    outcome = outcome_of("SEQ(A a, B b) LIMIT 2", "A1 A2 A3 B4 B5")
    assert (len(outcome.matches), outcome.dropped) == (4, 2)
    outcome = outcome_of("SEQ(A a, B b)", "A1 A2 A3 B4 B5", limit=1)
    assert (len(outcome.matches), outcome.dropped) == (2, 4)


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 3 s", "A1 X9", ["a=A1 at 4"]),
        ("SEQ(A a, B b) WITHIN 3 s", "A1 B3", []),
        ("SEQ(A a, NEXT B b, C c) WITHIN 9 s", "A1 B2 B3", ["a=A1 b=B2 at 10"]),
        # no step could be taken just before the window ends
        ("SEQ(A a, STRICT B b) WITHIN 3 s", "A1 X2", []),
        ("SEQ(A a, WITHIN 2 s B b) WITHIN 9 s", "A1 X9", []),
        ("SEQ(A a, NOT N, B b) WITHIN 9 s", "A1 N2", []),
        ("SEQ(A a, SEQ(B b, C c) WITHIN 2 s) WITHIN 9 s", "A1 B2", []),
        ("SEQ(A a, B{2} b UNTIL U) WITHIN 9 s", "A1 B2 U3", []),
        # only maximal ones, alias by alias
        ("AND(A a, B b, C c) WITHIN 5 s", "A1 B2", ["a=A1 b=B2 at 6"]),
        ("SEQ(A a, B{3} b) WITHIN 9 s", "A1 B2 B3", ["a=A1 b=B2,B3 at 10", "a=A1 b=B3 at 10"]),
        ("SEQ(A a, B{2} b) WITHIN 9 s", "A1 B2 A3 B4", ["a=A1 b=B4 at 10", "a=A3 b=B4 at 12"]),
        # a match that WHERE refuses ends nothing
        ("SEQ(A a, B b) WHERE b.v = 1 WITHIN 3 s", "A1 B2:2", ["a=A1 at 4"]),
        # an N before the start is outside of the window by the time it ends
        ("SEQ(NOT N, A a, B b) WITHIN 3 s", "N1 A2", ["a=A2 at 5"]),
    ],
)
def test_timeouts(text: str, trace: str, expected: list[str]) -> None:
    clauses = f"{text} EMIT TIMEOUTS"
    assert timeouts(clauses, trace) == expected
    assert timeouts(clauses, trace, is_open=True, watermark_us=10**9) == expected
    assert timeouts(clauses, trace, is_open=True, watermark_us=SECOND) == []


def event(name: str, key: str, time_us: int, **data: object) -> Event:
    return Event(id=f"{name}-{key}-{time_us}", type=name, time_us=time_us, key=key, data=data)


def ids(text: str, events: list[Event], **options: Any) -> list[Mapping[str, tuple[str, ...]]]:
    pattern = parse_pattern(f"PATTERN p EVENT {text}")
    return [match.bindings for match in reference_matches([pattern], events, **options)]


def test_traces_are_by_key_and_end_with_their_end_event() -> None:
    events = [event("A", "k", 1), event("A", "l", 2), event("End", "k", 3), event("B", "k", 4), event("B", "l", 5)]
    assert ids("SEQ(A a, B b)", events, end_events=("End",)) == [{"a": ("A-l-2",), "b": ("B-l-5",)}]
    assert len(ids("SEQ(A a, B b)", events)) == 2
    ended = reference_matches([parse_pattern("PATTERN p EVENT SEQ(A a, NOT B)")], events, ("End",))
    assert [(match.key, match.detected_us) for match in ended] == [("k", 3)]


def test_finer_keys_split_traces_and_null_belongs_to_none() -> None:
    events = [
        event("A", "k", 1, x=1),
        event("A", "k", 2),
        event("B", "k", 3, x=1.0),
        event("B", "k", 4, x=True),
        event("B", "k", 5),
    ]
    assert ids("SEQ(A a, B b) WHERE [key, x]", events) == [{"a": ("A-k-1",), "b": ("B-k-3",)}]
    assert len(ids("SEQ(A a, B b) WHERE [key]", events)) == 6


def test_matches_of_several_patterns_come_in_order() -> None:
    patterns = [parse_pattern("PATTERN p EVENT SEQ(A a, B b)"), parse_pattern("PATTERN q EVENT B b RETURN b.v")]
    events = [event("A", "k", 1), event("B", "k", 2, v=7), event("B", "k", 3)]
    found = reference_matches(patterns, events)
    assert [(match.pattern, match.end_us, match.returns) for match in found] == [
        ("p", 2, {}),
        ("q", 2, {"b.v": 7}),
        ("p", 3, {}),
        ("q", 3, {"b.v": None}),
    ]


def test_events_of_one_time_are_a_word_in_the_log_or_have_no_order() -> None:
    assert found("SEQ(A a, B b)", "A1 B1", ties="log") == ["a=A1 b=B1"]
    assert found("SEQ(B b, A a)", "A1 B1", ties="log") == []
    assert found("SEQ(A a, NOT N, B b)", "A1 N1 B1", ties="log") == []
    assert found("SEQ(A a, NOT N, B b)", "A1 N1 B2") == ["a=A1 b=B2"]


def test_an_empty_trace_has_no_match() -> None:
    assert outcome_of("A* a", "") == ReferenceResult(matches=[], timeouts=[], dropped=0)

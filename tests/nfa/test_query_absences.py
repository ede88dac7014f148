"""What the NOTs of a pattern forbid, by term."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import Pattern, Query, Term, build_query, parse_pattern
from nfa.syntax import atoms_of
from streams import Event
from tests.builders.patterns import patterns
from tests.references.patterns.attempts import Attempt
from tests.references.patterns.bindings import bindings_of
from tests.references.patterns.traces import Trace


def query(event: str) -> Query:
    return build_query(parse_pattern(f"PATTERN p EVENT {event}"))


def absences(event: str) -> list[str]:
    """Such as ``a.b -B- c.d``, without repetitions, of all terms."""
    found = []
    for term in query(event).terms:
        for absence in term.absences:
            after, before = (
                ".".join(term.atoms[index].alias for index in sorted(atoms))
                for atoms in (absence.after, absence.before)
            )
            found.append(f"{after} -{absence.atom.type}- {before}".strip())
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("SEQ(A a, NOT B, C c)", ["a -B- c"]),
        ("SEQ(A a, NOT B, C c) WITHIN 3 s", ["a -B- c"]),
        ("SEQ(A a, NOT B, NOT C|D, D d)", ["a -B- d", "a -C- d", "a -D- d"]),
        ("SEQ(AND(A a, B b), NOT X, AND(C c, D d))", ["a.b -X- c.d"]),
        ("SEQ(A a, SEQ(NOT X, B b), NOT Y, C c)", ["a -X- b", "b -Y- c"]),
        ("SEQ(A a, OR(SEQ(NOT X, B b), C c), D d)", ["a -X- b"]),
        ("SEQ(A|B a, NOT X, C c)", ["a -X- c"]),
        ("SEQ(A a, NOT X){2}", ["a -X- a", "a -X-"]),
        ("AND(SEQ(A a, NOT X, B b), C c)", ["a -X- b"]),
        ("SEQ(A a, NOT X, B+ b, NOT Y, C c)", ["a -X- b"]),
        ("SEQ(NOT X, A a)", ["-X- a"]),
        ("SEQ(NOT X, AND(A a, B b), C c)", ["-X- a.b"]),
        ("SEQ(A a, B b, NOT X)", ["b -X-"]),
        ("SEQ(A a, SEQ(B b, NOT X), NOT Y)", ["b -X-", "b -Y-"]),
    ],
)
def test_a_not_between_required_steps_is_an_absence(event: str, expected: list[str]) -> None:
    assert absences(event) == expected


@pytest.mark.parametrize(
    "event",
    [
        "SEQ(A a, NOT X [v = 1], C c)",
        "SEQ(A a, WITHIN 2 s NOT X, C c)",
        "SEQ(A a, STRICT NOT X, C c)",
        "SEQ(A a, NOT _, C c)",
        "SEQ(A a, NOT X, B? b, C c)",
        "SEQ(A+ a, NOT X, C c)",
        "SEQ(A? a, B b, NOT X, AND(C? c, D d))",
        "SEQ(_ a, NOT X, C c)",
        "SEQ(NOT X, A a) WITHIN 3 s",
        "SEQ(NOT X, A? a, B b)",
        "SEQ(A a, NOT X) WITHIN 3 s",
        "SEQ(A a, WITHIN 2 s NOT X)",
        "SEQ(A a, NOT X, B? b)",
        "SEQ(A a, AND(B b, C? c), NOT X)",
        "SEQ(A a, NOT X)+",
    ],
)
def test_a_not_whose_gap_may_be_another_is_left_out(event: str) -> None:
    assert absences(event) == []


def test_a_trailing_absence_adds_the_complete_state_at_the_end_of_its_term() -> None:
    found = query("OR(SEQ(A a, B b, NOT X), SEQ(C c, NOT Y, D d))")
    assert [(state.term, sorted(state.bound)) for state in found.states] == [
        (0, []),
        (0, [0]),
        (0, [0, 1]),
        (1, []),
        (1, [0]),
    ]


def test_absences_are_part_of_equality() -> None:
    assert query("SEQ(A a, NOT B, C c)").terms != query("SEQ(A a, C c)").terms
    one, other = query("SEQ(A a, NOT B)"), query("SEQ(A a, NOT B)")
    assert one == other
    assert hash(one) == hash(other)


def _holds(term: Term, pattern: Pattern, attempt: Attempt) -> bool | None:
    """Whether a binding keeps all absences of a term; None if it has not the term's atoms."""
    numbers = {id(atom): number for number, atom in enumerate(atoms_of(pattern.event))}
    places = {}
    for number, place in attempt.bound.items():
        occurrence = attempt.layout.occurrences[number]
        iterations = tuple(iteration for _, iteration in occurrence.spot.loops)
        places[numbers[id(occurrence.atom)], iterations, attempt.trace.events[place].type] = place
    if not places.keys() >= set(term.keys):
        return None
    for absence in term.absences:
        begin = max((places[term.keys[index]] for index in absence.after), default=-1)
        end = min((places[term.keys[index]] for index in absence.before), default=len(attempt.trace))
        if any(attempt.trace.events[place].type == absence.atom.type for place in range(begin + 1, end)):
            return False
    return True


@settings(max_examples=150, deadline=None)
@given(
    patterns(features="or and optional kleene bounded types not_between not_leading not_trailing within next".split()),
    st.lists(st.sampled_from("ABCD"), max_size=6),
)
def test_every_match_keeps_the_absences_of_its_term(pattern: Pattern, word: list[str]) -> None:
    events = [Event(id=f"e{place}", type=name, time_us=place * 1_000_000, key="k") for place, name in enumerate(word)]
    terms = build_query(pattern).terms
    for attempt in bindings_of(pattern, Trace(tuple(events), "log")):
        assert any(_holds(term, pattern, attempt) for term in terms), (attempt.bindings(), terms)

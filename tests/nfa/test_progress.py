"""Edges, and what holds behind the end of a part."""

from __future__ import annotations

import pytest

from nfa.automata.pattern_automaton import PatternAutomaton, build_automaton
from nfa.errors import PatternRefused
from nfa.language.parsing import parse_pattern


def automaton(text: str) -> PatternAutomaton:
    return build_automaton(parse_pattern("PATTERN p EVENT " + text))


def edges(text: str) -> list[tuple[str, str, str, int | None, list[str]]]:
    """For each transition behind the first event: newest state's step, step, mode, limit, NOTs."""
    one = automaton(text)
    newest = {step.target: one.atoms[step.atom].alias for step in one.transitions}
    return [
        (
            newest[step.source],
            one.atoms[step.atom].alias,
            step.edge.mode,
            step.edge.limit_us,
            [one.outline.negated[negation.number].alias for negation in step.edge.negations],
        )
        for step in one.transitions
        if step.source
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SEQ(A a, NEXT B b, WITHIN 5 us C c)", [("a", "b", "next", None, []), ("b", "c", "any", 5, [])]),
        ("SEQ(A a, NEXT SEQ(B b, C c))", [("a", "b", "next", None, []), ("b", "c", "any", None, [])]),
        ("SEQ(A a, NOT N n, B b) SELECT STRICT", [("a", "b", "strict", None, ["n"])]),
        (
            "SEQ(A a, NEXT SEQ(B? b, STRICT C c))",
            [("a", "b", "next", None, []), ("a", "c", "strict", None, []), ("b", "c", "strict", None, [])],
        ),
        ("SEQ(A a, NOT N n){2}", [("a", "a", "any", None, ["n"])]),
        ("A{2} a EACH WITHIN 3 us NEXT", [("a", "a", "next", 3, [])]),
        (
            "SEQ(A a, NOT N n, WITHIN 9 us NEXT AND(B b, C c))",
            [
                ("a", "b", "next", 9, ["n"]),
                ("a", "c", "next", 9, ["n"]),
                ("b", "c", "next", None, []),
                ("c", "b", "next", None, []),
            ],
        ),
    ],
)
def test_edges(text, found):
    assert edges(text) == found


@pytest.mark.parametrize(
    ("text", "negations"),
    [
        ("SEQ(A a, NOT N n)", {1: [["n"]]}),
        ("SEQ(A a, NOT N n, B? b)", {1: [["n"]], 2: [[]]}),
        ("SEQ(A a, SEQ(NOT N n, B? b))", {1: [["n"]], 2: [[]]}),
        ("SEQ(A a, OR(SEQ(NOT N n, B? b), SEQ(NOT M m, C? c)))", {1: [["n"], ["m"]], 2: [[]], 3: [[]]}),
        ("SEQ(A a, OR(SEQ(NOT N n, B? b), C? c))", {1: [[]], 2: [[]], 3: [[]]}),
    ],
)
def test_what_holds_behind_a_match(text, negations):
    one = automaton(text)
    found = {
        state: [[one.outline.negated[negation.number].alias for negation in finish.negations] for finish in finishes]
        for state, finishes in enumerate(one.finishes)
        if finishes
    }
    assert found == negations


def test_a_greedy_repetition_is_left_by_what_passes_over_it():
    one = automaton("SEQ(B b, SEQ(A? a GREEDY, C c)?, D d)")
    leaving = {(one.atoms[step.atom].alias, bool(step.leaves)) for step in one.transitions if step.source == 1}
    assert leaving == {("a", False), ("c", True), ("d", False)}


def test_too_many_states_are_refused():
    branches = ", ".join(f"{letter} {letter.lower()}" for letter in "ABCDEFGHIJKLMN")
    with pytest.raises(PatternRefused, match="states") as refused:
        automaton(f"AND({branches})")
    assert refused.value.reason == "too-large"

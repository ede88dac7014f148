"""Automata of trees, against their languages written out."""

import re
import time
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import ProcessAutomaton
from tests.builders.workflows import process_trees
from tests.references.language import words_of
from tests.references.workflows import enumerate_language
from workflows import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Instances,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
    activity_names,
)
from workflows.errors import AutomatonTooLarge
from workflows.language.minimal import minimal
from workflows.language.trees import automaton_of_tree
from workflows.limits import CompileLimits

LIMITS = CompileLimits()
A, B, C, D = map(Activity, "ABCD")
NOTHING = Silent()


def build(tree: ProcessTree) -> ProcessAutomaton:
    return automaton_of_tree(tree, LIMITS)


def renamed(tree: ProcessTree, names: dict[str, str | None]) -> ProcessTree:
    """With other names, several activities to one name too; None makes one silent."""
    match tree:
        case Activity(name):
            new = names[name]
            return NOTHING if new is None else Activity(new)
        case Silent():
            return tree
        case Sequence(parts):
            return Sequence(tuple(renamed(part, names) for part in parts))
        case Loop():
            body, redo = renamed(tree.body, names), renamed(tree.redo, names)
            return replace(tree, body=body, redo=redo)
        case Instances():
            return Instances(body=renamed(tree.body, names))
        case _:
            return type(tree)(tuple(renamed(branch, names) for branch in tree.branches))


@st.composite
def ambiguous_trees(draw):
    """Random trees, some of whose activities have one name or none."""
    tree = draw(process_trees(300))
    names = st.sampled_from(["A", "B", "C", None])
    return renamed(tree, {name: draw(names) for name in activity_names(tree)})


def has_open_instances(tree: ProcessTree) -> bool:
    match tree:
        case Instances():
            return any(len(word) > 1 for word in enumerate_language(tree.body, 2))
        case Loop():
            return has_open_instances(tree.body) or has_open_instances(tree.redo)
        case Activity() | Silent():
            return False
        case Sequence(parts):
            return any(map(has_open_instances, parts))
        case _:
            return any(map(has_open_instances, tree.branches))


def most_exact(tree: ProcessTree, rounds: int) -> int:
    """The length up to which cutting loops at ``rounds`` rounds omits no word; rounds without events add nothing."""
    return rounds - 1 if any(isinstance(part, Loop | Instances) for part in iterate(tree)) else 1000


def iterate(tree: ProcessTree):
    yield tree
    match tree:
        case Activity() | Silent():
            return
        case Loop():
            yield from iterate(tree.body)
            yield from iterate(tree.redo)
        case Instances():
            yield from iterate(tree.body)
        case Sequence(parts):
            for part in parts:
                yield from iterate(part)
        case _:
            for branch in tree.branches:
                yield from iterate(branch)


def check_language(tree: ProcessTree) -> None:
    automaton = build(tree)
    rounds = 4
    expected = enumerate_language(tree, rounds)
    most = min(most_exact(tree, rounds), max(map(len, expected)))
    assert all(automaton.accepts(word) for word in expected)
    assert words_of(automaton, most) == {word for word in expected if len(word) <= most}
    assert automaton == minimal(automaton)
    assert automaton.letters == tuple(sorted({name for word in expected for name in word}))


@settings(max_examples=150, deadline=None)
@given(process_trees(300).filter(lambda tree: not has_open_instances(tree)))
def test_tree_has_its_language(tree):
    check_language(tree)


@settings(max_examples=200, deadline=None)
@given(ambiguous_trees().filter(lambda tree: not has_open_instances(tree)))
def test_tree_with_repeated_names_has_its_language(tree):
    check_language(tree)


@settings(max_examples=150, deadline=None)
@given(ambiguous_trees().filter(lambda tree: not has_open_instances(tree)))
def test_automaton_is_minimal(tree):
    """Any two states differ in the words that lead to the end."""
    automaton = build(tree)
    states = range(len(automaton))
    apart = {(one, two) for one, two in product(states, states) if automaton.accepting[one] != automaton.accepting[two]}
    while True:
        more = {
            (one, two)
            for one, two in product(states, states)
            if (one, two) not in apart
            and any(
                (after := (automaton.step(one, name), automaton.step(two, name))) in apart
                or (None in after and after != (None, None))
                for name in automaton.letters
            )
        }
        if not more:
            break
        apart |= more
    assert {(one, two) for one, two in product(states, states) if one != two} <= apart


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Parallel((A, B)), ExclusiveChoice((Sequence((A, B)), Sequence((B, A))))),
        (InclusiveChoice((A, B)), ExclusiveChoice((A, B, Parallel((A, B))))),
        (InclusiveChoice((A, NOTHING)), ExclusiveChoice((A, NOTHING))),
        (Loop(body=A), ExclusiveChoice((A, Sequence((A, Loop(body=A)))))),
        (Loop(body=NOTHING, redo=A), ExclusiveChoice((NOTHING, Loop(body=A)))),
        (Loop(body=A, redo=B, repetitions=3), Sequence((A, B, A, B, A))),
        (Instances(body=ExclusiveChoice((A, B))), Loop(body=ExclusiveChoice((A, B)))),
        (Instances(body=Sequence((A, A))), Loop(body=Sequence((A, A)))),
        (Instances(body=Loop(body=ExclusiveChoice((A, B)))), Loop(body=ExclusiveChoice((A, B)))),
        (Instances(body=NOTHING), NOTHING),
        (
            Parallel((Loop(body=NOTHING, redo=A), Loop(body=NOTHING, redo=B))),
            Loop(body=NOTHING, redo=ExclusiveChoice((A, B))),
        ),
        (Sequence((ExclusiveChoice((A, B)), C)), ExclusiveChoice((Sequence((A, C)), Sequence((B, C))))),
    ],
)
def test_equal_languages_have_equal_automata(one, other):
    assert build(one) == build(other)


def test_states_are_numbered_breadth_first():
    automaton = build(Sequence((ExclusiveChoice((B, A)), C)))
    assert automaton.letters == ("A", "B", "C")
    assert automaton.table.tolist() == [[1, 1, -1], [-1, -1, 2], [-1, -1, -1]]
    assert automaton.accepting.tolist() == [False, False, True]


@pytest.mark.parametrize("body", [Sequence((A, B)), ExclusiveChoice((A, Sequence((B, C)))), Parallel((A, B))])
def test_instances_that_count_each_other_have_no_automaton(body):
    with pytest.raises(AutomatonTooLarge, match="no finite automaton"):
        build(Instances(body=body))


def tasks(count: int, prefix: str = "T") -> tuple[Activity, ...]:
    return tuple(Activity(f"{prefix}{number}") for number in range(count))


def test_product_that_is_too_large_is_refused_before_it_is_built():
    tree = Parallel(tuple(Sequence(tasks(3, f"b{branch}.")) for branch in range(12)))
    begin = time.process_time()
    with pytest.raises(AutomatonTooLarge, match="16777216"):
        build(tree)
    assert time.process_time() - begin < 5


def test_loops_in_parallel_are_as_small_as_their_language():
    anything = tuple(Loop(body=NOTHING, redo=task) for task in tasks(30))
    assert len(build(Parallel(anything))) == 1
    assert len(build(InclusiveChoice(anything))) == 1


def test_inclusive_choice_of_many_branches_looks_at_no_subsets():
    assert len(build(InclusiveChoice(tasks(12)))) == 2**12


def test_many_rounds_are_doubled():
    assert len(build(Loop(body=A, repetitions=1000))) == 1001
    assert len(build(Loop(body=Loop(body=NOTHING, redo=A), repetitions=10**12))) == 1
    with pytest.raises(AutomatonTooLarge, match="at most"):
        build(Loop(body=A, repetitions=10**12))


def test_limit_counts_states_of_the_whole():
    tree = Sequence(tasks(9))
    assert len(automaton_of_tree(tree, CompileLimits(max_states=10))) == 10
    with pytest.raises(AutomatonTooLarge, match=re.escape("has 10 states, at most 9")):
        automaton_of_tree(tree, CompileLimits(max_states=9))


def test_progress_is_told():
    told: list[int] = []
    automaton_of_tree(Sequence((A, B)), LIMITS, told.append)
    assert told == [2, 4, 7]

"""The decision against an exhaustive oracle, and the oracle against the definitions."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import NOTHING, ConstraintSet, Remainder, Settings, remainder_of
from constraints.model import Prior, Require
from constraints.reasoning.reasoner import Reasoner
from constraints.remainder import Gap
from house.examples import Draws
from nfa import Atom, PatternState, Query, Symbol
from tests.builders.constraints import (
    compared,
    conforms,
    constraint_sets,
    occurs_in,
    oracle_alive,
    queries,
    query_of,
    random_remainder,
    random_set,
    random_symbols,
    shapes_of,
    with_conditions,
    words,
)
from tests.references.alive import alive

TYPES = "ABCDE"
seen_sets = st.frozensets(st.sampled_from(TYPES), max_size=3)


@settings(max_examples=200)
@given(constraint_sets(TYPES), queries(TYPES), seen_sets)
def test_agrees_with_the_oracle(constraint_set: ConstraintSet, query: Query, seen: frozenset[str]) -> None:
    for state in query.states:
        remainder = remainder_of(query, state)
        assert alive(constraint_set, seen, remainder).is_alive == oracle_alive(constraint_set, seen, remainder), state
    assert bool(alive(constraint_set, seen)) == oracle_alive(constraint_set, seen, NOTHING)


SMALL = "ABC"
SHORT_WORDS = tuple(words(SMALL, 5))


@settings(max_examples=60)
@given(constraint_sets(SMALL, max_size=5), queries(SMALL, max_atoms=2), st.lists(st.sampled_from(SMALL), max_size=2))
def test_the_oracle_agrees_with_the_definitions(constraint_set: ConstraintSet, query: Query, prefix: list[str]) -> None:
    """With two atoms and three types, five more events are enough for whatever is possible."""
    if not all(not constraint_set.blocks(prefix[:place], name) for place, name in enumerate(prefix)):
        return
    continuations = [word for word in SHORT_WORDS if conforms(constraint_set, (*prefix, *word))]
    for term in query.terms:
        remainder = Remainder(term.atoms, term.before)
        expected = any(occurs_in(remainder, word) for word in continuations)
        assert oracle_alive(constraint_set, frozenset(prefix), remainder) == expected


@given(constraint_sets(TYPES), queries(TYPES), st.lists(st.sampled_from(TYPES), max_size=4))
def test_shrinks_as_more_is_seen(constraint_set: ConstraintSet, query: Query, prefix: list[str]) -> None:
    """Along a consistent prefix: what is dead stays dead."""
    consistent = 0
    while consistent < len(prefix) and _may_go_on(constraint_set, prefix[: consistent + 1]):
        consistent += 1
    for state in query.states:
        remainder = remainder_of(query, state)
        verdicts = [
            alive(constraint_set, frozenset(prefix[:size]), remainder).is_alive for size in range(consistent + 1)
        ]
        assert verdicts == sorted(verdicts, reverse=True)


def _may_go_on(constraint_set: ConstraintSet, prefix: list[str]) -> bool:
    is_blocked = constraint_set.blocks(prefix[:-1], prefix[-1])
    return not is_blocked and alive(constraint_set, frozenset(prefix)).is_alive


@given(constraint_sets(TYPES), queries(TYPES), seen_sets)
def test_grows_as_more_is_bound(constraint_set: ConstraintSet, query: Query, seen: frozenset[str]) -> None:
    living = {state for state in query.states if alive(constraint_set, seen, remainder_of(query, state))}
    for state in query.states:
        smaller = [PatternState(state.term, state.bound - {atom}) for atom in state.bound]
        assert state in living or not living.intersection(smaller)


Seen = frozenset[str]


def verdict_of(known: ConstraintSet, seen: Seen, remainder: Remainder, settled: Seen | None = None) -> bool:
    """The reference's answer, which has to be the reasoner's too."""
    reasoner = Reasoner(known)
    masks = reasoner.mask(seen), None if settled is None else reasoner.mask(settled)
    fast = reasoner.is_alive(masks[0], reasoner.goal(remainder), masks[1])
    verdict = alive(known, seen, remainder, settled)
    assert fast == verdict.is_alive, (known, seen, remainder, settled)
    return verdict.is_alive


def some(random: Random, names: str, most: int) -> Seen:
    return frozenset(random.sample(names, random.randint(0, most)))


@pytest.mark.slow
def test_equals_the_oracle_many_times(draws: Draws) -> None:
    random, dead = Random(1), 0
    for _ in (cases := draws(6_000)):
        known = random_set(random, TYPES, random.randint(1, 7))
        seen, remainder = some(random, TYPES, 3), random_remainder(random, TYPES, random.randint(0, 4), 0)
        expected = oracle_alive(known, seen, remainder)
        assert verdict_of(known, seen, remainder) == expected, (known, seen, remainder)
        dead += not expected
    assert len(cases) / 4 < dead < len(cases) * 3 / 4


@pytest.mark.slow
def test_equals_the_oracle_with_gaps(draws: Draws) -> None:
    random, reasons = Random(2), Counter[str | None]()
    for _ in (cases := draws(5_000)):
        known = random_set(random, TYPES, random.randint(1, 7))
        remainder = random_remainder(random, TYPES, random.randint(0, 3), random.randint(1, 2))
        seen = some(random, TYPES, 3)
        assert verdict_of(known, seen, remainder) == oracle_alive(known, seen, remainder), (known, seen, remainder)
        reasons[alive(known, seen, remainder).reason] += 1
    assert reasons["absence"] > len(cases) / 20


def test_the_oracle_agrees_with_the_definitions_with_gaps() -> None:
    """With two atoms and three types, five more events are enough for whatever is possible."""
    random, needed = Random(3), 0
    for _ in range(150):
        known = random_set(random, SMALL, random.randint(1, 4))
        remainder = random_remainder(random, SMALL, random.randint(0, 2), random.randint(1, 2))
        conforming = [word for word in SHORT_WORDS if conforms(known, word)]
        expected = any(occurs_in(remainder, word) for word in conforming)
        assert oracle_alive(known, frozenset(), remainder) == expected, (known, remainder)
        needed += not expected and any(occurs_in(remainder.positives, word) for word in conforming)
    assert needed > 5


def test_gaps_that_open_behind_the_prefix() -> None:
    """After a prefix the end of which is bound, by definition."""
    random = Random(4)
    for _ in range(60):
        known = random_set(random, SMALL, random.randint(1, 4))
        query = query_of(random.choice([("SEQ", "A", "NOT B", "C"), ("SEQ", "A", "NOT B"), ("SEQ", "A", "C", "NOT B")]))
        whole = remainder_of(query, PatternState(0, frozenset()))
        rest = remainder_of(query, PatternState(0, frozenset({0})))
        found = any(conforms(known, ("A", *word)) and completes(whole, word) for word in SHORT_WORDS)
        assert oracle_alive(known, frozenset("A"), rest) == found, (known, query.terms)


def completes(remainder: Remainder, word: tuple[str, ...]) -> bool:
    """Whether a word completes a match of which the first atom was the event before it."""
    rest = remainder.positives.only(frozenset(range(1, len(remainder.atoms))))
    gaps = tuple(
        Gap(
            type=gap.type,
            since=frozenset(index - 1 for index in gap.since or () if index),
            until=frozenset(index - 1 for index in gap.until),
        )
        for gap in remainder.gaps
    )
    return occurs_in(Remainder(rest.atoms, rest.before, gaps), word)


@pytest.mark.slow
def test_never_wrong_where_times_are_not_ordered(draws: Draws) -> None:
    """And exact, without gaps, once time has moved on."""
    random, missed, types = Random(5), 0, TYPES[:4]
    for _ in (cases := draws(3_000)):
        known = random_set(random, types, random.randint(1, 6))
        remainder = random_remainder(random, types, random.randint(0, 3), random.choice([0, 0, 1]))
        seen = some(random, types, 3)
        settled = frozenset(name for name in seen if random.random() < 0.7)
        verdict = verdict_of(known, seen, remainder, settled)
        expected = oracle_alive(known, seen, remainder, settled=settled)
        assert verdict or not expected, (known, seen, remainder, settled)
        assert verdict == expected or settled != seen or remainder.gaps, (known, seen, remainder, settled)
        missed += verdict and not expected
    assert missed < len(cases) / 50


def test_ties_allow_what_a_row_does_not() -> None:
    nothing, atom = frozenset[str](), frozenset({0})
    twice = ConstraintSet((Prior("A", "A"),))
    side_by_side = Remainder((Atom(("A",), "a"), Atom(("A",), "b")), (nothing, nothing))  # type: ignore[arg-type]
    one_after_the_other = Remainder(side_by_side.atoms, (frozenset(), atom))
    assert not verdict_of(twice, nothing, side_by_side)
    assert verdict_of(twice, nothing, side_by_side, nothing)
    assert not verdict_of(twice, nothing, one_after_the_other, nothing)
    known, last = ConstraintSet((Prior("A", "Z"),)), remainder_of(query_of("A"), PatternState(0, frozenset()))
    assert not verdict_of(known, frozenset("Z"), last)
    assert verdict_of(known, frozenset("Z"), last, nothing)
    assert not verdict_of(known, frozenset("Z"), last, frozenset("Z"))


@pytest.mark.slow
def test_never_wrong_with_symbols(draws: Draws) -> None:
    random, missed, dead = Random(6), 0, 0
    for number in (cases := draws(4_000)):
        symbols = random_symbols(random, SMALL, random.randint(1, 3))
        parts = random_set(random, [*SMALL, *symbols], random.randint(1, 6)).parts
        known = ConstraintSet.of(parts, symbols=symbols)
        gaps = random.choice([0, 0, 1])
        remainder = with_conditions(random, random_remainder(random, SMALL, random.randint(0, 3), gaps))
        shapes = {
            (shape.shows, *map(shape.serves, remainder.atoms)): shape
            for shape in shapes_of(SMALL, known, (None, -1, 0, 1, 2, 3))
        }
        shown = [shape.shows for shape in random.sample(list(shapes.values()), 2)]
        seen = frozenset[str]().union(*shown[: random.randint(0, 2)])
        settled = (seen & shown[0]) if number % 10 == 0 else None
        verdict = verdict_of(known, seen, remainder, settled)
        expected = oracle_alive(known, seen, remainder, settled=settled, shapes=list(shapes.values()))
        assert verdict or not expected, (known, seen, remainder, settled)
        dead += not expected
        missed += verdict and not expected
    assert dead > len(cases) / 4
    assert missed < dead / 50


def test_a_required_symbol_may_be_the_event_that_the_match_needs() -> None:
    """The Q required by E may be the Q of the match, so it need not come before A."""
    dear = Symbol(compared("Q", ">", 5))
    parts = (Require("E", dear.name), Prior(dear.name, "A"))
    known = ConstraintSet.of(parts, symbols={dear.name: dear})
    after_a = remainder_of(query_of(("SEQ", "A", "Q")), PatternState(0, frozenset()))
    assert verdict_of(known, frozenset("E"), after_a)
    assert not verdict_of(known, frozenset("EA"), after_a)
    dear_after_a = Remainder((after_a.atoms[0], compared("Q", ">", 7)), after_a.before)
    assert not verdict_of(known, frozenset(), dear_after_a)
    cheap_after_a = Remainder((after_a.atoms[0], compared("Q", ">", 3)), after_a.before)
    assert verdict_of(known, frozenset(), cheap_after_a)


def test_a_blocked_type_blocks_its_symbols() -> None:
    dear = Symbol(compared("Q", ">", 5))
    known = ConstraintSet.of((Prior("Q", "Z"), Require("E", dear.name)), symbols={dear.name: dear})
    assert verdict_of(known, frozenset("Z"), NOTHING)
    assert not verdict_of(known, frozenset("EZ"), NOTHING)
    assert not verdict_of(known, frozenset("QEZ"), NOTHING)
    assert verdict_of(known, frozenset({"E", "Z", "Q", dear.name}), NOTHING)


def test_traces_that_just_stop_need_not_have_what_is_required(draws: Draws) -> None:
    parts = (Require("E", "K"), Prior("K", "Z"), Require("E", "M"), Prior("A", "B"))
    assumed = ConstraintSet.of(parts)
    stopping = ConstraintSet.of(parts, settings=Settings(completion="not_assumed"))
    assert not verdict_of(assumed, frozenset("EZ"), NOTHING)
    assert verdict_of(stopping, frozenset("EZ"), NOTHING)
    last = remainder_of(query_of("A"), PatternState(0, frozenset()))
    assert not verdict_of(stopping, frozenset("EB"), last)
    random = Random(7)
    for _ in draws(1_500):
        known = ConstraintSet.of(
            random_set(random, TYPES, random.randint(1, 7)).parts, settings=Settings(completion="not_assumed")
        )
        seen, remainder = some(random, TYPES, 3), random_remainder(random, TYPES, random.randint(0, 3), 1)
        assert verdict_of(known, seen, remainder) == oracle_alive(known, seen, remainder)


def test_too_many_choices_are_taken_to_fit() -> None:
    """Ten events that gaps forbid, each before or after: only the gaps that leave no choice are kept."""
    names = [f"X{number}" for number in range(10)]
    tree = ("SEQ", "A", *(f"NOT {name}" for name in names), "B", *(f"NOT {name}" for name in names[:1]))
    remainder = remainder_of(query_of(tree), PatternState(0, frozenset()))
    requiring = [Require("A", name) for name in names]
    assert verdict_of(ConstraintSet(tuple(requiring)), frozenset(), remainder)
    between = [part for name in names for part in (Prior("A", name), Prior(name, "B"))]
    assert verdict_of(ConstraintSet((*requiring, *between[2:])), frozenset(), remainder)
    few = remainder_of(query_of(("SEQ", "A", "NOT X1", "B")), PatternState(0, frozenset()))
    assert not verdict_of(ConstraintSet((*requiring, *between)), frozenset(), few)

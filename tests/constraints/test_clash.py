"""Every reason is minimal and, where there is a choice, the plain one."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    Clash,
    ConstraintSet,
    End,
    Exclusive,
    Prior,
    Process,
    Remainder,
    Require,
    find_clash,
    remainder_of,
)
from house.examples import Draws
from nfa import Query
from tests.builders.constraints import (
    constraint_sets,
    queries,
    query_of,
    random_remainder,
    random_set,
    random_symbols,
    with_conditions,
)
from tests.references.alive import alive

TYPES = "ABCDE"


def assert_minimal(
    clash: Clash, constraint_set: ConstraintSet, seen: frozenset[str], settled: frozenset[str] | None = None
) -> None:
    """It clashes; without any one constraint, atom or gap it does not."""
    parts, remainder = clash.constraints, clash.remainder
    everything = frozenset(range(len(remainder.atoms)))
    assert set(parts) <= set(constraint_set.parts)
    assert clash.reason == alive(constraint_set.of_parts(parts), seen, remainder, settled).reason
    for part in parts:
        fewer = constraint_set.of_parts(other for other in parts if other != part)
        assert alive(fewer, seen, remainder, settled)
    for atom in everything:
        assert alive(constraint_set.of_parts(parts), seen, remainder.only(everything - {atom}), settled)
    for gap in remainder.gaps:
        open_there = replace(remainder, gaps=tuple(other for other in remainder.gaps if other != gap))
        assert alive(constraint_set.of_parts(parts), seen, open_there, settled)
    assert clash.events <= seen


@settings(max_examples=200)
@given(constraint_sets(TYPES, max_size=10), queries(TYPES), st.frozensets(st.sampled_from(TYPES), max_size=3))
def test_clashes_are_minimal(constraint_set: ConstraintSet, query: Query, seen: frozenset[str]) -> None:
    for state in query.states:
        remainder = remainder_of(query, state)
        clash = find_clash(constraint_set, seen, remainder)
        assert (clash is None) == alive(constraint_set, seen, remainder).is_alive
        if clash is not None:
            assert_minimal(clash, constraint_set, seen)


def clash_of(constraint_set: ConstraintSet, seen: str, tree: tuple[str, ...]) -> Clash:
    query = query_of(tree)
    clash = find_clash(constraint_set, frozenset(seen), remainder_of(query, query.states[0]))
    assert clash is not None
    return clash


def test_prefers_few_steps_to_early_mention() -> None:
    detour = (Require("E", "K"), Exclusive("K", "M"), Exclusive("E", "M"))
    assert clash_of(ConstraintSet(detour), "E", ("SEQ", "X", "M")).constraints == (Exclusive("E", "M"),)


def test_prefers_the_end_of_the_trace_to_an_exclusion_and_that_to_an_order() -> None:
    constraints = (Prior("A", "F"), Exclusive("A", "F"))
    assert clash_of(ConstraintSet(constraints, frozenset("F")), "F", ("SEQ", "A", "B")).constraints == (End("F"),)
    assert clash_of(ConstraintSet(constraints), "F", ("SEQ", "A", "B")).constraints == (Exclusive("A", "F"),)


def test_prefers_early_atoms() -> None:
    clash = clash_of(ConstraintSet(end_events=frozenset("F")), "F", ("SEQ", "A", "B"))
    assert [atom.type for atom in clash.remainder.atoms] == ["A"]


def test_the_end_of_a_workflow_clashes_with_types_that_other_constraints_name() -> None:
    orders, ends = (Prior("A", "B"), Prior("A", "F")), frozenset("F")
    workflow = Process(workflow="w", derived=frozenset(orders), derived_ends=ends)
    clash = clash_of(ConstraintSet(orders, ends, process=workflow), "F", ("SEQ", "B", "C"))
    assert (clash.constraints, clash.reason, clash.events) == ((End("F"),), "blocked", {"F"})


def test_requirements_are_listed_as_they_follow() -> None:
    constraints = (Prior("K2", "Z"), Require("K1", "K2"), Require("A", "K1"))
    clash = clash_of(ConstraintSet(constraints), "Z", ("SEQ", "X", "A"))
    assert clash.constraints == (Require("A", "K1"), Require("K1", "K2"), Prior("K2", "Z"))
    assert clash.events == {"Z"}


def test_nothing_to_find() -> None:
    assert find_clash(ConstraintSet((Exclusive("A", "B"),)), frozenset("A"), Remainder()) is None


def test_clashes_with_gaps_symbols_and_ties_are_minimal(draws: Draws) -> None:
    random, forbidden = Random(1), 0
    for number in (cases := draws(2_500)):
        symbols = random_symbols(random, TYPES, random.choice([0, 0, 2]))
        names = [*TYPES, *symbols]
        known = ConstraintSet.of(random_set(random, names, random.randint(1, 10)).parts, symbols=symbols)
        remainder = with_conditions(random, random_remainder(random, TYPES, random.randint(0, 3), random.randint(0, 2)))
        seen = known.shown_with(random.sample(names, random.randint(0, 3)))
        settled = (
            None if number % 3 else known.shown_with(name for name in seen if name in TYPES and random.random() < 0.5)
        )
        clash = find_clash(known, seen, remainder, settled)
        assert (clash is None) == alive(known, seen, remainder, settled).is_alive
        if clash is not None:
            assert_minimal(clash, known, seen, settled)
            forbidden += bool(clash.remainder.gaps)
            assert bool(clash.remainder.gaps) == (clash.reason == "absence")
            assert not clash.remainder.gaps or alive(known, seen, remainder.positives, settled)
    assert forbidden > len(cases) / 50


def test_an_absence_takes_part_only_if_the_atoms_alone_could_complete() -> None:
    query = query_of(("SEQ", "A", "NOT X", "B", "NOT Y"))
    whole = remainder_of(query, query.states[0])
    constraints = (Require("A", "X"), Prior("A", "X"), Prior("X", "B"), Exclusive("A", "L"), Require("B", "Y"))
    without = find_clash(ConstraintSet(constraints), frozenset("L"), whole)
    assert without is not None
    assert (without.constraints, without.remainder.gaps) == ((Exclusive("A", "L"),), ())
    clash = find_clash(ConstraintSet(constraints), frozenset(), whole)
    assert clash is not None
    assert clash.constraints == (Require("A", "X"), Prior("A", "X"), Prior("X", "B"))
    assert [gap.type for gap in clash.remainder.gaps] == ["X"]


def test_an_event_that_came_in_a_gap_open_from_the_beginning_takes_part() -> None:
    query = query_of(("SEQ", "NOT X", "A"))
    clash = find_clash(ConstraintSet((Prior("X", "Z"),)), frozenset("XZ"), remainder_of(query, query.states[0]))
    assert clash is not None
    assert (clash.reason, clash.constraints, clash.events) == ("absence", (), {"X"})

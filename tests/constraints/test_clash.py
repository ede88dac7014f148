"""Every reason is minimal and, where there is a choice, the plain one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    Clash,
    ConstraintSet,
    End,
    Exclusive,
    Prior,
    Remainder,
    Require,
    alive,
    find_clash,
    remainder_of,
)
from constraints.testing import constraint_sets, queries, query_of
from nfa import Query

TYPES = "ABCDE"


def assert_minimal(clash: Clash, constraint_set: ConstraintSet, seen: frozenset[str]) -> None:
    """It clashes; without any one constraint or atom it does not."""
    parts, remainder = clash.constraints, clash.remainder
    everything = frozenset(range(len(remainder.atoms)))
    assert set(parts) <= set(constraint_set.parts)
    assert clash.verdict == alive(ConstraintSet.of(parts), seen, remainder)
    assert not clash.verdict
    for part in parts:
        assert alive(ConstraintSet.of(other for other in parts if other != part), seen, remainder)
    for atom in everything:
        assert alive(ConstraintSet.of(parts), seen, remainder.only(everything - {atom}))
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


def test_requirements_are_listed_as_they_follow() -> None:
    constraints = (Prior("K2", "Z"), Require("K1", "K2"), Require("A", "K1"))
    clash = clash_of(ConstraintSet(constraints), "Z", ("SEQ", "X", "A"))
    assert clash.constraints == (Require("A", "K1"), Require("K1", "K2"), Prior("K2", "Z"))
    assert clash.events == {"Z"}


def test_nothing_to_find() -> None:
    assert find_clash(ConstraintSet((Exclusive("A", "B"),)), frozenset("A"), Remainder()) is None

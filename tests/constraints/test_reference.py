"""The decision against an exhaustive oracle, and the oracle against the definitions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import NOTHING, ConstraintSet, Remainder, alive, remainder_of
from constraints.testing import conforms, constraint_sets, occurs_in, oracle_alive, queries, words
from nfa import PatternState, Query

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

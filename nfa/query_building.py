"""Syntax tree to query graph: OR distributes over everything, the rest is a partial order of atoms."""

from __future__ import annotations

from itertools import product

from nfa.errors import PatternRefused
from nfa.query import PatternState, Query, Term
from nfa.scope import atoms_of
from nfa.syntax import Atom, Disjunction, Node, Pattern, Sequence

MAX_TERMS = 1_024
MAX_STATES = 4_096


def build_query(pattern: Pattern, *, max_terms: int = MAX_TERMS, max_states: int = MAX_STATES) -> Query:
    """Terms and states of a pattern.

    Args:
        pattern: A pattern whose scopes were checked.
        max_terms: Most alternatives that are accepted.
        max_states: Most states of all terms together that are accepted; ``b`` parallel branches of length ``l`` have
            ``(l + 1) ** b``.

    Raises:
        PatternRefused: ``too-large``, with the count that was exceeded.
    """
    first = next(atoms_of(pattern.event))
    if (count := _count_terms(pattern.event)) > max_terms:
        raise PatternRefused("too-large", f"its ORs make {count} alternatives; at most {max_terms}", first.position)
    terms = tuple(_expand(pattern.event))
    states: list[PatternState] = []
    for index, term in enumerate(terms):
        states += _states(index, term, max_states - len(states))
        if len(states) > max_states:
            advice = f"its alternatives and parallel branches make more than {max_states} states; split the pattern"
            raise PatternRefused("too-large", advice, first.position)
    return Query(pattern=pattern, terms=terms, states=tuple(states))


def _count_terms(node: Node) -> int:
    if isinstance(node, Atom):
        return 1
    counts = [_count_terms(part) for part in node.parts]
    if isinstance(node, Disjunction):
        return sum(counts)
    total = 1
    for count in counts:
        total *= count
    return total


def _expand(node: Node) -> list[Term]:
    if isinstance(node, Atom):
        return [Term(atoms=(node,), before=(frozenset(),))]
    alternatives = [_expand(part) for part in node.parts]
    if isinstance(node, Disjunction):
        return [term for terms in alternatives for term in terms]
    return [_joined(parts, is_ordered=isinstance(node, Sequence)) for parts in product(*alternatives)]


def _joined(parts: tuple[Term, ...], *, is_ordered: bool) -> Term:
    """The union of terms, one after the other or side by side."""
    atoms: list[Atom] = []
    before: list[frozenset[int]] = []
    for part in parts:
        offset = len(atoms)
        earlier = frozenset(range(offset)) if is_ordered else frozenset()
        atoms.extend(part.atoms)
        before.extend(earlier | {offset + atom for atom in needed} for needed in part.before)
    return Term(atoms=tuple(atoms), before=tuple(before))


def _states(index: int, term: Term, room: int) -> list[PatternState]:
    """Every down-closed proper subset of the term's atoms, small ones first; stops soon after ``room`` of them."""
    atoms = range(len(term.atoms))
    level: set[frozenset[int]] = {frozenset()}
    found: list[PatternState] = []
    for _ in atoms:
        found.extend(PatternState(index, bound) for bound in sorted(level, key=sorted))
        if len(found) > room:
            break
        level = {
            bound | {atom} for bound in level for atom in atoms if atom not in bound and term.before[atom] <= bound
        }
    return found

"""Syntax tree to query graph: OR distributes over everything, the rest is a partial order of atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from nfa.automata.query import AtomKey, PatternState, Query, Term
from nfa.errors import PatternRefused
from nfa.syntax import Atom, Conjunction, Disjunction, Node, Pattern, Repeat, Sequence, atoms_of

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
    terms = tuple(_expand(pattern.event, _Place(_numbers(pattern.event), ())))
    states: list[PatternState] = []
    for index, term in enumerate(terms):
        states += _states(index, term, max_states - len(states))
        if len(states) > max_states:
            advice = f"its alternatives and parallel branches make more than {max_states} states; split the pattern"
            raise PatternRefused("too-large", advice, first.position)
    return Query(pattern=pattern, terms=terms, states=tuple(states))


@dataclass(frozen=True, slots=True)
class _Place:
    """Numbers of the atoms by identity, and the iterations that a part is in."""

    numbers: dict[int, int]
    iterations: tuple[int, ...]

    def inside(self, iteration: int) -> _Place:
        return _Place(self.numbers, (*self.iterations, iteration))


def _numbers(event: Node) -> dict[int, int]:
    return {id(atom): number for number, atom in enumerate(atoms_of(event))}


def _count_terms(node: Node) -> int:
    match node:
        case Atom():
            return 1 if node.is_any_type else len(set(node.types))
        case Repeat():
            return int(_count_terms(node.of) ** min(node.min, 64))
        case Disjunction():
            return sum(_count_terms(part) for part in node.parts)
        case Sequence() | Conjunction():
            total = 1
            for part in node.parts:
                total *= _count_terms(part)
            return total


def _expand(node: Node, place: _Place) -> list[Term]:
    match node:
        case Atom():
            return _atom_terms(node, place)
        case Repeat():
            iterations = [_expand(node.of, place.inside(number)) for number in range(node.min)]
            return [_joined(parts, is_ordered=True) for parts in product(*iterations)]
        case Disjunction():
            return [term for part in node.parts for term in _expand(part, place)]
        case Sequence() | Conjunction():
            alternatives = [_expand(part, place) for part in node.parts]
            return [_joined(parts, is_ordered=isinstance(node, Sequence)) for parts in product(*alternatives)]


def _atom_terms(atom: Atom, place: _Place) -> list[Term]:
    if atom.is_any_type:  # some event always can be
        return [Term(atoms=(), before=())]
    number = place.numbers[id(atom)]
    found = []
    for name in dict.fromkeys(atom.types):
        key: AtomKey = (number, place.iterations, name)
        found.append(Term(atoms=(replace(atom, types=(name,)),), before=(frozenset(),), keys=(key,)))
    return found


def _joined(parts: tuple[Term, ...], *, is_ordered: bool) -> Term:
    """The union of terms, one after the other or side by side."""
    atoms: list[Atom] = []
    before: list[frozenset[int]] = []
    keys: list[AtomKey] = []
    for part in parts:
        offset = len(atoms)
        earlier = frozenset(range(offset)) if is_ordered else frozenset()
        atoms.extend(part.atoms)
        keys.extend(part.keys)
        before.extend(earlier | {offset + atom for atom in needed} for needed in part.before)
    return Term(atoms=tuple(atoms), before=tuple(before), keys=tuple(keys))


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

"""Finds redundant atoms: if a conforming trace contains the rest of the pattern, it also contains these atoms.

An atom is called redundant only if two conditions certainly hold. First, occurrence constraints derive its type from
the types of the other atoms. Second, no conforming trace with the other atoms has an event of this type in a wrong
place, that is, before an atom that must precede it or after an atom that must follow it. Events with equal timestamps
are assumed to be ordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constraints.model import ConstraintSet
from constraints.reasoning.outlook import Outlook
from constraints.remainder import Remainder
from constraints.wording import alternative_text
from nfa import (
    Atom,
    Attribute,
    Conjunction,
    Disjunction,
    Expression,
    Node,
    Pattern,
    Query,
    Sequence,
    Term,
    atoms_of,
    describe_atom,
    operands_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundantAtom:
    """An atom that every trace with the rest of the pattern contains anyway.

    It is the atom at ``index`` in the alternative ``Query.terms[term]``, of ``alternatives`` in the pattern.
    """

    term: int
    atom: Atom
    index: int
    alternatives: int

    @property
    def text(self) -> str:
        rest = f"the rest{alternative_text(self.term, self.alternatives, ' of ')}"
        return f"every conforming trace that has {rest} has {describe_atom(self.atom)} too, in its place"


def redundant_atoms(query: Query, constraint_set: ConstraintSet) -> tuple[RedundantAtom, ...]:
    """Find the atoms of each term that are redundant given the term's other atoms.

    Patterns with NOTs, repetitions, spans, gap conditions, a SELECT other than ALL MATCHES, or partitions are skipped.
    Atoms with a condition, and atoms to which conditions of other steps refer, are skipped, too.
    """
    if query.partitions or query.pattern.select != "all" or not _is_plain(query.pattern.event):
        return ()
    outlook, mentioned = Outlook(constraint_set), frozenset(_mentioned(query.pattern))
    return tuple(
        RedundantAtom(term=number, atom=atom, index=index, alternatives=len(query.terms))
        for number, term in enumerate(query.terms)
        for index, atom in enumerate(term.atoms)
        if atom.condition is None and atom.alias not in mentioned and _is_implied(query.pattern, term, index, outlook)
    )


def _is_implied(pattern: Pattern, term: Term, index: int, outlook: Outlook) -> bool:
    atom, constraint_set = term.atoms[index], outlook.constraint_set
    others = frozenset(range(len(term.atoms))) - {index}
    types = {term.atoms[other].type for other in others}
    sooner = term.before[index]
    later = frozenset(other for other in others if index in term.before[other])
    if atom.type in types or (pattern.has_window and not (sooner and later)):
        return False
    names = frozenset[str]().union(*(constraint_set.shown_by(term.atoms[other]) for other in others))
    if atom.type not in constraint_set.horn_closure(names):
        return False
    other_atoms = Remainder(term.atoms, term.before).only(others)
    if not outlook.can_complete(outlook.start, other_atoms):
        return False
    misplaced = [_with_order(term, index, {index: frozenset({other})}) for other in sorted(later)]
    misplaced += [_with_order(term, index, {other: frozenset({index})}) for other in sorted(sooner)]
    return not any(outlook.can_complete(outlook.start, remainder) for remainder in misplaced)


def _with_order(term: Term, index: int, after: dict[int, frozenset[int]]) -> Remainder:
    """Return the whole term as a remainder, with another place for the atom at ``index``.

    ``after`` maps an atom to the atoms that now precede it. Other atoms keep their order.
    """
    before = [
        (frozenset[int]() if other == index else needed - {index}) | after.get(other, frozenset())
        for other, needed in enumerate(term.before)
    ]
    return Remainder(term.atoms, tuple(_closed(before, other) for other in range(len(before))))


def _closed(before: list[frozenset[int]], start: int) -> frozenset[int]:
    earlier, waiting = set[int](), list(before[start])
    while waiting:
        other = waiting.pop()
        if other not in earlier:
            earlier.add(other)
            waiting += before[other]
    return frozenset(earlier)


def _is_plain(node: Node) -> bool:
    match node:
        case Atom():
            return not node.is_any_type
        case Sequence():
            parts = [item.of for item in node.items if item.of is not None and item.gap is None]
            return node.within_us is None and len(parts) == len(node.items) and all(map(_is_plain, parts))
        case Conjunction() | Disjunction():
            return node.within_us is None and all(map(_is_plain, node.parts))
        case _:
            return False


def _mentioned(pattern: Pattern) -> Iterator[str]:
    conditions = [atom.condition for atom in atoms_of(pattern.event)]
    for condition in (*conditions, pattern.where):
        if condition is not None:
            yield from _aliases(condition)


def _aliases(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Attribute) and expression.of is not None:
        yield expression.of
    for operand in operands_of(expression):
        yield from _aliases(operand)

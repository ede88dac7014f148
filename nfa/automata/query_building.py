"""Conversion of syntax trees to query graphs, with one term for each combination of OR alternatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TypeAlias

from nfa.automata.iterations import count_steps, is_coarse, reasoned
from nfa.automata.partitions import build_partitions
from nfa.automata.query import Absence, AtomKey, PatternState, Query, Term
from nfa.conditions.over_events import over_events
from nfa.errors import PatternRefused
from nfa.syntax import Atom, Conjunction, Disjunction, Item, Node, Pattern, Repeat, Sequence, atoms_of

MAX_TERMS = 1_024
MAX_STATES = 4_096


def build_query(pattern: Pattern, *, max_terms: int = MAX_TERMS, max_states: int = MAX_STATES) -> Query:
    """Build the query of a checked pattern.

    The query has partitions (see ``Partition``) if there would be too many terms or states: ``b`` parallel branches of
    length ``l`` have ``(l + 1) ** b`` states. A pattern is refused (``too-large``) if even its partitions have more
    than ``max_states`` states. It is also refused if its repetitions require too many steps.
    """
    pattern = over_events(pattern)
    if count_steps(pattern.event) > max(max_states, MAX_STATES):
        advice = f"its repetitions, written out, have more than {MAX_STATES} steps; use fewer"
        raise PatternRefused("too-large", advice, next(atoms_of(pattern.event)).position)
    coarse = is_coarse(pattern.event)
    if _count_terms(pattern.event, coarse=coarse) > max_terms:
        return build_partitions(pattern, max_states=max_states)
    place = _Place({id(atom): number for number, atom in enumerate(atoms_of(pattern.event))}, (), coarse)
    terms = tuple(_whole(piece, pattern) for piece in _expand(pattern.event, place))
    states: list[PatternState] = []
    for index, term in enumerate(terms):
        states += _states(index, term, max_states - len(states))
        if len(states) > max_states:
            return build_partitions(pattern, max_states=max_states)
    return Query(pattern=pattern, terms=terms, states=tuple(states))


def _count_terms(node: Node, *, coarse: bool) -> int:
    match node:
        case Atom():
            return 1 if node.is_any_type else len(set(node.types))
        case Repeat():
            return int(_count_terms(node.of, coarse=coarse) ** min(len(reasoned(node, coarse=coarse)), 64))
        case Disjunction():
            return sum(_count_terms(part, coarse=coarse) for part in node.parts)
        case Sequence() | Conjunction():
            return prod(_count_terms(part, coarse=coarse) for part in node.parts)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a part in the pattern. ``numbers`` maps the Python ``id`` of each atom to the atom's number."""

    numbers: dict[int, int]
    iterations: tuple[int, ...]
    coarse: bool

    def inside(self, iteration: int) -> _Place:
        return replace(self, iterations=(*self.iterations, iteration))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """One alternative of a part of the pattern.

    Attributes:
        first: Indices of atoms. The part's first event is the earliest event of these atoms, or any event if None.
        last: Indices of atoms. The part's last event is the latest event of these atoms, or any event if None.
        leading: NOTs in force in the gap before the part.
        trailing: NOTs in force in the gap after the part.
    """

    term: Term
    first: frozenset[int] | None = None
    last: frozenset[int] | None = None
    leading: tuple[Atom, ...] = ()
    trailing: tuple[Atom, ...] = ()


_Step: TypeAlias = _Piece | tuple[Atom, ...]
"""A part of a sequence, or the forbidden steps of a NOT between parts."""

_NOTHING = _Piece(term=Term(atoms=(), before=()))


def _whole(piece: _Piece, pattern: Pattern) -> Term:
    """Return the term of a piece that is the whole pattern.

    Leading and trailing NOTs become absences only if no window limits them.
    """
    outer: list[Absence] = []
    if not pattern.has_window and piece.first is not None:
        outer += [Absence(atom=atom, after=frozenset(), before=piece.first) for atom in piece.leading]
    if not pattern.has_window and piece.last is not None:
        outer += [Absence(atom=atom, after=piece.last, before=frozenset()) for atom in piece.trailing]
    return replace(piece.term, absences=tuple(dict.fromkeys((*piece.term.absences, *outer))))


def _expand(node: Node, place: _Place) -> list[_Piece]:
    match node:
        case Atom():
            return _of_atom(node, place)
        case Repeat():
            iterations = reasoned(node, coarse=place.coarse)
            pieces = [
                _in_order(parts)
                for parts in product(*(_expand(node.of, place.inside(iteration)) for iteration in iterations))
            ]
            if iterations.start:
                pieces = [replace(piece, first=None, leading=()) for piece in pieces]
            return pieces if node.max == node.min else [replace(piece, last=None, trailing=()) for piece in pieces]
        case Disjunction():
            return [piece for part in node.parts for piece in _expand(part, place)]
        case Sequence():
            steps: list[list[_Step]] = [
                [_forbidden(item)] if item.of is None else [*_expand(item.of, place)] for item in node.items
            ]
            return [_in_order(combination) for combination in product(*steps)]
        case Conjunction():
            return [_side_by_side(parts) for parts in product(*(_expand(part, place) for part in node.parts))]


def _of_atom(atom: Atom, place: _Place) -> list[_Piece]:
    if atom.is_any_type:  # some event can always match
        return [_NOTHING]
    number, only_atom = place.numbers[id(atom)], frozenset({0})
    pieces = []
    for name in dict.fromkeys(atom.types):
        key: AtomKey = (number, place.iterations, name)
        term = Term(atoms=(replace(atom, types=(name,)),), before=(frozenset(),), keys=(key,))
        pieces.append(_Piece(term=term, first=only_atom, last=only_atom))
    return pieces


def _forbidden(item: Item) -> tuple[Atom, ...]:
    atom = item.negated
    if atom is None or item.gap is not None or atom.condition is not None or atom.is_any_type:
        return ()
    return tuple(replace(atom, types=(name,)) for name in dict.fromkeys(atom.types))


def _in_order(steps: Iterable[_Step]) -> _Piece:
    whole, is_begun = _NOTHING, False
    pending: tuple[Atom, ...] = ()
    for step in steps:
        if isinstance(step, tuple):
            pending = (*pending, *step)
            continue
        part = _shifted(step, len(whole.term.atoms))
        gap, pending = (*pending, *part.leading), part.trailing
        if is_begun:
            whole = replace(whole, term=_joined(whole, part, gap), last=part.last)
        else:
            whole, is_begun = replace(part, leading=gap, trailing=()), True
    return replace(whole, trailing=pending)


def _joined(whole: _Piece, part: _Piece, gap: tuple[Atom, ...]) -> Term:
    absences: tuple[Absence, ...] = ()
    if whole.last is not None and part.first is not None:
        absences = tuple(Absence(atom=atom, after=whole.last, before=part.first) for atom in gap)
    earlier = frozenset(range(len(whole.term.atoms)))
    return Term(
        atoms=whole.term.atoms + part.term.atoms,
        before=whole.term.before + tuple(earlier | needed for needed in part.term.before),
        keys=whole.term.keys + part.term.keys,
        absences=whole.term.absences + absences + part.term.absences,
    )


def _side_by_side(parts: tuple[_Piece, ...]) -> _Piece:
    shifted: list[_Piece] = []
    for part in parts:
        shifted.append(_shifted(part, sum(len(earlier.term.atoms) for earlier in shifted)))
    firsts = [part.first for part in shifted if part.first is not None]
    lasts = [part.last for part in shifted if part.last is not None]
    return _Piece(
        term=Term(
            atoms=tuple(atom for part in shifted for atom in part.term.atoms),
            before=tuple(needed for part in shifted for needed in part.term.before),
            keys=tuple(key for part in shifted for key in part.term.keys),
            absences=tuple(absence for part in shifted for absence in part.term.absences),
        ),
        first=frozenset[int]().union(*firsts) if len(firsts) == len(shifted) else None,
        last=frozenset[int]().union(*lasts) if len(lasts) == len(shifted) else None,
    )


def _shifted(piece: _Piece, offset: int) -> _Piece:
    def shift(atoms: frozenset[int]) -> frozenset[int]:
        return frozenset(atom + offset for atom in atoms)

    term = replace(
        piece.term,
        before=tuple(shift(needed) for needed in piece.term.before),
        absences=tuple(
            replace(absence, after=shift(absence.after), before=shift(absence.before))
            for absence in piece.term.absences
        ),
    )
    return replace(
        piece,
        term=term,
        first=None if piece.first is None else shift(piece.first),
        last=None if piece.last is None else shift(piece.last),
    )


def _states(index: int, term: Term, room: int) -> list[PatternState]:
    states: list[PatternState] = []
    for bound in term.down_closed():
        if len(bound) < len(term.atoms) or term.is_trailing:
            states.append(PatternState(index, bound))
        if len(states) > room:
            break
    return states

"""The remainder of a pattern state: the atoms still needed, and the events that must not occur meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nfa import Absence, Atom, PatternState, Query, Symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A NOT of the remainder: no event of ``type`` may occur while the gap is open.

    Attributes:
        since: Indices of the atoms that must all occur before the gap opens. If empty, the gap is already open. None
            means that the gap has been open since the trace began.
        until: Indices of the atoms each of which closes the gap. If empty, the gap stays open until the trace ends.
    """

    type: str
    since: frozenset[int] | None
    until: frozenset[int]

    @property
    def edges(self) -> frozenset[int]:
        """The atoms that open or close the gap. Their events may have the forbidden type."""
        return self.until | (self.since or frozenset())


@dataclass(frozen=True, slots=True)
class Remainder:
    """The atoms that must still occur, their order, and the gaps between them.

    An atom is identified by its index, and atoms are in the order of the text. ``before[i]`` has all atoms that must
    precede atom ``i``, directly or through other atoms.
    """

    atoms: tuple[Atom, ...] = ()
    before: tuple[frozenset[int], ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def types(self) -> frozenset[str]:
        return frozenset(atom.type for atom in self.atoms)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The types that must not occur in some gap."""
        return tuple(dict.fromkeys(gap.type for gap in self.gaps))

    @property
    def positives(self) -> Remainder:
        return replace(self, gaps=())

    def only(self, indices: frozenset[int]) -> Remainder:
        """Return the remainder of some atoms, renumbered, with the gaps that only these atoms open or close.

        Every continuation that completes the whole remainder also completes this part.
        """
        ascending = sorted(indices)
        place = {index: number for number, index in enumerate(ascending)}
        return Remainder(
            tuple(self.atoms[index] for index in ascending),
            tuple(_renumbered(self.before[index] & indices, place) for index in ascending),
            tuple(_moved(gap, place) for gap in self.gaps if gap.edges <= indices),
        )

    def left(self, bound: frozenset[int]) -> Remainder:
        """Return the remainder of the atoms that are not in ``bound``.

        Gaps that bound atoms have closed are left out.
        """
        gaps = [
            gap if gap.since is None else replace(gap, since=gap.since - bound)
            for gap in self.gaps
            if not gap.until & bound
        ]
        remainder = replace(self, gaps=tuple(gaps)).only(frozenset(range(len(self.atoms))) - bound)
        return replace(remainder, gaps=tuple(dict.fromkeys(remainder.gaps)))

    def restricted_to(self, atoms: tuple[Atom, ...]) -> Remainder:
        return self.only(frozenset(index for index, atom in enumerate(self.atoms) if atom in atoms))


NOTHING = Remainder()


def remainder_of(query: Query, state: PatternState) -> Remainder:
    """Return the remainder of ``state``: its unbound atoms, and the gaps that are open or can still open."""
    return whole_of(query, state.term).left(state.bound)


def whole_of(query: Query, term: int) -> Remainder:
    """Return the remainder of an alternative before any atom is bound. Its atoms keep their indices in the term."""
    alternative = query.terms[term]
    gaps = tuple(dict.fromkeys(map(_gap, alternative.absences)))
    return Remainder(alternative.atoms, alternative.before, gaps)


def single(name: str, symbols: Mapping[str, Symbol] | None = None) -> Remainder:
    """Return the remainder of one event that shows a name.

    The name is a symbol if it is among ``symbols``, otherwise an event type.
    """
    symbol = None if symbols is None else symbols.get(name)
    return Remainder((Atom((name,), name) if symbol is None else symbol.step,), (frozenset(),))


def _gap(absence: Absence) -> Gap:
    return Gap(type=absence.atom.type, since=absence.after or None, until=absence.before)


def _moved(gap: Gap, place: Mapping[int, int]) -> Gap:
    since = None if gap.since is None else _renumbered(gap.since, place)
    return replace(gap, since=since, until=_renumbered(gap.until, place))


def _renumbered(indices: frozenset[int], place: Mapping[int, int]) -> frozenset[int]:
    return frozenset(place[index] for index in indices)

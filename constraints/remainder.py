"""What a pattern state still needs."""

from __future__ import annotations

from dataclasses import dataclass

from nfa import Atom, PatternState, Query


@dataclass(frozen=True, slots=True)
class Remainder:
    """Atoms that are still to come, and their order.

    Attributes:
        atoms: In the order of the text; an atom is named by its index here.
        before: ``before[i]`` holds the atoms that must come before atom ``i`` (transitively closed).
    """

    atoms: tuple[Atom, ...] = ()
    before: tuple[frozenset[int], ...] = ()

    @property
    def types(self) -> frozenset[str]:
        """Event types that must still come."""
        return frozenset(atom.type for atom in self.atoms)

    def only(self, indices: frozenset[int]) -> Remainder:
        """The part made of some atoms, which are numbered anew."""
        kept = sorted(indices)
        place = {index: number for number, index in enumerate(kept)}
        return Remainder(
            tuple(self.atoms[index] for index in kept),
            tuple(frozenset(place[other] for other in self.before[index] & indices) for index in kept),
        )

    def restricted_to(self, atoms: tuple[Atom, ...]) -> Remainder:
        """The part made of those of its atoms that are in ``atoms``."""
        return self.only(frozenset(index for index, atom in enumerate(self.atoms) if atom in atoms))


NOTHING = Remainder()


def remainder_of(query: Query, state: PatternState) -> Remainder:
    """The atoms that ``state`` has not bound."""
    term = query.terms[state.term]
    whole = Remainder(term.atoms, term.before)
    return whole.only(frozenset(range(len(term.atoms))) - state.bound)


def single(event_type: str) -> Remainder:
    """Some event of one type, under the type's own name."""
    return Remainder((Atom((event_type,), event_type),), (frozenset(),))

"""Decides which events a process can still produce, by backward reachability in the product with a remainder.

Source: constraint-aware CEP, section 6.2. The automaton knows types only. So the condition of an atom is assumed to be
satisfied by some event of its type.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from constraints.process.automaton import NOWHERE, START, ProcessAutomaton
from constraints.remainder import NOTHING, Gap, Remainder
from constraints.sets import bits_of
from nfa import OTHER, Atom

MEMORY_LIMIT = 1 << 26  # maximum number of cached cells, four bytes each, for all remainders
TABLE_LIMIT = 1 << 24  # maximum number of cells for one remainder; with more, each atom is decided separately
ROW_LIMIT = 65_536

Vector = NDArray[np.bool_]  # one value for each state of the automaton
Distances = NDArray[np.int32]  # one number of events for each state; -1: unreachable


class Language:
    """The traces of a process, together with events of types that the process does not emit.

    Such events may occur at any time until the trace ends. If ``assumes_completion``, a trace ends only where the
    automaton accepts, otherwise anywhere. No event follows the types in ``ends``. ``known`` are the only types that
    events have, or None if they may have any type. ``accepting``, shape (states,), is the mask of states in which a
    trace may end. ``completable`` is the mask of states from which such a state can be reached.
    """

    def __init__(
        self,
        automaton: ProcessAutomaton,
        *,
        assumes_completion: bool,
        ends: frozenset[str],
        known: frozenset[str] | None,
    ) -> None:
        self.automaton = automaton
        self.accepting: Vector = automaton.accepting if assumes_completion else np.ones(len(automaton), np.bool_)
        self._ends = ends
        self._known = known
        self._all = frozenset(range(len(automaton.letters)))
        self._end_codes = self._codes(ends)
        self._completions: dict[Remainder, Completions] = {}
        self._cells = 0
        self._rows: dict[int, dict[str, int]] = {}
        self.completable = self.completions(NOTHING).of(0)

    def step(self, state: int, event_type: str) -> int | None:
        """Return the state after an event, or None if the process does not allow the event in ``state``."""
        return state if self.automaton.code(event_type) is None else self._row(state).get(event_type)

    def _row(self, state: int) -> dict[str, int]:
        if state not in self._rows:
            if len(self._rows) >= ROW_LIMIT:
                self._rows.clear()
            after = self.automaton.table[state]
            codes = np.flatnonzero(after != NOWHERE).tolist()
            self._rows[state] = {self.automaton.letters[code]: int(after[code]) for code in codes}
        return self._rows[state]

    def completions(self, remainder: Remainder) -> Completions:
        """Return the states from which a remainder can still complete; the result is cached."""
        completions = self._completions.get(remainder)
        if completions is None:
            if self._cells > MEMORY_LIMIT:
                self._completions.clear()
                self._cells = 0
            completions = self._completions[remainder] = Completions(self, remainder)
            self._cells += completions.cells
        return completions

    def can_end(self, state: int, remainder: Remainder, bound: int) -> bool:
        """Check whether a trace may end in a state, with all atoms of the remainder bound."""
        return bool(self.accepting[state]) and bound == (1 << len(remainder.atoms)) - 1

    def has_free(self, event_type: str) -> bool:
        """Check whether events of a type may occur at any time, because the process does not emit this type."""
        return self.automaton.code(event_type) is None and (self._known is None or event_type in self._known)

    def free_types(self, atom: Atom, stopping: frozenset[str]) -> list[str]:
        """Return the types that an atom accepts and the process does not emit. Types in ``stopping`` are left out.

        ``OTHER`` represents all unnamed types.
        """
        if not atom.is_any_type:
            return [name for name in atom.types if name not in stopping and self.has_free(name)]
        return [OTHER] if self._known is None else sorted(filter(self.has_free, self._known - stopping))

    def is_end(self, event_type: str) -> bool:
        return event_type in self._ends

    def codes_of(self, atom: Atom) -> frozenset[int]:
        return self._all if atom.is_any_type else self._codes(frozenset(atom.types))

    def back(self, targets: Vector, codes: frozenset[int]) -> Vector:
        """Return the states from which an event leads to a target and does not end the trace.

        ``codes`` are the columns of the possible events.
        """
        return self._back(targets, codes - self._end_codes)

    def back_from_end(self, codes: frozenset[int]) -> Vector:
        """Return the states from which an event with a column in ``codes`` can end the trace."""
        return self._back(self.accepting, codes & self._end_codes)

    def _back(self, targets: Vector, codes: frozenset[int]) -> Vector:
        if not codes:
            return np.zeros(len(self.automaton), np.bool_)
        after = self.automaton.table[:, sorted(codes)]
        states: Vector = np.any(np.append(targets, False)[after], axis=1)  # NOWHERE is -1, the index of the last entry
        return states

    def distances(self, targets: Vector, without: frozenset[str]) -> Distances:
        """Return, for each state, the least number of events that lead to a target, or -1 if none do.

        Events that end the trace, and events whose types are in ``without``, are not used.
        """
        letters = np.zeros(len(self._all), np.bool_)
        letters[sorted(self._all - self._codes(without) - self._end_codes)] = True
        return self.automaton.distances(targets, letters)

    def codes_but(self, types: frozenset[str]) -> frozenset[int]:
        """Return the columns of all types except the given ones."""
        return self._all - self._codes(types)

    def only_after(self, event_type: str) -> Vector:
        """Return the states that a trace can only reach with an event of the given type."""
        code = self.automaton.code(event_type)
        is_unreached = np.ones(len(self.automaton), np.bool_)
        columns = [other for other in range(len(self._all)) if other != code]
        frontier = np.array([START])
        while frontier.size:
            is_unreached[frontier] = False
            after = np.unique(self.automaton.table[frontier][:, columns])
            after = after[after != NOWHERE]
            frontier = after[is_unreached[after]]
        return is_unreached

    def _codes(self, types: frozenset[str]) -> frozenset[int]:
        return frozenset(code for name in types if (code := self.automaton.code(name)) is not None)


class Completions:
    """The states of the automaton from which a remainder can complete, for each set of bound atoms.

    Sets are masks: bit ``i`` is atom ``i``. If there would be too many sets to store, each atom is decided separately.
    Then an impossible remainder may be called possible.
    """

    def __init__(self, language: Language, remainder: Remainder) -> None:
        self._language = language
        self._remainder = remainder
        self._needed = [bits_of(before) for before in remainder.before]
        self._all_bound = (1 << len(remainder.atoms)) - 1
        self._leading = {
            gap.type: language.only_after(gap.type)
            for gap in remainder.gaps
            if gap.since is None and language.automaton.code(gap.type) is not None
        }
        self._by_mask: dict[int, Distances] = {}
        masks = self._reachable(max(2, TABLE_LIMIT // len(language.automaton)))
        self._is_whole = masks is not None
        self._single = [
            language.completions(Remainder((atom,), (frozenset(),))) for atom in remainder.atoms if not self._is_whole
        ]
        for mask in sorted(masks or (), key=int.bit_count, reverse=True):
            self._by_mask[mask] = self._solved(mask)

    @property
    def cells(self) -> int:
        return max(1, len(self._by_mask)) * len(self._language.automaton)

    def of(self, bound: int) -> Vector:
        """Return a mask of the states from which the atoms that are not in ``bound`` can complete.

        For each atom in ``bound``, the atoms that must precede it must be in ``bound``, too.
        """
        return self._by_mask[bound] >= 0 if self._is_whole else self._alone(bound)

    def has(self, state: int, bound: int) -> bool:
        """Check whether the remainder can complete from one state; see ``of``."""
        if self._is_whole:
            return bool(self._by_mask[bound][state] >= 0)
        return bool(self._language.completable[state]) and all(
            alone.has(state, 0) for index, alone in enumerate(self._single) if not bound >> index & 1
        )

    def distance(self, state: int, bound: int) -> int:
        """Return a lower bound of the number of events until the next atom is bound, or until the trace may end."""
        return int(self._by_mask[bound][state]) if self._is_whole else 0

    def _reachable(self, limit: int) -> set[int] | None:
        """Return the sets of bound atoms that can be reached, or None if there are more than ``limit``."""
        masks, waiting = {0}, [0]
        while waiting:
            mask = waiting.pop()
            for after in (mask | 1 << atom for atom in self._enabled(mask)):
                if after not in masks:
                    masks.add(after)
                    waiting.append(after)
            if len(masks) > limit:
                return None
        return masks

    def _enabled(self, mask: int) -> Iterator[int]:
        for atom, needed in enumerate(self._needed):
            if not mask >> atom & 1 and needed & ~mask == 0:
                yield atom

    def _solved(self, mask: int) -> Distances:
        """Return, for each state, the least number of events before an event binds an atom or ends the trace.

        ``mask`` has the atoms that are already bound. The number is -1 if the remainder cannot complete.
        """
        language = self._language
        gaps = [gap for gap in self._remainder.gaps if _is_open(gap, mask)]
        forbidden = frozenset(gap.type for gap in gaps)
        if mask == self._all_bound:
            good = language.accepting | language.back_from_end(language.codes_but(forbidden))
        else:
            good = np.zeros(len(language.automaton), np.bool_)
            for atom in self._enabled(mask):
                good |= self._after_binding(mask, atom, gaps)
        distances = language.distances(good, forbidden)
        for gap in gaps:
            if gap.since is None and gap.type in self._leading:
                distances[self._leading[gap.type]] = -1
        return distances

    def _after_binding(self, mask: int, atom: int, gaps: list[Gap]) -> Vector:
        language, step, after = self._language, self._remainder.atoms[atom], mask | 1 << atom
        stopping = frozenset(gap.type for gap in gaps if atom not in gap.until)  # types that cannot bind
        codes = language.codes_of(step) & language.codes_but(stopping)
        good = language.back(self.of(after), codes)
        if after == self._all_bound:
            good |= language.back_from_end(codes)
        for name in language.free_types(step, stopping):
            if not language.is_end(name):
                good |= self.of(after)
            elif after == self._all_bound:
                good |= language.accepting
        return good

    def _alone(self, bound: int) -> Vector:
        good = self._language.completable.copy()
        for index, alone in enumerate(self._single):
            if not bound >> index & 1:
                good &= alone.of(0)
        return good


def _is_open(gap: Gap, bound: int) -> bool:
    return not bits_of(gap.since or ()) & ~bound and not bits_of(gap.until) & bound

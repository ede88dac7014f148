"""Searches for a word that leads rules from their places to accepting places and binds a remainder."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol, TypeAlias

from constraints.remainder import Remainder
from constraints.rules.alphabet import EventKind
from constraints.rules.automaton import RuleAutomaton
from constraints.sets import bits_of

Places: TypeAlias = tuple[int, ...]

_State: TypeAlias = tuple[Places, Hashable, int]  # places of the rules, place of the company, and bound atoms as bits


class Company(Protocol):
    """An additional automaton that follows the events of a search and can exclude some of them.

    The search keeps this automaton's places, but does not look into them.
    """

    def after(self, place: Any, kind: EventKind) -> Hashable | None:
        """Return the place after an event, or None if the event is impossible."""
        ...

    def is_wanted(self, place: Any) -> bool:
        """Check whether the trace may end at a place."""
        ...

    def is_hopeful(self, place: Any, bound: int) -> bool:
        """Check whether this automaton may still allow the unbound atoms."""
        ...

    def distance(self, place: Any, bound: int) -> int:
        """Estimate how many events come before the next required event or the end.

        Callers ask only for hopeful places.
        """
        ...


class WordSearch:
    """A search for a sequence of events (a word) that satisfies the rules and binds a remainder.

    ``end_places`` has, for each rule, the places in which the trace may end. A ``company``, if given, must allow the
    word, too.
    """

    def __init__(
        self,
        automata: Sequence[RuleAutomaton],
        end_places: Sequence[frozenset[int]],
        remainder: Remainder,
        kinds: Collection[EventKind],
        company: Company | None = None,
    ) -> None:
        self._steps = 0
        self._end_places = end_places
        self._company = company
        self._all_bound = (1 << len(remainder.atoms)) - 1
        self._needed = list(map(bits_of, remainder.before))
        self._moves = [
            (tuple(automaton.letter(kind.shown) for automaton in automata), kind)
            for kind in sorted(kinds, key=lambda kind: (kind.type, sorted(kind.shown)))
        ]
        self._gaps = [(gap.type, bits_of(gap.since or ()), bits_of(gap.until)) for gap in remainder.gaps]
        self._tables = [automaton.table for automaton in automata]
        self._hopeful = [
            automaton.leading_to(places, {letters[index] for letters, _ in self._moves})
            for index, (automaton, places) in enumerate(zip(automata, end_places, strict=True))
        ]

    def is_reachable(self, places: Places, max_steps: int, *, beside: Hashable = None, bound: int = 0) -> bool | None:
        """Check whether some word starts at ``places``.

        The result is None if the search takes more than about ``max_steps`` steps of rules. ``beside`` is the place of
        the company, if any; ``bound`` are the atoms that are already bound, as bits. States with the least estimated
        distance are examined first, so a word is usually found soon.
        """
        self._steps = 0
        start: _State = (places, beside, bound)
        if self._is_done(start):
            return True
        if not self._is_hopeful(start):
            return False
        met = {start}
        waiting = [(self._distance(start), 0, start)]
        while waiting:
            if self._steps > max_steps:
                return None
            _, _, state = heappop(waiting)
            for after, is_last in self._successors(state):
                if self._is_done(after):
                    return True
                if not is_last and after not in met:
                    met.add(after)
                    heappush(waiting, (self._distance(after), len(met), after))
        return False

    def _is_done(self, state: _State) -> bool:
        places, beside, bound = state
        return (
            bound == self._all_bound
            and all(map(frozenset.__contains__, self._end_places, places))
            and (self._company is None or self._company.is_wanted(beside))
        )

    def _is_hopeful(self, state: _State) -> bool:
        places, beside, bound = state
        return all(map(frozenset.__contains__, self._hopeful, places)) and (
            self._company is None or self._company.is_hopeful(beside, bound)
        )

    def _distance(self, state: _State) -> tuple[int, int]:
        """Return the number of unbound atoms and unfinished rules. The company's distance decides ties."""
        places, beside, bound = state
        missing = sum(place not in end_places for place, end_places in zip(places, self._end_places, strict=True))
        missing += (self._all_bound ^ bound).bit_count()
        return missing, 0 if self._company is None else self._company.distance(beside, bound)

    def _successors(self, state: _State) -> Iterator[tuple[_State, bool]]:
        """Yield the states after one more event, each with a flag that says whether the event ends the trace.

        States from which no word can be completed are left out, unless the trace ends there.
        """
        places, beside, bound = state
        self._steps += len(self._moves) * (len(places) + 1)
        for letters, kind in self._moves:
            along = None if self._company is None else self._company.after(beside, kind)
            if along is None and self._company is not None:
                continue
            after = tuple(
                table[place][letter] for table, place, letter in zip(self._tables, places, letters, strict=True)
            )
            for bindings in self._bindings(kind, bound):
                reached = after, along, bindings
                if kind.is_last or self._is_hopeful(reached):
                    yield reached, kind.is_last

    def _bindings(self, kind: EventKind, bound: int) -> Iterator[int]:
        closing = self._closing(kind.type, bound)
        if closing is None:
            yield bound
        for atom in kind.binds:
            is_new = not bound >> atom & 1 and self._needed[atom] & ~bound == 0
            if is_new and (closing is None or closing >> atom & 1):
                yield bound | 1 << atom

    def _closing(self, event_type: str, bound: int) -> int | None:
        """Return the atoms that may bind an event of a forbidden type, because they close the gaps for this type.

        The result is a mask, or None if no gap forbids the event.
        """
        closing = None
        for forbidden, since, until in self._gaps:
            if forbidden == event_type and since & ~bound == 0 and until & bound == 0:
                closing = until if closing is None else closing & until
        return closing

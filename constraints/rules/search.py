"""Whether some word leads rules from where they are to where they are kept, and binds what must still come."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol, TypeAlias

from constraints.remainder import Remainder
from constraints.rules.alphabet import EventKind
from constraints.rules.automaton import RuleAutomaton

Places: TypeAlias = tuple[int, ...]

_State: TypeAlias = tuple[Places, Hashable, int]  # where each rule is, and the company, and the bound atoms as bits


class Company(Protocol):
    """Whatever else goes along with the events and has a say; its places are its own matter."""

    def after(self, place: Any, kind: EventKind) -> Hashable | None:
        """The place after an event; None if it cannot come."""
        ...

    def is_wanted(self, place: Any) -> bool:
        """Whether the trace may end there."""
        ...

    def is_hopeful(self, place: Any, bound: int) -> bool:
        """Whether it does not know that what is not bound cannot come any more."""
        ...

    def distance(self, place: Any, bound: int) -> int:
        """Roughly how many events something takes that has to happen; asked only where there is hope."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is looked for.

    Attributes:
        automata: The rules.
        wanted: For each rule, the places in which the trace may end.
        remainder: What must be bound.
        kinds: Events that may come.
        company: What goes along with the rules, if anything does.
    """

    automata: Sequence[RuleAutomaton]
    wanted: Sequence[frozenset[int]]
    remainder: Remainder
    kinds: Collection[EventKind]
    company: Company | None = None


def is_reachable(task: Task, places: Places, max_steps: int, *, beside: Hashable = None, bound: int = 0) -> bool | None:
    """Whether there is such a word; None if more than about ``max_steps`` steps of rules would have to be taken.

    What is nearest to the end is examined first, so that a word is mostly found soon.

    Args:
        task: What is looked for.
        places: Where the rules are.
        max_steps: After how many steps to give up.
        beside: Where the company is, if there is one.
        bound: Atoms that are bound already, as bits.
    """
    search = _Search(task)
    start: _State = (places, beside, bound)
    if search.is_done(start):
        return True
    if not search.is_hopeful(start):
        return False
    met = {start}
    waiting = [(search.distance(start), 0, start)]
    while waiting:
        if search.steps > max_steps:
            return None
        _, _, state = heappop(waiting)
        for after, is_last in search.successors(state):
            if search.is_done(after):
                return True
            if not is_last and after not in met:
                met.add(after)
                heappush(waiting, (search.distance(after), len(met), after))
    return False


class _Search:
    def __init__(self, task: Task) -> None:
        self.steps = 0
        self._wanted = task.wanted
        self._company = task.company
        self._all_bound = (1 << len(task.remainder.atoms)) - 1
        self._needed = [sum(1 << other for other in before) for before in task.remainder.before]
        self._moves = [
            (tuple(automaton.letter(kind.shown) for automaton in task.automata), kind)
            for kind in sorted(task.kinds, key=lambda kind: (kind.type, sorted(kind.shown)))
        ]
        self._gaps = [
            (gap.type, sum(1 << atom for atom in gap.since or ()), sum(1 << atom for atom in gap.until))
            for gap in task.remainder.gaps
        ]
        self._tables = [automaton.table for automaton in task.automata]
        self._hopeful = [
            automaton.leading_to(wanted, {letters[index] for letters, _ in self._moves})
            for index, (automaton, wanted) in enumerate(zip(task.automata, task.wanted, strict=True))
        ]

    def is_done(self, state: _State) -> bool:
        """Whether the trace may end here."""
        places, beside, bound = state
        return (
            bound == self._all_bound
            and all(map(frozenset.__contains__, self._wanted, places))
            and (self._company is None or self._company.is_wanted(beside))
        )

    def is_hopeful(self, state: _State) -> bool:
        """Whether each rule for itself can still be kept, and the company has hope."""
        places, beside, bound = state
        return all(map(frozenset.__contains__, self._hopeful, places)) and (
            self._company is None or self._company.is_hopeful(beside, bound)
        )

    def distance(self, state: _State) -> tuple[int, int]:
        """Atoms and rules that still miss something, then how far off the company is."""
        places, beside, bound = state
        missing = sum(place not in wanted for place, wanted in zip(places, self._wanted, strict=True))
        missing += (self._all_bound ^ bound).bit_count()
        return missing, 0 if self._company is None else self._company.distance(beside, bound)

    def successors(self, state: _State) -> Iterator[tuple[_State, bool]]:
        """States after one more event that leave hope, each with whether the trace ends there."""
        places, beside, bound = state
        self.steps += len(self._moves) * (len(places) + 1)
        for letters, kind in self._moves:
            along = None if self._company is None else self._company.after(beside, kind)
            if along is None and self._company is not None:
                continue
            after = tuple(
                table[place][letter] for table, place, letter in zip(self._tables, places, letters, strict=True)
            )
            for bindings in self._bindings(kind, bound):
                reached = after, along, bindings
                if kind.is_last or self.is_hopeful(reached):
                    yield reached, kind.is_last

    def _bindings(self, kind: EventKind, bound: int) -> Iterator[int]:
        """What can be bound once an event came: as before it, or one atom more."""
        closing = self._closing(kind.type, bound)
        if closing is None:
            yield bound
        for atom in kind.binds:
            is_new = not bound >> atom & 1 and self._needed[atom] & ~bound == 0
            if is_new and (closing is None or closing >> atom & 1):
                yield bound | 1 << atom

    def _closing(self, event_type: str, bound: int) -> int | None:
        """Atoms, as bits, of which an event must bind one because it comes in a gap that forbids it; None: in none."""
        closing = None
        for forbidden, since, until in self._gaps:
            if forbidden == event_type and since & ~bound == 0 and until & bound == 0:
                closing = until if closing is None else closing & until
        return closing

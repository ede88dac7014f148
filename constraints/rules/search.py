"""Whether some word leads rules from where they are to where they are kept, and binds what must still come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from constraints.remainder import Remainder
from constraints.rules.alphabet import EventKind
from constraints.rules.automaton import RuleAutomaton

Places: TypeAlias = tuple[int, ...]

_State: TypeAlias = tuple[Places, int]  # where each rule is, and the bound atoms as bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is looked for.

    Attributes:
        automata: The rules.
        wanted: For each rule, the places in which the trace may end.
        remainder: What must be bound.
        kinds: Events that may come.
    """

    automata: Sequence[RuleAutomaton]
    wanted: Sequence[frozenset[int]]
    remainder: Remainder
    kinds: Collection[EventKind]


def is_reachable(task: Task, places: Places, max_steps: int) -> bool | None:
    """Whether there is such a word; None if more than about ``max_steps`` steps of rules would have to be taken.

    What is nearest to the end is looked at first, so that a word is mostly found soon.
    """
    search = _Search(task)
    start: _State = (places, 0)
    if search.is_done(start):
        return True
    if not search.is_hopeful(places):
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
        places, bound = state
        return bound == self._all_bound and all(map(frozenset.__contains__, self._wanted, places))

    def is_hopeful(self, places: Places) -> bool:
        """Whether each rule for itself can still be kept."""
        return all(map(frozenset.__contains__, self._hopeful, places))

    def distance(self, state: _State) -> int:
        """Atoms and rules that still miss something."""
        places, bound = state
        rules = sum(place not in wanted for place, wanted in zip(places, self._wanted, strict=True))
        return (self._all_bound ^ bound).bit_count() + rules

    def successors(self, state: _State) -> Iterator[tuple[_State, bool]]:
        """States after one more event that leave hope, each with whether the trace ends there."""
        places, bound = state
        self.steps += len(self._moves) * (len(places) + 1)
        for letters, kind in self._moves:
            after = tuple(
                table[place][letter] for table, place, letter in zip(self._tables, places, letters, strict=True)
            )
            if self.is_hopeful(after):
                closing = self._closing(kind.type, bound)
                if closing is None:
                    yield (after, bound), kind.is_last
                for atom in kind.binds:
                    is_new = not bound >> atom & 1 and self._needed[atom] & ~bound == 0
                    if is_new and (closing is None or closing >> atom & 1):
                        yield (after, bound | 1 << atom), kind.is_last

    def _closing(self, event_type: str, bound: int) -> int | None:
        """Atoms, as bits, of which an event must bind one because it comes in a gap that forbids it; None: in none."""
        closing = None
        for forbidden, since, until in self._gaps:
            if forbidden == event_type and since & ~bound == 0 and until & bound == 0:
                closing = until if closing is None else closing & until
        return closing

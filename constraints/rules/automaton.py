"""A rule as a complete, deterministic and minimal automaton."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from constraints.model import Rule
from constraints.rules.machines import BROKEN, Machine, machines_of

Table: TypeAlias = tuple[tuple[int, ...], ...]

START = 0


@dataclass(frozen=True, slots=True)
class RuleAutomaton:
    """The automaton of a rule over finished traces.

    Places are numbered from the start, 0, in the order in which they are reached. So equal rules always get equal
    numbers. The *letter* of an event has bit ``i`` set if the event shows ``rule.names[i]``.

    Attributes:
        table: ``table[place][letter]`` is the place after an event.
        accepting: Places in which a finished trace satisfies the rule.
        traps: Places from which no accepting place can be reached.
        settled: Places from which only accepting places can be reached, so that the rule holds in any case.
    """

    rule: Rule
    table: Table
    accepting: frozenset[int]
    traps: frozenset[int] = field(init=False)
    settled: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        letters = range(len(self.table[START]))
        object.__setattr__(self, "traps", self.places - self.leading_to(self.accepting, letters))
        object.__setattr__(self, "settled", self.places - self.leading_to(self.places - self.accepting, letters))

    @classmethod
    def of(cls, rule: Rule) -> RuleAutomaton:
        return cls(rule, *_minimal(rule.kind, rule.count, len(rule.names)))

    @property
    def start(self) -> int:
        return START

    @property
    def places(self) -> frozenset[int]:
        return frozenset(range(len(self.table)))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.rule.names)

    @property
    def counts_every_event(self) -> bool:
        """Whether an event without any name of the rule can change the place, as under ``chain response``."""
        return any(row[0] != place for place, row in enumerate(self.table))

    def letter(self, event_names: frozenset[str]) -> int:
        return sum(1 << index for index, name in enumerate(self.rule.names) if name in event_names)

    def step(self, place: int, event_names: frozenset[str]) -> int:
        """Return the place after an event that shows the given names (its type and symbols)."""
        return self.table[place][self.letter(event_names)]

    def leading_to(self, targets: frozenset[int], letters: Iterable[int]) -> frozenset[int]:
        """Return the places from which some word of ``letters``, possibly empty, leads to a place in ``targets``."""
        usable, reached = tuple(letters), set(targets)
        is_growing = True
        while is_growing:
            new = {
                place
                for place in self.places - reached
                if any(self.table[place][letter] in reached for letter in usable)
            }
            reached |= new
            is_growing = bool(new)
        return frozenset(reached)


@cache
def _minimal(kind: str, count: int | None, width: int) -> tuple[Table, frozenset[int]]:
    machines = machines_of(kind, count)
    letters = range(1 << width)
    places: dict[tuple[int, ...], int] = {tuple(machine.start for machine in machines): START}
    rows: list[list[int]] = []
    for place in (waiting := list(places)):
        rows.append([])
        for letter in letters:
            after = _step(machines, place, letter)
            if after not in places:
                places[after] = len(places)
                waiting.append(after)
            rows[-1].append(places[after])
    accepting = {number for place, number in places.items() if _stops(machines, place)}
    return _merged(rows, accepting)


def _step(machines: Sequence[Machine], place: tuple[int, ...], letter: int) -> tuple[int, ...]:
    after = tuple(
        BROKEN if part == BROKEN else machine.step(part, letter) for machine, part in zip(machines, place, strict=True)
    )
    return (BROKEN,) * len(after) if BROKEN in after else after


def _stops(machines: Sequence[Machine], place: tuple[int, ...]) -> bool:
    return BROKEN not in place and all(machine.stops(part) for machine, part in zip(machines, place, strict=True))


def _merged(rows: Sequence[Sequence[int]], accepting: set[int]) -> tuple[Table, frozenset[int]]:
    """Merge equivalent places by Moore's refinement. The new places are numbered from the start."""
    group: Sequence[int] = [place in accepting for place in range(len(rows))]
    while True:
        finer = _numbered([(group[place], *(group[after] for after in row)) for place, row in enumerate(rows)])
        if len(set(finer)) == len(set(group)):
            break
        group = finer
    sample = {number: place for place, number in reversed(list(enumerate(finer)))}
    order = [finer[START]]
    for number in order:
        order.extend(dict.fromkeys(finer[after] for after in rows[sample[number]] if finer[after] not in order))
    place_of: Mapping[int, int] = {number: place for place, number in enumerate(order)}
    table = tuple(tuple(place_of[finer[after]] for after in rows[sample[number]]) for number in order)
    return table, frozenset(place_of[finer[place]] for place in accepting)


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]

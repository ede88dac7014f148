"""The decision, slow and obvious: can a trace that has shown some names still complete a remainder?

This is the executable meaning of the package ``constraints`` (constraint-aware CEP, section 3.1, theorem 1; with
symbols 4.5, with NOT 6.3, with events of equal timestamps 7). ``constraints.reasoning.reasoner`` gives the same
answers, fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod
from typing import TypeAlias

from constraints.model import ConstraintSet
from constraints.reasoning.reasoner import MAX_CHOICES, Reason
from constraints.remainder import NOTHING, Gap, Remainder

_Edge: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of ``alive``; truthy if alive.

    Otherwise the reason: ``occurrence`` (a clause excludes the needed types), ``blocked`` (the last chance of a needed
    type has passed), ``order`` (they cannot be ordered), ``absence`` (they can, but not without a forbidden event).
    """

    reason: Reason | None = None

    @property
    def is_alive(self) -> bool:
        return self.reason is None

    def __bool__(self) -> bool:
        return self.is_alive


@dataclass(frozen=True, slots=True)
class Event:
    """An event that must come, with the names certainly shown, and its atom if the event belongs to the match."""

    type: str
    shows: frozenset[str]
    atom: int | None = None

    def may_be(self, other: Event) -> bool:
        """Whether two required events may be the same event; two events of the match are always distinct."""
        return self.type == other.type and (self.atom is None or other.atom is None)


def alive(
    constraint_set: ConstraintSet,
    seen: frozenset[str],
    remainder: Remainder = NOTHING,
    settled: frozenset[str] | None = None,
) -> Verdict:
    """Whether some conforming trace begins with a prefix of the names ``seen`` and then completes ``remainder``.

    The prefix must not have broken an order constraint itself; ``seen`` includes implied names, and rules are ignored.
    ``settled`` are the names shown before the newest time if events with equal timestamps are unordered, otherwise
    None. With an empty remainder, the result is whether the prefix is consistent. Dead is always right. Alive is exact
    for constraints on types in the order of the log; with symbols, or with ``settled``, it may also mean unknown.
    """
    shown = [constraint_set.shown_by(atom) for atom in remainder.atoms]
    needed = frozenset[str]().union(*shown)
    occurring = constraint_set.horn_closure(seen | needed)
    if constraint_set.is_ruled_out(occurring):
        return Verdict("occurrence")
    required = constraint_set.shown_with(occurring - seen)
    past = seen if settled is None else settled
    if any(constraint_set.blocks(past, name) for name in required | needed):
        return Verdict("blocked")
    if any(gap.since is None and gap.type in past for gap in remainder.gaps):
        return Verdict("absence")
    atoms = enumerate(zip(remainder.atoms, shown, strict=True))
    events = [Event(atom.type, names, index) for index, (atom, names) in atoms]
    events += [
        Event(constraint_set.type_of(name), constraint_set.shown_with({name})) for name in sorted(required - needed)
    ]
    return _ordered(constraint_set, remainder, events, settled)


def _ordered(
    constraint_set: ConstraintSet, remainder: Remainder, events: list[Event], settled: frozenset[str] | None
) -> Verdict:
    """Whether the events can be ordered, and ordered so that the gaps stay free.

    In the order of the log every edge is strict. If events with equal timestamps are unordered, edges of constraints
    and gaps mean "not after", and only a cycle with an edge of the term is impossible.
    """
    term = {(other, index) for index, before in enumerate(remainder.before) for other in before}
    ordered = {
        (one, other)
        for one, first in enumerate(events)
        for other, second in enumerate(events)
        if one != other and not first.may_be(second)
        if any(constraint_set.comes_before(earlier, later) for earlier in first.shows for later in second.shows)
    }
    is_log = settled is None
    if not _is_possible(len(events), term, ordered, is_log):
        return Verdict("order")
    choices = list(_choices(remainder, events, is_log))
    if prod(len(choice) for choice in choices if len(choice) > 1) > MAX_CHOICES:
        choices = [choice for choice in choices if len(choice) == 1]
    if any(_is_possible(len(events), term, ordered.union(chosen), is_log) for chosen in product(*choices)):
        return Verdict()
    return Verdict("absence")


def _choices(remainder: Remainder, events: list[Event], is_log: bool) -> Iterator[list[_Edge]]:
    """For each gap and event that it forbids, the ways to avoid the gap; an empty list if there is none.

    An event whose type the match still needs may be one of the match's events, which have their own edges.
    """
    served = {event.type for event in events if event.atom is not None}
    for gap in remainder.gaps:
        if is_log or gap.since is None or gap.since:
            for place, event in enumerate(events):
                is_taken = event.atom is None and event.type in served
                if event.type == gap.type and not is_taken and event.atom not in gap.edges:
                    yield _ways(remainder, gap, place)


def _ways(remainder: Remainder, gap: Gap, place: int) -> list[_Edge]:
    """The ways to avoid a gap: before some atom that opens it, or after some atom that closes it."""
    since, until = gap.since or frozenset(), gap.until
    last = sorted(one for one in since if not any(one in remainder.before[other] for other in since))
    first = sorted(one for one in until if not remainder.before[one] & until)
    return [*((place, one) for one in last), *((one, place) for one in first)]


def _is_possible(size: int, term: Iterable[_Edge], others: Iterable[_Edge], is_log: bool) -> bool:
    """Whether no strict edge lies on a cycle."""
    successors: dict[int, set[int]] = {node: set() for node in range(size)}
    for one, other in (*term, *others):
        successors[one].add(other)
    if not is_log:
        return not any(one in _reached(other, successors) for one, other in term)
    try:
        TopologicalSorter(successors).prepare()
    except CycleError:
        return False
    return True


def _reached(start: int, successors: Mapping[int, set[int]]) -> set[int]:
    reached, waiting = {start}, [start]
    while waiting:
        new = successors[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached

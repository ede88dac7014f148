"""Finds a small subset of a model's constraints from which all others follow.

Constraints are examined one by one, and left out if they follow from the remaining ones and the end events. What
follows is decided as for any constraint set:

- Occurrence follows by Horn clauses.
- The order of two types follows if a chain of remaining orders leads from the first type to the second, through types
  that must occur with both. Without this condition, orders are not transitive, because the type in between may be
  absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from constraints import Clause, Constraint, Exclusive, Prior, Require, bits_of, members
from workflows.relations.extraction import Extraction


def minimal_cover(extraction: Extraction) -> tuple[Constraint, ...]:
    """Return a nearly minimal set of constraints that, with the end events, implies all constraints of an extraction.

    Orders come first, then exclusions, requirements and clauses, each in the order of the extraction.
    """
    occurrence = _Occurrence(extraction)
    return (
        *(Prior(*pair) for pair in _orders(extraction, occurrence)),
        *(part for part in extraction.constraints if part in occurrence.kept),
    )


class _Occurrence:
    """The occurrence constraints of an extraction as Horn clauses over types, without superfluous ones.

    A type is numbered by its index in the extraction. Sets of types are bit masks. ``kept`` has the constraints that
    imply all others.
    """

    def __init__(self, extraction: Extraction) -> None:
        self._parts: list[Constraint] = [part for part in extraction.constraints if not isinstance(part, Prior)]
        self._names = extraction.events
        self.places = {name: place for place, name in enumerate(extraction.events)}
        ends = frozenset(extraction.end)
        always = self.bits(part.names[0] for part in self._parts if isinstance(part, Clause) and not part.body)
        self.always = always
        self._base = 0  # the closure of the types that occur in every trace, set after the reductions
        self.requires = [0] * len(self.places)
        self.excludes = [0] * len(self.places)
        self.kept: dict[Constraint, None] = {}  # the constraints that cannot be left out
        self.rules: list[tuple[int, int]] = []
        self._bans: list[int] = []
        self._reduce_requires(extraction)
        self._reduce_rules()
        self._reduce_rings()
        self._reduce_exclusives(extraction, ends)
        self._reduce_bans()
        self._base = self.closure(0)

    def bits(self, names: Iterable[str]) -> int:
        return bits_of(self.places[name] for name in names)

    def closure(self, types: int, without: tuple[int, int] | None = None) -> int:
        """Return the set of all types that occur in every trace with the given ``types``. They are included.

        The rule ``without`` is not applied. So the caller can check whether this rule follows from the others.
        """
        closed = self._base | self.always | types
        waiting = closed & ~self._base
        while waiting:
            while waiting:
                lowest = waiting & -waiting
                new = self.requires[lowest.bit_length() - 1] & ~closed
                closed |= new
                waiting = (waiting ^ lowest) | new
            for rule in self.rules:
                if rule[0] & ~closed == 0 and rule[1] & ~closed and rule is not without:
                    closed |= rule[1]
                    waiting |= rule[1]
        return closed

    def is_impossible(self, types: int, without: int = 0) -> bool:
        """Check whether no trace has all of ``types``, a result of ``closure``, because they exclude each other.

        The exclusion ``without`` is not applied.
        """
        return any(self.excludes[place] & types for place in members(types)) or any(
            ban & ~types == 0 and ban != without for ban in self._bans
        )

    def _reduce_requires(self, extraction: Extraction) -> None:
        """Keep the clauses about types that always occur, and enough requirements to imply all others.

        A ring is a set of types that require each other. Kept requirements connect the types of each ring in a circle,
        and connect each ring with the nearest rings that it requires.
        """
        for part in self._parts:
            if isinstance(part, Clause) and not part.body:
                self.kept[part] = None
        rings = self._rings(extraction)
        for needed, ring in rings.items():
            for place, following in zip(ring, ring[1:] + ring[:1], strict=True):
                self._require(place, following)
            below = [other for other in rings if other != needed and not other & ~needed]
            for other in below:
                if not any(between != other and not other & ~between for between in below):
                    self._require(ring[0], rings[other][0])

    def _rings(self, extraction: Extraction) -> dict[int, list[int]]:
        """Return the rings, that is, the sets of types that require each other.

        The key of a ring has all types that the ring requires, including its own types. Types that occur in every trace
        are left out.
        """
        needs = [1 << place for place in range(len(self.places))]
        for trigger, required in extraction.require:
            needs[self.places[trigger]] |= 1 << self.places[required]
        rings: dict[int, list[int]] = {}
        before = Counter(earlier for earlier, _ in extraction.prior)
        for name in sorted(extraction.events, key=lambda name: -before[name]):  # types that precede many others first
            place = self.places[name]
            if not self.always >> place & 1:
                rings.setdefault(needs[place] & ~self.always, []).append(place)
        return rings

    def _require(self, trigger: int, required: int) -> None:
        if trigger != required:
            self.requires[trigger] |= 1 << required
            self.kept[Require(self._names[trigger], self._names[required])] = None

    def _reduce_rules(self) -> None:
        listed = [part for part in self._parts if isinstance(part, Clause) and part.body and part.head is not None]
        self.rules = [(self.bits(part.body), 1 << self.places[part.names[-1]]) for part in listed]
        for part, rule in zip(listed, tuple(self.rules), strict=True):
            if self.closure(rule[0], without=rule) & rule[1]:
                self.rules.remove(rule)
            else:
                self.kept[part] = None

    def _reduce_rings(self) -> None:
        requirements = [part for part in self.kept if isinstance(part, Require)] if self.rules else []
        for part in requirements:
            trigger, bit = self.places[part.trigger], 1 << self.places[part.required]
            self.requires[trigger] ^= bit
            if self.closure(1 << trigger) & bit:
                del self.kept[part]
            else:
                self.requires[trigger] |= bit

    def _reduce_exclusives(self, extraction: Extraction, ends: frozenset[str]) -> None:
        """Keep the exclusions that do not follow from other constraints. Exclusions of two end events always follow."""
        pairs = [pair for pair in extraction.exclusive if not ends.issuperset(pair)]
        for first, second in extraction.exclusive:
            self._exclude(first, second)
        size = [row.bit_count() for row in self.requires]
        for first, second in sorted(pairs, key=lambda pair: -size[self.places[pair[0]]] - size[self.places[pair[1]]]):
            self._exclude(first, second)
            if not self.is_impossible(self.closure(self.bits((first, second)))):
                self._exclude(first, second)
                self.kept[Exclusive(first, second)] = None

    def _exclude(self, first: str, second: str) -> None:
        self.excludes[self.places[first]] ^= 1 << self.places[second]
        self.excludes[self.places[second]] ^= 1 << self.places[first]

    def _reduce_bans(self) -> None:
        listed = [part for part in self._parts if isinstance(part, Clause) and part.head is None]
        self._bans = [self.bits(part.body) for part in listed]
        for part, ban in zip(listed, tuple(self._bans), strict=True):
            if self.is_impossible(self.closure(ban), without=ban):
                self._bans.remove(ban)
            else:
                self.kept[part] = None


def _orders(extraction: Extraction, occurrence: _Occurrence) -> list[tuple[str, str]]:
    """Return the orders of an extraction that do not follow from other constraints.

    An order follows from an exclusion of its types, from an end event, or from a chain of orders through types that
    must occur.
    """
    places = occurrence.places
    ends, apart = frozenset(extraction.end), frozenset(extraction.exclusive)
    listed = [
        (earlier, later)
        for earlier, later in extraction.prior
        if later not in ends and (earlier, later) not in apart and (later, earlier) not in apart
    ]
    after = [0] * len(places)
    for earlier, later in listed:
        after[places[earlier]] |= 1 << places[later]
    whole = occurrence.bits(ends)
    distance = [row.bit_count() for row in after]
    orders = []
    for earlier, later in sorted(listed, key=lambda pair: distance[places[pair[1]]] - distance[places[pair[0]]]):
        first, last = places[earlier], 1 << places[later]
        after[first] ^= last
        companions = occurrence.closure(1 << first | last)
        if earlier == later or not _leads(after, first, last, companions & ~whole):
            after[first] |= last
            orders.append((earlier, later))
    return sorted(orders)


def _leads(after: list[int], first: int, last: int, through: int) -> bool:
    reached, waiting = 0, after[first] & through
    while waiting:
        if waiting & last:
            return True
        lowest = waiting & -waiting
        reached |= lowest
        waiting = (waiting | after[lowest.bit_length() - 1] & through) & ~reached
    return False

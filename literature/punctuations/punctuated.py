"""The windowed join with punctuations of any pattern on integer keys.

Source: sections 3.3 (ranges) and 6.3 (bad input) of the specification of punctuation-aware joins. ``WindowJoin`` knows
closings of single keys. A range closes the keys that the join knows at once, and any other key when its first event
arrives, as the set of closed keys of each input is consulted then. The range itself is reported as over at once, except
for the keys that may still join.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.items import Item, ItemColumns, JoinedColumns
from joins.windowed import WindowJoin
from literature.errors import PunctuationBroken
from literature.punctuations.closed_set import ClosedSet
from literature.punctuations.patterns import Anything, OneOf, Pattern, Range, is_empty, require_domain

# A multiplication by an odd number is invertible; the table of ``WindowJoin`` takes places from the high bits.
_SPREAD = 0x9E3779B97F4A7C15
_BACK = pow(_SPREAD, -1, 1 << 64)
_EVERY_BIT = (1 << 64) - 1
_FEW = 1024
_FIELDS = ("late", "nulls", "empty", "wildcards", "violations", "duplicates")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverRange:
    """A range that a punctuation finished: no combination of its keys comes any more.

    Attributes:
        item: Place of the punctuation among the items.
        pattern: The range.
        but: Keys in the range that may still join; each is reported by itself later.
    """

    item: int
    pattern: Range | Anything
    but: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PunctuatedColumns:
    """Results of some items.

    Attributes:
        joined: Combinations, finished keys (integers, in two's complement), and violations.
        over: Finished ranges.
        late: Places of late items; empty where ``late`` is ``clamp``.
    """

    joined: JoinedColumns
    over: list[OverRange]
    late: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PunctuationStats:
    """Counts of irregular items.

    Attributes:
        late: Items with a time before the current time.
        nulls: Events without a key.
        empty: Punctuations without values.
        wildcards: Punctuations that finish an input.
        violations: Events of keys that their input had closed.
        duplicates: Punctuations whose keys the input had closed.
    """

    late: int
    nulls: int
    empty: int
    wildcards: int
    violations: int
    duplicates: int


@dataclass
class _Pending:
    """Items to push into ``WindowJoin``, each with the place of the item that led to it."""

    rows: list[tuple[Item, int, int, int]] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    def add(self, kind: Item, number: int, key: int, time_us: int, origin: int) -> None:
        self.rows.append((kind, number, (key * _SPREAD) & _EVERY_BIT, time_us))
        self.origins.append(origin)


@dataclass
class _Gathered:
    parts: list[JoinedColumns] = field(default_factory=list)
    over: list[OverRange] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    violations: list[int] = field(default_factory=list)


class PunctuatedJoin:
    """A windowed join by integer keys whose inputs close keys with patterns.

    Args:
        join: A fresh join, used by this object only.
        on_violation: What happens to an event of a key that its input had closed. ``report``: it is reported and joins
            nothing. ``fail``: an error is raised.
        late: What happens to an item with a time before the current time. ``clamp``: it gets the current time.
            ``report``: it is reported and left out.
    """

    def __init__(
        self,
        join: WindowJoin,
        *,
        on_violation: Literal["report", "fail"] = "report",
        late: Literal["clamp", "report"] = "clamp",
    ) -> None:
        self._join = join
        self._fails = on_violation == "fail"
        self._reports_late = late == "report"
        self._closed = [ClosedSet("integer") for _ in range(join.inputs)]
        self._over = ClosedSet("integer")
        self._open_inside: set[int] = set()  # keys in finished ranges that may still join
        self._applied: set[int] = set()  # keys in ranges that the join knows to be closed
        self._reported: set[int] = set()  # reported keys; those that the join has forgotten stay until they are pruned
        self._most_reported = _FEW
        self._counts = dict.fromkeys(_FIELDS, 0)
        self._now_us = -(2**62)

    @property
    def join(self) -> WindowJoin:
        """The wrapped join."""
        return self._join

    @property
    def stats(self) -> PunctuationStats:
        """Counts of irregular items."""
        inner = self._join.stats
        counts = dict(self._counts)
        counts["violations"] += inner.violations
        counts["duplicates"] += inner.duplicates
        return PunctuationStats(**counts)

    def is_over(self, key: int) -> bool:
        """Whether a range has finished a key, which therefore has no more combinations."""
        return self._over.covers(key) and key not in self._open_inside

    def push(self, items: ItemColumns, patterns: Sequence[Pattern] = ()) -> PunctuatedColumns:
        """Process items in order; results do not depend on how items are cut into calls.

        Args:
            items: Items with integer keys in two's complement; the key of a closing is a place in ``patterns``.
            patterns: Patterns of the closings.

        Raises:
            PunctuationRefused: A pattern has values that are no integers; no item was processed.
            PunctuationBroken: An event has a key that its input had closed, and ``on_violation`` is ``fail``.
        """
        for pattern in patterns:
            require_domain(pattern, "integer")
        gathered, pending = _Gathered(), _Pending()
        rows = zip(
            items.kinds.tolist(),
            items.inputs.tolist(),
            items.keys.view(np.int64).tolist(),
            items.times_us.tolist(),
            strict=True,
        )
        for place, (kind, number, key, time_us) in enumerate(rows):
            if time_us < self._now_us:
                self._counts["late"] += 1
                if self._reports_late:
                    gathered.late.append(place)
                    continue
            self._now_us = max(self._now_us, time_us)
            if kind == Item.EVENT:
                self._take_event(pending, gathered, number, key, place)
            elif kind == Item.CLOSING:
                self._take_pattern(pending, gathered, number, patterns[key], place)
            else:
                self._counts["nulls"] += kind == Item.PLACE
                pending.add(Item(kind), number, 0, self._now_us, place)
        self._flush(pending, gathered)
        return PunctuatedColumns(joined=self._joined(gathered), over=gathered.over, late=gathered.late)

    def dump(self) -> tuple[dict[str, int], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        head, arrays = self._join.dump()
        ranges = {
            "closed": [_range_pairs(closed) for closed in self._closed],
            "over": _range_pairs(self._over),
            "open_inside": sorted(self._open_inside),
            "applied": sorted(self._applied),
            "said": sorted(self._reported),
            "counts": self._counts,
            "now_us": self._now_us,
        }
        return head, {**arrays, "ranges": json.dumps(ranges).encode()}

    def load(self, head: Mapping[str, int], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for a join with the same windows.

        Raises:
            JoinStateError: The state is damaged, or has another form.
        """
        try:
            ranges = json.loads(arrays["ranges"])
            self._closed = [_from_pairs(pairs) for pairs in ranges["closed"]]
            self._over = _from_pairs(ranges["over"])
            self._open_inside, self._applied = set(ranges["open_inside"]), set(ranges["applied"])
            self._reported = set(ranges["said"])
            self._counts = {name: int(ranges["counts"][name]) for name in _FIELDS}
            self._now_us = int(ranges["now_us"])
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"the ranges of a saved join cannot be read: {error}") from error
        self._join.load(head, {name: array for name, array in arrays.items() if name != "ranges"})

    def _take_event(self, pending: _Pending, gathered: _Gathered, number: int, key: int, place: int) -> None:
        if self._closed[number].covers(key):
            self._counts["violations"] += 1
            gathered.violations.append(place)
            pending.add(Item.PLACE, number, 0, self._now_us, place)
            if self._fails:
                raise PunctuationBroken(f"an event of the key {key} came on input {number}, which had closed it")
            return
        if key not in self._applied:
            for other, closed in enumerate(self._closed):
                if closed.covers(key):
                    self._applied.add(key)
                    pending.add(Item.CLOSING, other, key, self._now_us, place)
        pending.add(Item.EVENT, number, key, self._now_us, place)

    def _take_pattern(self, pending: _Pending, gathered: _Gathered, number: int, pattern: Pattern, place: int) -> None:
        pending.add(Item.TIME, 0, 0, self._now_us, place)
        if isinstance(pattern, OneOf):
            self._counts["empty"] += not pattern.values
            for key in sorted(int(value) for value in pattern.values):
                if self._closed[number].covers(key):
                    self._counts["duplicates"] += 1
                else:
                    pending.add(Item.CLOSING, number, key, self._now_us, place)
            return
        if is_empty(pattern) or not isinstance(pattern, Range | Anything):
            self._counts["empty"] += 1
            return
        self._counts["wildcards"] += isinstance(pattern, Anything)
        self._flush(pending, gathered)
        if not self._closed[number].add(pattern):
            self._counts["duplicates"] += 1
            return
        self._close_range(gathered, number, pattern, place)

    def _close_range(self, gathered: _Gathered, number: int, pattern: Range | Anything, place: int) -> None:
        """Close the known keys of a range, and report the range as over except for the keys that are still open."""
        known_keys = self._known_keys()
        inside = {key for key in known_keys if self._closed[number].covers(key)}
        closings = _Pending()
        for key in sorted(inside):
            closings.add(Item.CLOSING, number, key, self._now_us, place)
        duplicates = self._join.stats.duplicates
        self._applied = (self._applied & known_keys) | inside
        self._open_inside &= known_keys
        self._flush(closings, gathered)
        self._counts["duplicates"] -= self._join.stats.duplicates - duplicates
        self._reported &= known_keys
        still_open = {key for key in inside if not self.is_over(key)} - self._reported
        self._open_inside |= still_open
        self._over.add(pattern)
        gathered.over.append(OverRange(item=place, pattern=pattern, but=frozenset(still_open)))

    def _known_keys(self) -> set[int]:
        keys = self._join.keys() * np.uint64(_BACK)
        return set(keys.view(np.int64).tolist())

    def _flush(self, pending: _Pending, gathered: _Gathered) -> None:
        """Push the pending items into the join."""
        if not pending.rows:
            return
        joined = self._join.push(ItemColumns.of(pending.rows))
        origins = np.array(pending.origins, np.int32)
        keys = joined.closing_keys * np.uint64(_BACK)
        is_new = np.array([not self.is_over(key) for key in keys.view(np.int64).tolist()], np.bool_)
        self._note(keys.view(np.int64)[is_new].tolist())
        gathered.parts.append(
            replace(
                joined,
                result_items=origins[joined.result_items],
                closing_keys=keys[is_new],
                closing_causes=joined.closing_causes[is_new],
                closing_times_us=joined.closing_times_us[is_new],
                closing_items=origins[joined.closing_items[is_new]],
                violations=origins[joined.violations],
            )
        )
        pending.rows.clear()
        pending.origins.clear()
        if self._fails and len(joined.violations):
            raise PunctuationBroken("an event came on an input that had closed its key")

    def _note(self, keys: list[int]) -> None:
        """Remember keys that were reported as over."""
        self._reported.update(keys)
        self._open_inside.difference_update(keys)
        if len(self._reported) > self._most_reported:
            self._reported &= self._known_keys()
            self._most_reported = max(_FEW, 2 * len(self._reported))

    def _joined(self, gathered: _Gathered) -> JoinedColumns:
        if not gathered.parts:
            gathered.parts.append(self._join.push(ItemColumns.of([])))

        def together(name: str) -> NDArray[np.generic]:
            return np.concatenate([getattr(part, name) for part in gathered.parts])

        names = JoinedColumns.__dataclass_fields__
        columns = {name: together(name) for name in names if name != "violations"}
        own = np.array(gathered.violations, np.int32)
        violations = np.sort(np.concatenate([own, *(part.violations for part in gathered.parts)]))
        return JoinedColumns(**columns, violations=violations)  # type: ignore[arg-type]


def _range_pairs(closed: ClosedSet) -> list[list[int | None]]:
    """The intervals as pairs of inclusive bounds, which integers allow."""
    return [[interval.low, interval.high] for interval in closed.intervals()]  # type: ignore[list-item]


def _from_pairs(pairs: Sequence[Sequence[int | None]]) -> ClosedSet:
    closed = ClosedSet("integer")
    for low, high in pairs:
        closed.add(Range(low=low, high=high))
    return closed

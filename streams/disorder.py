"""Measurement of how far events are out of order in all shards, and the bound of out-of-orderness derived from it.

The lag of an event is the newest time that its place in the shard had seen just before, less the time of the event, or
0 if the event is the newest. An event is late if its lag exceeds the bound of out-of-orderness (``lateness``). Lags are
counted in bins whose width is at most an eighth of the lag, as in HdrHistogram.

Source: data-driven memory management for stream joins, section 3.1 of the specification, where disorder is counted in
arrivals; here it is measured in event time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streams.event_time import AutoLateness
from streams.log.control import LatenessChange

BLOCK_EVENTS = 256
BLOCKS = 8

_PARTS = 8  # bins per octave
_PART_BITS = 3
_HEADROOM = (5, 4)  # from the measured lag to a new bound
_LEAST_ROOM = (9, 8)  # least factor from the measured lag to the bound
_STEEPEST = 2  # a bound falls at most by this factor at a time
_WORTH = (3, 4)  # and only if the new bound is at most this share of the old one


@dataclass(slots=True)
class Lags:
    """A small histogram of lags, which can be merged in any order.

    The lag of an event is how much older the event is than the newest event before it, at least 0.

    Attributes:
        events: Number of events.
        beyond: Number of events whose lag is above the limit. They are in no bin.
        largest_us: The largest lag within the limit.
        bins: Number of events by bin, at most 512 bins. Events in order are in no bin.
    """

    events: int = 0
    beyond: int = 0
    largest_us: int = 0
    bins: Counter[int] = field(default_factory=Counter)

    def add(self, lags_us: NDArray[np.int64], limit_us: int) -> None:
        """Count events by their lags, which are at least 0. Lags above the limit are counted in ``beyond`` only."""
        self.events += len(lags_us)
        behind = lags_us[lags_us > 0]
        within = behind[behind <= limit_us]
        self.beyond += len(behind) - len(within)
        if len(within):
            self.largest_us = max(self.largest_us, int(within.max()))
            bins, counts = np.unique(bins_of(within), return_counts=True)
            self.bins.update(dict(zip(bins.tolist(), counts.tolist(), strict=True)))

    def merge(self, other: Lags) -> None:
        self.events += other.events
        self.beyond += other.beyond
        self.largest_us = max(self.largest_us, other.largest_us)
        self.bins.update(other.bins)

    def bound_us(self, late_share: float = 0.0) -> int:
        """Return a lag that at most the share ``late_share`` of the events exceed. Events above the limit are ignored.

        The result is the upper end of a bin, but at most the largest lag.
        """
        allowed = int(late_share * (self.events - self.beyond))
        for number in sorted(self.bins, reverse=True):
            allowed -= self.bins[number]
            if allowed < 0:
                return min(upper_end_us(number), self.largest_us)
        return 0

    def to_json(self) -> dict[str, Any]:
        return {
            "events": self.events,
            "beyond": self.beyond,
            "largest_us": self.largest_us,
            "bins": {str(number): self.bins[number] for number in sorted(self.bins)},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        bins = Counter({int(number): count for number, count in value["bins"].items()})
        return cls(value["events"], value["beyond"], value["largest_us"], bins)


def bins_of(lags_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bin index of each lag. Lags are at least 0. Larger lags have equal or larger indices."""
    _, bits = np.frexp(lags_us.astype(np.float64))
    shift: NDArray[np.int64] = np.maximum(bits.astype(np.int64) - _PART_BITS - 1, 0)
    bins: NDArray[np.int64] = _PARTS * shift + (lags_us >> shift)
    return bins


def upper_end_us(number: int) -> int:
    """Return the largest lag that the bin with this number contains."""
    shift = max(number // _PARTS - 1, 0)
    return ((number - _PARTS * shift + 1) << shift) - 1


class LatenessDecider:
    """Decides the bound of out-of-orderness of a stream with ``lateness: auto``, from observations of all its shards.

    A decision uses the newest ``BLOCKS`` blocks of at least ``BLOCK_EVENTS`` events each, and the events after them.
    The bound is the lag that only ``late_share`` of these events exceed, plus a quarter. The bound rises at once when
    less than an eighth of headroom is left. It falls if all blocks are newer than the last change, and the new bound
    is lower by at least a quarter. It falls by at most half at a time.

    Source: data-driven memory management for stream joins, section 3.1 of the specification. There, the bound is the
    largest disorder of the newest blocks, with headroom.
    """

    def __init__(self) -> None:
        self._rules = AutoLateness()
        self._bound_us = 0
        self._number = -1  # the bound is unknown
        self._blocks: list[Lags] = []
        self._open = Lags()
        self._since = 0  # blocks since the last change

    def observe(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Add the reports of all shards in one step. Each is a result of ``lateness_summary``.

        The current bound is the bound of the shards that have applied the last decision. If no shard reports any
        applied decision although several were made, the stream was declared again, and the reported bound is current.
        """
        if not summaries:
            return
        latest = max(summary["number"] for summary in summaries)
        is_redeclared = not latest and (self._number > 1 or self._since >= BLOCKS)
        if latest >= self._number or is_redeclared:
            newest = [summary for summary in summaries if summary["number"] == latest]
            self._bound_us, self._number = max(summary["bound_us"] for summary in newest), latest
            self._rules = max((AutoLateness.from_json(summary["rules"]) for summary in newest), key=astuple)
        for summary in summaries:
            self._open.merge(Lags.from_json(summary["lags"]))
        if self._open.events >= BLOCK_EVENTS:
            self._blocks = [*self._blocks[1 - BLOCKS :], self._open]
            self._open, self._since = Lags(), self._since + 1

    def decide(self) -> LatenessChange | None:
        """Return a new bound, or None if the current bound remains."""
        lag_us = self._merged_lags().bound_us(self._rules.late_share)
        wanted_us, least_us = (
            self._rules.within_us(lag_us * part // whole) for part, whole in (_HEADROOM, _LEAST_ROOM)
        )
        if least_us <= self._bound_us:
            if self._since < BLOCKS or wanted_us * _WORTH[1] > self._bound_us * _WORTH[0]:
                return None
            wanted_us = max(wanted_us, self._bound_us // _STEEPEST)
        if wanted_us == self._bound_us:
            return None
        self._bound_us, self._number, self._since = wanted_us, self._number + 1, 0
        return LatenessChange(number=self._number, bound_us=wanted_us, seen=self.seen())

    def seen(self) -> dict[str, int]:
        """Return the measurements behind a decision: events, largest lag, and number of lags above ``at_most``."""
        lags = self._merged_lags()
        return {"events": lags.events, "largest_us": lags.largest_us, "beyond": lags.beyond}

    def _merged_lags(self) -> Lags:
        merged = Lags()
        for lags in (*self._blocks, self._open):
            merged.merge(lags)
        return merged

    def to_json(self) -> dict[str, Any]:
        return {
            "rules": self._rules.to_json(),
            "bound_us": self._bound_us,
            "number": self._number,
            "blocks": [lags.to_json() for lags in self._blocks],
            "open": self._open.to_json(),
            "since": self._since,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Self:
        """Restore a decider from the JSON of ``to_json``, or create a decider from None."""
        decider = cls()
        if value is None:
            return decider
        decider._rules = AutoLateness.from_json(value["rules"])
        decider._bound_us, decider._number, decider._since = value["bound_us"], value["number"], value["since"]
        decider._blocks = [Lags.from_json(lags) for lags in value["blocks"]]
        decider._open = Lags.from_json(value["open"])
        return decider


def lateness_summary(rules: AutoLateness, bound_us: int, number: int, lags: Lags) -> dict[str, Any]:
    """Return a shard's report to the decider about the events since the shard's last report.

    ``rules`` and ``bound_us`` are in force when the shard reports. ``number`` identifies the last change of the bound
    that the shard has applied. It is 0 if the shard has applied none.
    """
    return {"rules": rules.to_json(), "bound_us": bound_us, "number": number, "lags": lags.to_json()}

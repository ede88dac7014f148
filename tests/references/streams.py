"""The executable meaning of the measured bound of out-of-orderness, slow and obvious, to test ``streams.disorder``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from streams.disorder import BLOCK_EVENTS, BLOCKS
from streams.event_time import AutoLateness


class LagReport(NamedTuple):
    """The report of one shard about a step; ``number`` is the number of the last change that the shard knows."""

    rules: AutoLateness
    bound_us: int
    number: int
    lags_us: Sequence[int]


class ReferenceDecider:
    """A decider that keeps every lag of the newest blocks."""

    def __init__(self) -> None:
        self.rules = AutoLateness()
        self.bound_us = 0
        self.number = -1
        self.closed: list[list[int]] = []
        self.open: list[int] = []
        self.blocks_since_change = 0

    def decide(self, reports: Sequence[LagReport]) -> tuple[int, int] | None:
        """Number and bound in microseconds of the change that follows from the reports of a step; None: no change."""
        latest = max(one.number for one in reports)
        is_first_still_to_come = self.number == 1 and self.blocks_since_change < BLOCKS
        if latest >= self.number or (latest == 0 and not is_first_still_to_come):
            self.number = latest
            self.bound_us = max(one.bound_us for one in reports if one.number == latest)
            self.rules = max((one.rules for one in reports if one.number == latest), key=_by_members)
        self.open += [
            -1 if lag_us > one.rules.at_most_us else lag_us for one in reports for lag_us in one.lags_us
        ]  # -1: beyond
        if len(self.open) >= BLOCK_EVENTS:
            self.closed = [*self.closed, self.open][-BLOCKS:]
            self.open = []
            self.blocks_since_change += 1
        bound_us = self._changed_us()
        if bound_us == self.bound_us:
            return None
        self.bound_us, self.number, self.blocks_since_change = bound_us, self.number + 1, 0
        return self.number, bound_us

    def _changed_us(self) -> int:
        lag_us = self._lag_us()
        allowed = self.rules.within_us
        if self.bound_us < allowed(lag_us * 9 // 8):
            return allowed(lag_us * 5 // 4)
        fallen_us = allowed(lag_us * 5 // 4)
        if self.blocks_since_change >= BLOCKS and Fraction(fallen_us) <= Fraction(3, 4) * self.bound_us:
            return max(fallen_us, self.bound_us // 2)
        return self.bound_us

    def _lag_us(self) -> int:
        """The lag that at most the allowed share of events exceeds, rounded up to four binary digits."""
        lags_us = sorted(lag_us for block in (*self.closed, self.open) for lag_us in block if lag_us >= 0)
        if not lags_us:
            return 0
        late = int(self.rules.late_share * len(lags_us))
        return min(_rounded_up(lags_us[len(lags_us) - 1 - late]), lags_us[-1])


def _rounded_up(lag_us: int) -> int:
    """The largest number with the same first four binary digits and the same number of digits."""
    digits = 0
    while lag_us >> digits >= 16:
        digits += 1
    return (((lag_us >> digits) + 1) << digits) - 1


def _by_members(rules: AutoLateness) -> tuple[float, ...]:
    return rules.at_least, rules.at_most, rules.start, rules.late_share

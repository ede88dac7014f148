"""The backlog: its size, the drain rate, and when a refused request may be sent again.

The backlog consists of appended and not yet matched events, counted in events and in bytes of their log entries. It is
bounded: beyond a limit the log refuses events (``LogFull``) until the pipeline has caught up a little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SHORTEST_RETRY_S = 1
LONGEST_RETRY_S = 60

_UNKNOWN_RETRY_S = 10
_FRESH_US = 60_000_000
_SECOND_US = 1_000_000
_WANTED_SHARE = 0.95  # of the limit: a little below it, most repeated requests are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """An amount of the log: entries, events (once for each key that routes them), and bytes of bodies."""

    entries: int = 0
    events: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The volumes that were appended to the log, and matched, since the log began."""

    appended: Volume
    matched: Volume

    @property
    def waiting(self) -> Volume:
        """The volume that is not matched yet."""
        return Volume(
            entries=max(0, self.appended.entries - self.matched.entries),
            events=max(0, self.appended.events - self.matched.events),
            bytes=max(0, self.appended.bytes - self.matched.bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainMark:
    """The volume matched by one micro-batch, which ended at ``time_us``, microseconds UTC."""

    time_us: int
    matched: Volume


def drain_rate(marks: Sequence[DrainMark], now_us: int) -> Volume | None:
    """The volume matched per second in the last minute, by marks (newest first); None if there are fewer than two."""
    fresh = [mark for mark in marks if now_us - mark.time_us <= _FRESH_US]
    if len(fresh) < 2 or fresh[0].time_us <= fresh[-1].time_us:
        return None
    seconds = (max(now_us, fresh[0].time_us) - fresh[-1].time_us) / _SECOND_US
    done = fresh[:-1]
    return Volume(
        entries=round(sum(mark.matched.entries for mark in done) / seconds),
        events=round(sum(mark.matched.events for mark in done) / seconds),
        bytes=round(sum(mark.matched.bytes for mark in done) / seconds),
    )


def retry_after_s(wanted: int, limit: int, rate: int | None) -> int:
    """Seconds, 1 to 60, until backlog and request together are likely to fit; 10 if the rate is unknown."""
    if rate is None:
        return _UNKNOWN_RETRY_S
    excess = max(0.0, wanted - _WANTED_SHARE * limit)
    seconds = math.ceil(excess / rate) if rate > 0 else LONGEST_RETRY_S
    return min(LONGEST_RETRY_S, max(SHORTEST_RETRY_S, seconds))

"""What waits in the log to be matched: how much, how fast it gets less, and when to ask again.

The backlog is what was appended and is not matched yet, counted in events and in bytes of their log entries. It is
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
_WANTED_SHARE = 0.95  # asked again a little below the limit, most are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Some part of the log.

    Attributes:
        entries: Log entries that hold events.
        events: Events; one that is routed by several keys counts once for each.
        bytes: Bytes of their entries' bodies.
    """

    entries: int = 0
    events: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How far matching is behind.

    Attributes:
        appended: What the log has taken since it began.
        matched: What of it is matched.
    """

    appended: Volume
    matched: Volume

    @property
    def waiting(self) -> Volume:
        """What is not matched yet."""
        return Volume(
            entries=max(0, self.appended.entries - self.matched.entries),
            events=max(0, self.appended.events - self.matched.events),
            bytes=max(0, self.appended.bytes - self.matched.bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainMark:
    """What one micro-batch matched.

    Attributes:
        time_us: When it was done, microseconds UTC.
        matched: How much it matched.
    """

    time_us: int
    matched: Volume


def drain_rate(marks: Sequence[DrainMark], now_us: int) -> Volume | None:
    """What was matched per second over the micro-batches of the last minute; None where there are not two.

    Args:
        marks: The newest first.
        now_us: Microseconds UTC.
    """
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
    """Seconds, 1 to 60, until a backlog is likely to have room; 10 where nobody knows.

    Args:
        wanted: Backlog and request together.
        limit: Of the backlog.
        rate: How much is matched per second; None where that is not known.
    """
    if rate is None:
        return _UNKNOWN_RETRY_S
    excess = max(0.0, wanted - _WANTED_SHARE * limit)
    seconds = math.ceil(excess / rate) if rate > 0 else LONGEST_RETRY_S
    return min(LONGEST_RETRY_S, max(SHORTEST_RETRY_S, seconds))

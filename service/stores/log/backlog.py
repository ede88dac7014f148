"""The counters of the log, from which the backlog and the drain rate are computed.

The backlog consists of the events that are appended and not matched yet. It is measured in events and in bytes of their
log entries. If the backlog exceeds a limit, the log refuses further events (``LogFull``) until the pipeline catches up.

The script that appends events counts them per shard, and writes the running totals into each entry (``event_log``). The
sink stores the position up to which a shard is matched (``pipeline_status``). The matched volume is the totals in the
entry at this position, so the counters are correct even if a micro-batch is written twice. In a log that is older than
the counters, the counters of a shard become correct when the shard is matched to its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from service.errors import LogFull
from service.stores.connection import PREFIX, Client, register

MATCHED_KEY = PREFIX + "log:matched"
MARKS_KEY = PREFIX + "log:drain"

MARKS_KEPT = 32

SHORTEST_RETRY_S = 1
LONGEST_RETRY_S = 60

_UNKNOWN_RETRY_S = 10
_FRESH_US = 60_000_000
_SECOND_US = 1_000_000
_TARGET_SHARE = 0.95  # share of the limit to which the backlog should drain before a refused request is repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume of the log: the number of entries, of events, and of bytes of the entries' bodies.

    An event counts once for the correlation key, and once for each further key by which it is appended.
    """

    entries: int = 0
    events: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The volumes that were appended to the log, and matched, since the log was created."""

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
    """The volume that one micro-batch has matched. The micro-batch ended at ``time_us`` (microseconds UTC)."""

    time_us: int
    matched: Volume


class BacklogStore:
    """Reads the counters of the log."""

    def __init__(self, client: Client) -> None:
        self._read = register(client, "log/read_backlog")
        self._read_marks = register(client, "log/read_drain")

    def read(self) -> Backlog:
        """Return the appended and the matched volume, whose difference is the backlog."""
        appended, matched = self._read(matched=MATCHED_KEY)
        return Backlog(appended=_volume(appended), matched=_volume(matched))

    def drain_rate(self) -> Volume | None:
        """Return the volume that was matched per second in the last minute, or None if it is unknown."""
        (seconds, micros), texts = self._read_marks(marks=MARKS_KEY)
        marks = []
        for text in texts:
            time_us, *counts = orjson.loads(text)
            marks.append(DrainMark(time_us=time_us, matched=_volume(counts)))
        return drain_rate(marks, int(seconds) * 1_000_000 + int(micros))

    def refusal(self, unit: str, total: int, waiting: int, limit: int) -> LogFull:
        """Return the error for a request that would exceed a limit of the backlog.

        ``unit`` is ``events`` or ``bytes``. ``waiting`` is the backlog. ``total`` is the backlog with the request.
        """
        rate = self.drain_rate()
        pause_s = retry_after_s(total, limit, None if rate is None else getattr(rate, unit))
        setting = {"events": "FORESTALL_LIMITS__MAX_BACKLOG_EVENTS", "bytes": "FORESTALL_LIMITS__MAX_LOG_BYTES"}[unit]
        return LogFull(
            f"the log is full: {waiting:,} {unit} wait to be matched and with this request it would be {total:,}, of "
            f"at most {limit:,}; nothing of the request was accepted; send it again in {pause_s} s, with the same "
            f"Idempotency-Key if it had one; if this lasts, give the pipeline more cores or raise {setting}",
            full=unit,
            backlog=waiting,
            limit=limit,
            retry_after_s=pause_s,
        )


def _volume(values: Sequence[bytes | int | None]) -> Volume:
    entries, events, size = (int(value or 0) for value in values)
    return Volume(entries=entries, events=events, bytes=size)


def drain_rate(marks: Sequence[DrainMark], now_us: int) -> Volume | None:
    """Compute the volume that was matched per second in the last minute.

    ``marks`` are sorted, the newest first. If fewer than two marks are in the last minute, return None.
    """
    recent = [mark for mark in marks if now_us - mark.time_us <= _FRESH_US]
    if len(recent) < 2 or recent[0].time_us <= recent[-1].time_us:
        return None
    seconds = (max(now_us, recent[0].time_us) - recent[-1].time_us) / _SECOND_US
    done = recent[:-1]
    return Volume(
        entries=round(sum(mark.matched.entries for mark in done) / seconds),
        events=round(sum(mark.matched.events for mark in done) / seconds),
        bytes=round(sum(mark.matched.bytes for mark in done) / seconds),
    )


def retry_after_s(total: int, limit: int, rate: int | None) -> int:
    """Estimate the seconds (1 to 60) after which a refused request will be accepted.

    ``total`` is the backlog including the request. ``rate`` is the drain rate. If it is unknown, return 10.
    """
    if rate is None:
        return _UNKNOWN_RETRY_S
    excess = max(0.0, total - _TARGET_SHARE * limit)
    seconds = math.ceil(excess / rate) if rate > 0 else LONGEST_RETRY_S
    return min(LONGEST_RETRY_S, max(SHORTEST_RETRY_S, seconds))

"""The counters of the log: what was appended, what is matched, and the drain rate.

The script that appends events counts them per shard, writes the running totals into each entry, and refuses
events beyond the limits (``event_log``). The sink notes up to which position a shard is matched (``pipeline_status``);
the totals in the entry at that position are what is matched. So the counters are right however often a micro-batch is
written. A shard that is matched to its end has matched everything that was appended, so the counters also correct
themselves in a log that was begun before they existed.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from service.backlog import Backlog, DrainMark, Volume, drain_rate, retry_after_s
from service.errors import LogFull
from service.stores.connection import PREFIX, Client, register
from streams import APPENDED_KEY

MATCHED_KEY = PREFIX + "log:matched"
MARKS_KEY = PREFIX + "log:drain"

MARKS_KEPT = 32


class BacklogStore:
    """The counters of the log."""

    def __init__(self, client: Client) -> None:
        self._read = register(client, "log/read_backlog")
        self._read_marks = register(client, "log/read_drain")

    def read(self) -> Backlog:
        """The appended and the matched volume; their difference is the backlog."""
        appended, matched = self._read(appended=APPENDED_KEY, matched=MATCHED_KEY)
        return Backlog(appended=_volume(appended), matched=_volume(matched))

    def drain_rate(self) -> Volume | None:
        """Events and bytes matched per second recently; None where the rate is unknown."""
        (seconds, micros), found = self._read_marks(marks=MARKS_KEY)
        marks = []
        for text in found:
            time_us, *counts = orjson.loads(text)
            marks.append(DrainMark(time_us=time_us, matched=_volume(counts)))
        return drain_rate(marks, int(seconds) * 1_000_000 + int(micros))

    def refusal(self, what: str, wanted: int, waiting: int, limit: int) -> LogFull:
        """The error for events or bytes (``what``) that would exceed a limit of the backlog.

        ``wanted`` is the backlog including them, ``waiting`` the backlog without them.
        """
        rate = self.drain_rate()
        pause_s = retry_after_s(wanted, limit, None if rate is None else getattr(rate, what))
        setting = {"events": "FORESTALL_LIMITS__MAX_BACKLOG_EVENTS", "bytes": "FORESTALL_LIMITS__MAX_LOG_BYTES"}[what]
        return LogFull(
            f"the log is full: {waiting:,} {what} wait to be matched and with this request it would be {wanted:,}, of "
            f"at most {limit:,}; nothing of the request was accepted; send it again in {pause_s} s, with the same "
            f"Idempotency-Key if it had one; if this lasts, give the pipeline more cores or raise {setting}",
            full=what,
            backlog=waiting,
            limit=limit,
            retry_after_s=pause_s,
        )


def _volume(values: Sequence[bytes | int | None]) -> Volume:
    entries, events, size = (int(value or 0) for value in values)
    return Volume(entries=entries, events=events, bytes=size)

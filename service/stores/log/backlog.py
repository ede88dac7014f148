"""The counters of the log: what was appended, what is matched, how fast.

The script that appends events counts them per shard, writes into each entry how much that makes up to it, and refuses
events beyond the limits (``event_log``). The sink notes which position of a shard is matched
(``pipeline_status``), and what the entry there says is what is matched: however often a micro-batch is
written, the counters are right. A shard that is matched to its end has matched all that was appended, so they mend
themselves also in a log that is older than they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from service.backlog import Backlog, DrainMark, Volume, drain_rate, retry_after_s
from service.errors import LogFull
from service.stores.connection import PREFIX, Client, register

APPENDED_KEY = PREFIX + "log:counts"
MATCHED_KEY = PREFIX + "log:matched"
MARKS_KEY = PREFIX + "log:drain"

MARKS_KEPT = 32


class BacklogStore:
    """The counters of the log."""

    def __init__(self, client: Client) -> None:
        self._read = register(client, "log/read_backlog")
        self._read_marks = register(client, "log/read_drain")

    def read(self) -> Backlog:
        """How far matching is behind."""
        appended, matched = self._read(appended=APPENDED_KEY, matched=MATCHED_KEY)
        return Backlog(appended=_volume(appended), matched=_volume(matched))

    def drain_rate(self) -> Volume | None:
        """Events and bytes matched per second of late; None where nobody knows."""
        (seconds, micros), found = self._read_marks(marks=MARKS_KEY)
        marks = []
        for text in found:
            time_us, *counts = orjson.loads(text)
            marks.append(DrainMark(time_us=time_us, matched=_volume(counts)))
        return drain_rate(marks, int(seconds) * 1_000_000 + int(micros))

    def refusal(self, what: str, wanted: int, waiting: int, limit: int) -> LogFull:
        """The error for events that would go beyond a limit.

        Args:
            what: ``events`` or ``bytes``.
            wanted: The backlog with them.
            waiting: The backlog without them.
            limit: Of the backlog.
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

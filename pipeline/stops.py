"""Stops before the backlog, recorded beside the log like the quarantine.

The registry records which operators stop, together with the pause that it appends to the log. Each shard then decides
where: at the position after which its next micro-batch begins, provided that no results of this micro-batch are written
yet. The position is recorded before the micro-batch is matched, so a process that matches it again, after a crash or
from an older snapshot, stops the operators there, too (``shards.stops``). A state between this position and the pause
in which they are not stopped comes from an attempt that was not committed, and is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import redis

from shards import ShardState, StoredEntry, stop_note
from streams import StateLost, position_order, stops_key

_PLACED_KEY = "forestall:stops:{shard}:places"
_MARKS_KEY = "forestall:derived:marks"
_MATCHED_KEY = "forestall:log:matched"


class PlacedStops:
    """The stops of one log."""

    def __init__(self, server: redis.Redis, results: str = "") -> None:
        self._server = server
        self._results = results or _MATCHED_KEY
        self._known: dict[int, tuple[dict[str, str], dict[str, str]]] = {}  # by shard, as last read

    def place(self, shard: int, after: str, number: int | None = None) -> None:
        """Place the shard's pending stops at the start of the next micro-batch.

        If the shard has ``number`` stops, as when they were read last, and all are placed or past, nothing is read: no
        stop is ever removed. None: the number is not known.

        Derived events of a micro-batch are counted as they enter the log. If the log already has some of them, or the
        micro-batch is known to be matched, it must be matched as before, and the stops are placed at the next one.
        """
        is_known = shard in self._known and len(self._known[shard][0]) == number
        if is_known and not self._unplaced(shard, after):
            return
        self._read(shard)
        unplaced = self._unplaced(shard, after)
        if unplaced and not self._is_written(shard, after):
            for until in unplaced:
                self._server.hsetnx(_PLACED_KEY.format(shard=shard), until, after)
            self._read(shard)

    def reread(self, shard: int) -> None:
        """Read a shard's stops again, without placing any."""
        self._read(shard)

    def noted(self, shard: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
        """The entries, with a note before the first entry after each stop."""
        wanted, placed = self._known[shard]
        notes: list[tuple[int, StoredEntry]] = []
        for until, after in placed.items():
            behind = [place for place, entry in enumerate(entries) if _is_before(after, entry.position)]
            if behind and until in wanted:
                notes.append((behind[0], stop_note(until, wanted[until], entries[behind[0]])))
        found = list(entries)
        for place, note in sorted(notes, key=lambda one: one[0], reverse=True):
            found.insert(place, note)
        return found

    def check(self, shard: int, state: ShardState) -> None:
        """Check that a state has all stops at its position; ``StateLost`` if it comes from an attempt without one."""
        _, placed = self._known[shard]
        for until, after in placed.items():
            is_between = _is_before(after, state.position) and _is_before(state.position, until)
            if is_between and until not in state.stops:
                raise StateLost(
                    f"the state of shard {shard} at {state.position} was saved before it was decided that operators "
                    f"stop behind {after}"
                )

    def _unplaced(self, shard: int, after: str) -> list[str]:
        """The shard's stops after a position that have no place yet, as last read."""
        wanted, placed = self._known[shard]
        return [until for until in wanted if until not in placed and _is_before(after, until)]

    def _read(self, shard: int) -> None:
        """Records by position of the pause, and the positions where stops were placed."""
        reading = self._server.pipeline(transaction=False)
        reading.hgetall(stops_key(shard))
        reading.hgetall(_PLACED_KEY.format(shard=shard))
        wanted, placed = cast("list[dict[bytes, bytes]]", reading.execute())
        self._known[shard] = _as_text(wanted), _as_text(placed)

    def _is_written(self, shard: int, after: str) -> bool:
        matched = cast("bytes | None", self._server.hget(self._results, f"position:{shard}"))
        if matched is not None and _is_before(after, matched.decode()):
            return True
        marks = cast("dict[bytes, bytes]", self._server.hgetall(_MARKS_KEY))
        return any(
            field.decode().startswith(f"{shard}:") and mark.decode().split()[0] == after
            for field, mark in marks.items()
        )


def _is_before(first: str, second: str) -> bool:
    return position_order(first) < position_order(second)


def _as_text(found: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in found.items()}

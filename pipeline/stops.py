"""Stops before the backlog, recorded beside the log like the quarantine.

When the registry appends a pause to the log, it records which operators stop. Each shard then decides where they stop:
at the position after which its next micro-batch begins, provided that no results of this micro-batch are written yet.
The shard records the position before it matches the micro-batch. If a process matches the micro-batch again, after a
crash or from an older snapshot, it therefore stops the operators at the same position (``shards.stops``). A state
between this position and the pause in which operators still run is from an attempt that was not committed. Such a state
is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import redis

from pipeline.records import PLACES_KEY, ShardRecords
from shards import ShardState, StoredEntry, stop_note
from streams import StateLost, position_order

_MARKS_KEY = "forestall:derived:marks"


class PlacedStops:
    """Decides and records the position after which each stop of one log takes effect."""

    def __init__(self, server: redis.Redis, records: ShardRecords) -> None:
        self._server = server
        self._records = records

    def place(self, shard: int, after: str, number: int | None = None) -> None:
        """Let the shard's pending stops take effect at ``after``, where the next micro-batch begins, and record this.

        ``number`` is the count of the shard's stops, or None if unknown. Stops are never removed. So if the count has
        not changed and no stop is pending, the records are not read.

        If results of the micro-batch are written, or the log already has some of its derived events, the micro-batch
        must be matched as before. The stops are then placed at the start of a later micro-batch.
        """
        is_known = self._records.is_read(shard) and len(self._records.of(shard).wanted) == number
        if is_known and not self._unplaced(shard, after):
            return
        self._records.read(shard)
        unplaced = self._unplaced(shard, after)
        if unplaced and not self._is_written_in_part(shard, after):
            self._records.add(PLACES_KEY, shard, after, dict.fromkeys(unplaced, after))

    def noted(self, shard: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
        """Return the entries with a ``stop_note`` for each stop among them, before the first entry after the stop."""
        records = self._records.of(shard)
        notes: list[tuple[int, StoredEntry]] = []
        for until, after in records.placed.items():
            later_places = [place for place, entry in enumerate(entries) if is_before(after, entry.position)]
            if later_places and until in records.wanted:
                notes.append((later_places[0], stop_note(until, records.wanted[until], entries[later_places[0]])))
        noted_entries = list(entries)
        for place, note in sorted(notes, key=lambda numbered_note: numbered_note[0], reverse=True):
            noted_entries.insert(place, note)
        return noted_entries

    def check(self, shard: int, state: ShardState) -> None:
        """Check that a state contains all stops in force at its position. Raise ``StateLost`` if one is missing."""
        for until, after in self._records.of(shard).placed.items():
            is_between = is_before(after, state.position) and is_before(state.position, until)
            if is_between and until not in state.stops:
                raise StateLost(
                    f"the state of shard {shard} at {state.position} was saved before it was decided that operators "
                    f"stop after {after}"
                )

    def _unplaced(self, shard: int, after: str) -> list[str]:
        records = self._records.of(shard)
        return [until for until in records.wanted if until not in records.placed and is_before(after, until)]

    def _is_written_in_part(self, shard: int, after: str) -> bool:
        """Check whether the log already has derived events of the micro-batch that begins after a position."""
        marks = cast("dict[bytes, bytes]", self._server.hgetall(_MARKS_KEY))
        return any(
            field.decode().startswith(f"{shard}:") and mark.decode().split()[0] == after
            for field, mark in marks.items()
        )


def is_before(first: str, second: str) -> bool:
    """Return whether a position of a shard's log is before another one."""
    return position_order(first) < position_order(second)

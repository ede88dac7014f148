"""The quarantine: entries that break the matcher are recorded, and skipped from then on.

An entry is set aside for one of two reasons. If matching raises an unexpected error, the entry is set aside at once. If
matching ends the whole process (out of memory, a crash in native code), the entry is found by counting the attempts at
a micro-batch. After ``_TRIES`` attempts the micro-batch is matched entry by entry, with a count for each entry, and an
entry that reaches the same number of attempts is set aside. The record is stored beside the log, so a process that
matches these entries again, after a crash or from an older snapshot, skips the same entries.

A process that continues from its own last micro-batch neither counts attempts nor reads the record again. So a step
that succeeds needs no call to Redis. If an entry ends such a process, the next process counts its attempts, because it
has not matched the micro-batch before. The entry is then found one attempt later. The record is read together with the
stops of the shard (``pipeline.records``). An entry is added to the record only while the results of its micro-batch are
not written.
"""

from __future__ import annotations

from collections.abc import Sequence

import redis

from pipeline.records import QUARANTINE_KEY, ShardRecords
from shards import StoredEntry, quarantine_note

_TRIES_KEY = "forestall:tries"
_TRIES = 3


class Quarantine:
    """The quarantined entries of one log: entries that are skipped, because matching them fails or ends the process.

    A process that ends leaves no error. So the attempts at each micro-batch, and if necessary at each entry, are
    counted.
    """

    def __init__(self, server: redis.Redis, records: ShardRecords) -> None:
        self._server = server
        self._records = records
        self._unwritten: dict[tuple[int, str], str] = {}  # reasons by shard and position, after the lease was lost
        self._counted: dict[int, str] = {}  # by shard: the start of the micro-batch whose attempt is counted

    def begin(self, shard: int, after: str, *, continues: bool) -> bool:
        """Begin a micro-batch of a shard, after the position ``after``, and count the attempt.

        Return True if too many attempts have failed. Each entry then has to be watched (``watch``). ``continues`` means
        that this process has finished the previous micro-batch, and that no attempt has failed since. Then nothing is
        counted.
        """
        if continues:
            return False
        self._counted[shard] = after
        return self._count(_field(shard, after)) > _TRIES

    def forget(self, shard: int) -> None:
        """Forget a shard, which another process advances from now on."""
        self._counted.pop(shard, None)
        self._unwritten = {place: reason for place, reason in self._unwritten.items() if place[0] != shard}

    def done(self, shard: int) -> None:
        """End the micro-batch, because matching has succeeded. Its attempts are no longer counted."""
        if (after := self._counted.pop(shard, None)) is not None:
            self._server.hdel(_TRIES_KEY, _field(shard, after))

    def watch(self, shard: int, entry: StoredEntry) -> bool:
        """Count an attempt at one entry. Return True if the entry must be quarantined after too many attempts."""
        return self._count(_field(shard, "", entry.position)) > _TRIES

    def unwatch(self, shard: int, entry: StoredEntry) -> None:
        """End the attempt at an entry, because matching has succeeded. Its attempts are no longer counted."""
        self._server.hdel(_TRIES_KEY, _field(shard, "", entry.position))

    def set_aside(self, shard: int, after: str, entry: StoredEntry, reason: str) -> None:
        """Quarantine an entry with a reason. If the entry already has a reason, this reason is kept.

        ``after`` is the position after which the micro-batch begins. The record is refused if another process owns the
        shard, or if the results are written. Then only this process skips the entry, and the results of this process
        are not used.
        """
        records = self._records.add(QUARANTINE_KEY, shard, after, {entry.position: reason})
        if entry.position not in records.quarantined:
            self._unwritten[shard, entry.position] = reason

    def screened(self, shard: int, entries: Sequence[StoredEntry]) -> list[StoredEntry]:
        """Return the entries, with a note (``shards.quarantine_note``) in place of each quarantined entry."""
        quarantined = self._records.of(shard).quarantined
        if not quarantined and not self._unwritten:
            return list(entries)
        unwritten = {position: reason for (owner, position), reason in self._unwritten.items() if owner == shard}
        reasons = {**unwritten, **quarantined}
        return [
            entry if entry.position not in reasons else quarantine_note(entry, reasons[entry.position])
            for entry in entries
        ]

    def _count(self, field: str) -> int:
        return self._server.hincrby(_TRIES_KEY, field, 1)


def _field(*parts: object) -> str:
    return ":".join(str(part) for part in parts)

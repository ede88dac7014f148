"""Records about a shard beside its log: its stops, their places, and its quarantined entries.

Every process that matches the shard's entries again obeys the same records. A record is therefore added only while the
results that it concerns are not written. With continuous tasks, only the owner of the shard's lease adds records. With
micro-batches, any process may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import redis

from streams import ScriptInput, read_script, stops_key

EPOCHS_KEY = "forestall:tasks:epochs"
"""By shard, a number that rises with each change of its owner (a fencing token)."""

PLACES_KEY = "forestall:stops:{shard}:places"
QUARANTINE_KEY = "forestall:quarantine:{shard}"
_MATCHED_KEY = "forestall:log:matched"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsOfShard:
    """What is recorded about a shard beside its log, as last read: its stops and its quarantined entries.

    Attributes:
        wanted: The operators that each pause stops before the backlog (``stop_note``), by the position of the pause.
        placed: The position after which these operators stop, by the position of the pause.
        quarantined: Why each quarantined entry is skipped, by the position of the entry.
    """

    wanted: Mapping[str, str]
    placed: Mapping[str, str]
    quarantined: Mapping[str, str]


class ShardRecords:
    """Reads and adds the records about the shards of a log: stops and quarantined entries.

    ``results`` names the Redis hash of the positions up to which results are written.
    """

    def __init__(self, server: redis.Redis, results: str = "") -> None:
        self._server = server
        self._results = results or _MATCHED_KEY
        self._script = read_script(__package__, "record")
        self._run = server.register_script(self._script.text)
        self._known: dict[int, RecordsOfShard] = {}
        self._epochs: dict[int, int] = {}

    def of(self, shard: int) -> RecordsOfShard:
        return self._known[shard]

    def is_read(self, shard: int) -> bool:
        return shard in self._known

    def read(self, shard: int) -> RecordsOfShard:
        reading = self._server.pipeline(transaction=False)
        for key in (stops_key(shard), PLACES_KEY.format(shard=shard), QUARANTINE_KEY.format(shard=shard)):
            reading.hgetall(key)
        stops, placed, quarantined = map(_as_text, cast("list[dict[bytes, bytes]]", reading.execute()))
        records = self._known[shard] = RecordsOfShard(wanted=stops, placed=placed, quarantined=quarantined)
        return records

    def lease(self, shard: int, epoch: int | None) -> None:
        """Set the epoch of a shard's lease, or None without leases. Records are added only under the lease's epoch."""
        if epoch is None:
            self._epochs.pop(shard, None)
        else:
            self._epochs[shard] = epoch

    def add(self, key: str, shard: int, after: str, facts: Mapping[str, str]) -> RecordsOfShard:
        """Add records to the Redis hash ``key`` of a shard, and return all records of the shard.

        ``facts`` are the fields and their values. They concern entries after the position ``after``. An existing field
        is not changed. Nothing is added if results after the position are written, or if the lease is lost.
        """
        script_inputs: dict[str, ScriptInput] = {
            "records": key.format(shard=shard),
            "epochs": EPOCHS_KEY,
            "results": self._results,
            "shard": shard,
            "epoch": self._epochs.get(shard, ""),
            "after": after,
            "facts": [part for fact in facts.items() for part in fact],
        }
        self._run(*self._script.bind(script_inputs))
        return self.read(shard)


def _as_text(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}

"""Derived events with another key than their match: appended to the log, for the shards of these keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from service.stores import DerivedEventStore, DerivedPart
from shards import OutputRow
from streams import EventBatch


class DerivedEventAppender:
    """Appends the rekeyed derived events of a micro-batch, then the time that their streams have reached.

    It may fail or be killed anywhere and be called again with the same rows: each event is in the log once.
    """

    def __init__(self, store: DerivedEventStore) -> None:
        self._store = store

    def __call__(self, rows: Sequence[OutputRow], reports: Sequence[OutputRow]) -> None:
        """Write the derived events of a micro-batch, given the reports (rows of the kind ``stats``) of its shards.

        The rows are of the kind ``rekeyed``, by shard and position. Raises ``LogResharding`` also if the log was
        resharded since this process read its layout.
        """
        shards = {row.shard: orjson.loads(row.body) for row in reports}
        ends = {row.shard: row.position for row in reports}
        parts = {
            stream: [_part(shard, shards[shard]["after"], ends[shard], found[shard]) for shard in sorted(found)]
            for stream, found in _by_stream(rows).items()
        }
        promises = _promises(shards)
        if parts or promises:
            self._store.write(parts, promises, ends)


def _by_stream(rows: Sequence[OutputRow]) -> dict[str, dict[int, list[OutputRow]]]:
    """The rows by derived stream and by the shard that found them."""
    found: defaultdict[str, defaultdict[int, list[OutputRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.subject][row.shard].append(row)
    return {stream: dict(found[stream]) for stream in sorted(found)}


def _part(shard: int, after: str, until: str, rows: Sequence[OutputRow]) -> DerivedPart:
    """The events in the order of time and id, which does not depend on how the range was matched."""
    batches = [EventBatch.from_bytes(row.body) for row in rows]
    events = EventBatch.joined(batches)
    order = events.order_by_time()
    positions = np.repeat([row.position for row in rows], [len(batch) for batch in batches])[order]
    return DerivedPart(shard=shard, after=after, until=until, events=events.take(order), positions=positions.tolist())


def _promises(shards: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[int, int | None]]:
    """The promises of shards, by derived stream and shard."""
    found: defaultdict[str, dict[int, int | None]] = defaultdict(dict)
    for shard, report in shards.items():
        for stream, time_us in report.get("promises", {}).items():
            found[stream][shard] = time_us
    return {stream: found[stream] for stream in sorted(found)}

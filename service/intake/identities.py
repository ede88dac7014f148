"""The identities of events, by which the intake recognises repeated events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from service.stores import event_digest
from streams import EventBatch, StreamDeclaration


def without_repetitions(
    batch: EventBatch,
    objects: Sequence[object],
    rejected: Collection[int],
    declaration: StreamDeclaration,
    origins: Sequence[Mapping[str, Any]] | None,
) -> tuple[EventBatch, Sequence[bytes | None]]:
    """Drop the repeated events of a batch. Return the remaining events, and the digest of each event's identity.

    ``batch`` contains the valid events of ``objects``. The other rows of ``objects`` are in ``rejected``. A CloudEvent
    is identified by its source and id, a plain object by its id. If the stream keeps repeated events, no digests are
    returned.

    ``origins`` has the place from which a feed read each event. If the feed made the event's id from this place, the
    digest is None. Otherwise, files or topics of the same name in other folders or clusters would have equal digests.
    """
    if declaration.duplicates == "keep":
        return batch, ()
    excluded = frozenset(rejected)
    rows = [row for row in range(len(objects)) if row not in excluded]
    ids = batch.columns.column("id").to_pylist()
    digests: list[bytes | None] = [
        None
        if origins is not None and _is_made_up(event_id, origins[row])
        else event_digest(_source(objects[row]), event_id)
        for row, event_id in zip(rows, ids, strict=True)
    ]
    distinct: set[bytes] = set()
    first_rows: list[int] = []
    for row, digest in enumerate(digests):
        if digest is None or digest not in distinct:
            first_rows.append(row)
        if digest is not None:
            distinct.add(digest)
    if len(first_rows) == len(digests):
        return batch, digests
    return batch.take(np.array(first_rows, np.int64)), [digests[row] for row in first_rows]


def _source(value: object) -> str:
    return str(value["source"]) if isinstance(value, Mapping) and "specversion" in value else ""


def _is_made_up(event_id: str, origin: Mapping[str, Any]) -> bool:
    """Return whether a feed made an event's id from the file and row, or from the topic, partition and offset."""
    if "file" in origin:
        return event_id.startswith(f"{origin['file']}:")
    return "topic" in origin and event_id == f"{origin['topic']}:{origin['partition']}:{origin['offset']}"

"""Workload W as a file of JSON lines."""

from __future__ import annotations

from pathlib import Path

import orjson

from streams import Event, EventBatch


def write_lines(batch: EventBatch, path: Path) -> None:
    """Write workload W as JSON lines, with ``value`` as a member of ``data``."""
    values = batch.attributes[("value",)].to_pylist()
    with path.open("wb") as file:
        for event, value in zip(batch.to_events(), values, strict=True):
            file.write(orjson.dumps(_line(event, value), option=orjson.OPT_APPEND_NEWLINE))


def _line(event: Event, value: float) -> dict[str, object]:
    return {"id": event.id, "type": event.type, "time": event.time_us, "key": event.key, "data": {"value": value}}

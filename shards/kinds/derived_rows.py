"""Derived events that keep the key of their source. Their result rows are made by columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shards.operators import Origin, Output, Result
from shards.results import DERIVED
from shards.rows import ResultRows
from streams import Definition, EventBatch, joined_texts, json_contents, json_text, time_texts


@dataclass(frozen=True, slots=True)
class DerivedOutput(Output):
    """Events of the derived stream that has the same name as its operator.

    Attributes:
        stream: The stream at whose place the operator runs.
    """

    stream: str
    definition: Definition
    events: EventBatch

    def derived(self) -> Iterator[tuple[str, EventBatch]]:
        if len(self.events):
            yield self.definition.name, self.events

    def results(self, origin: Origin) -> Iterator[Result]:
        """Yield the result rows of the events."""
        if len(self.events):
            yield derived_rows(self.events, self.stream, self.definition.name, self.definition.version)


def derived_rows(events: EventBatch, stream: str, name: str, version: int) -> ResultRows:
    """Return the result rows of derived events that have the keys of their source events.

    ``events`` is not empty. ``stream`` is the stream of the source events. ``name`` is the name of the operator and of
    its derived stream.
    """
    columns, types = events.columns, events.columns.column("type")
    keys = json_contents(columns.column("key"))
    bodies = joined_texts(
        [
            '{"id":"',
            json_contents(columns.column("id")),
            f'","stream":{json_text(stream)},"into":{json_text(name)},"type":"',
            json_contents(types.dictionary).take(types.indices),
            '","time":"',
            time_texts(events.time_us),
            '","key":"',
            keys,
            '","data":',
            columns.column("data").view(pa.string()),
            f',"pattern":{json_text(name)},"version":{version},"source_key":"',
            keys,
            '","rekeyed":false}',
        ]
    )
    about = {"stream": stream, "pattern": name, "into": name}
    return ResultRows.about(DERIVED, columns.column("id"), bodies, [about], np.zeros(len(events), np.int32))

"""Events of derived streams as rows of results, by columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shards.results import DERIVED
from shards.rows import FoundRows
from streams import EventBatch, joined_texts, json_contents, json_text, time_texts


def derived_rows(
    events: EventBatch, sources: pa.Array, streams: tuple[str, str], operator: tuple[str, int], *, is_merged: bool
) -> FoundRows:
    """A row for each event.

    Args:
        events: One at least.
        sources: Strings: of each the key in the stream that it comes from.
        streams: That one, and the derived one.
        operator: Name and version of what made them.
        is_merged: Whether they are merged events, which go through the log to the shards of their keys.
    """
    stream, into = streams
    name, version = operator
    columns, types = events.columns, events.columns.column("type")
    end = '"rekeyed":true,"merged":true}' if is_merged else '"rekeyed":false}'
    bodies = joined_texts(
        [
            '{"id":"',
            json_contents(columns.column("id")),
            f'","stream":{json_text(stream)},"into":{json_text(into)},"type":"',
            json_contents(types.dictionary).take(types.indices),
            '","time":"',
            time_texts(events.time_us),
            '","key":"',
            json_contents(columns.column("key")),
            '","data":',
            columns.column("data").view(pa.string()),
            f',"pattern":{json_text(name)},"version":{version},"source_key":"',
            json_contents(sources),
            f'",{end}',
        ]
    )
    about = {"stream": stream, "pattern": name, "into": into}
    return FoundRows.about(DERIVED, columns.column("id"), bodies, [about], np.zeros(len(events), np.int32))

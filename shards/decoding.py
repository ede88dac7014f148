"""Decoding of ``events`` entries, with the checks that the matcher relies on.

The checks run over the columns of many entries at once, because checks per entry would cost more than matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.entries import Entry, EventsEntry
from streams import EARLIEST_US, LATEST_US, BatchFormatError, EventBatch

_BRACES = ord("{"), ord("}")


def decode_batches(bodies: Sequence[bytes]) -> list[EventBatch | BatchFormatError]:
    """Decode the batches of ``events`` entries. A batch that could harm the matcher becomes an error with the reason.

    The attributes of an event must begin and end like a JSON object. Attributes that are damaged further inside count
    as empty.
    """
    batches = [_decoded(body) for body in bodies]
    valid_batches = [batch for batch in batches if isinstance(batch, EventBatch) and len(batch)]
    if valid_batches and _fault_of(valid_batches) is not None:
        batches = [
            decoded if isinstance(decoded, BatchFormatError) else _fault_of([decoded]) or decoded for decoded in batches
        ]
    return batches


def _decoded(body: bytes) -> EventBatch | BatchFormatError:
    """Decode a batch, and check that no offset in its arrays points outside the data.

    The values are not checked here, but by ``_fault_of``.
    """
    try:
        batch = EventBatch.from_bytes(body)
        batch.columns.validate(full=True)
    except pa.ArrowInvalid as error:
        return BatchFormatError(f"a batch holds invalid values: {error}")
    except BatchFormatError as error:
        return error
    types = batch.columns.column("type").dictionary
    names = types.to_pylist()
    if None in names:
        return BatchFormatError("a batch has a null in the dictionary of its types")
    if len(set(names)) != len(names):
        return BatchFormatError("a batch has a type twice in the dictionary of its types")
    return batch


def _fault_of(batches: Sequence[EventBatch]) -> BatchFormatError | None:
    columns = [batch.columns for batch in batches]
    if any(column.null_count for part in columns for column in part.columns):
        holes = [name for name in columns[0].schema.names if any(part.column(name).null_count for part in columns)]
        return BatchFormatError(f"a batch has nulls in {', '.join(holes)}")
    times_us = batches[0].time_us if len(batches) == 1 else np.concatenate([batch.time_us for batch in batches])
    for time_us in (int(times_us.min()), int(times_us.max())) if len(times_us) else ():
        if not EARLIEST_US <= time_us <= LATEST_US:
            return BatchFormatError(f"a batch holds the time {time_us} us, which is outside the years 1 to 9999")
    data = [part.column("data") for part in columns]
    return _fault_of_attributes(data[0] if len(data) == 1 else pa.concat_arrays(data))


def _fault_of_attributes(column: pa.Array) -> BatchFormatError | None:
    """Return the error of the first row whose attributes do not begin and end like a JSON object, or None."""
    if not len(column):
        return None
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    characters: NDArray[np.uint8] = np.frombuffer(b"" if data is None else data, np.uint8)
    is_object = np.diff(places) >= len(_BRACES)
    if is_object.all():
        is_object = (characters[places[:-1]] == _BRACES[0]) & (characters[places[1:] - 1] == _BRACES[1])
    if is_object.all():
        return None
    excerpt = cast("bytes", column[int(np.flatnonzero(~is_object)[0])].as_py())[:40]
    return BatchFormatError(f"attributes of an event are not JSON: expected an object, not {excerpt!r}")


def batches_of(entries: Sequence[Entry]) -> Sequence[EventBatch | BatchFormatError]:
    """Return the batch of each entry. A batch that is already decoded is not decoded again."""
    batches = [entry.batch for entry in entries if isinstance(entry, EventsEntry)]
    return batches if len(batches) == len(entries) else decode_batches([entry.body for entry in entries])

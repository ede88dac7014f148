"""The columnar batch: what travels in the event log and what the matcher reads.

Rows keep the order of the log. On the wire a batch is one Arrow IPC stream whose schema metadata names the format
version; unknown versions are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from streams.errors import BatchFormatError
from streams.event import Event
from streams.hashing import key_hash, shard_of

FORMAT_VERSION = 1

_VERSION_KEY = b"forestall.batch"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("key_hash", pa.uint64(), nullable=False),
        pa.field("data", pa.binary(), nullable=False),
    ],
    metadata={_VERSION_KEY: str(FORMAT_VERSION).encode()},
)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events of one stream as columns.

    Attributes:
        columns: Arrow record batch of ``SCHEMA``: id, type (dictionary), time (us, UTC), key, key_hash, data (the
            attributes as one JSON object per row).
        attributes: Attribute columns decoded beforehand, by path such as ``("price",)``: Arrow arrays of bool, int64,
            float64 or string, one value per row. Where a path is missing here it is read from ``data``.
    """

    columns: pa.RecordBatch
    attributes: Mapping[tuple[str, ...], pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return cast(int, self.columns.num_rows)

    @classmethod
    def from_events(cls, events: Sequence[Event]) -> EventBatch:
        """Column form of events, in their order."""
        hashes: dict[str, int] = {}
        for event in events:
            if event.key not in hashes:
                hashes[event.key] = key_hash(event.key)
        arrays = [
            pa.array([event.id for event in events], pa.string()),
            pa.array([event.type for event in events], pa.string()).dictionary_encode(),
            pa.array([event.time_us for event in events], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            pa.array([event.key for event in events], pa.string()),
            pa.array([hashes[event.key] for event in events], pa.uint64()),
            pa.array([orjson.dumps(event.data) for event in events], pa.binary()),
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

    def to_events(self) -> list[Event]:
        """Row form, for edges and tests."""
        return [
            Event(id=row_id, type=row_type, time_us=time_us, key=key, data=orjson.loads(data))
            for row_id, row_type, time_us, key, data in zip(
                self.columns.column("id").to_pylist(),
                self.columns.column("type").to_pylist(),
                self.time_us.tolist(),
                self.columns.column("key").to_pylist(),
                self.columns.column("data").to_pylist(),
                strict=True,
            )
        ]

    @property
    def time_us(self) -> NDArray[np.int64]:
        """Occurrence times; read-only."""
        return cast("NDArray[np.int64]", self.columns.column("time").view(pa.int64()).to_numpy(zero_copy_only=False))

    @property
    def key_hashes(self) -> NDArray[np.uint64]:
        """Hashed correlation keys; read-only."""
        return cast("NDArray[np.uint64]", self.columns.column("key_hash").to_numpy(zero_copy_only=False))

    @property
    def type_names(self) -> list[str]:
        """The type dictionary; ``type_codes`` index it."""
        return cast("list[str]", self.columns.column("type").dictionary.to_pylist())

    @property
    def type_codes(self) -> NDArray[np.int32]:
        """Event type of each row as an index into ``type_names``; read-only."""
        return cast("NDArray[np.int32]", self.columns.column("type").indices.to_numpy(zero_copy_only=False))

    def slice(self, offset: int, length: int | None = None) -> EventBatch:
        """Rows ``offset`` to ``offset + length`` without a copy."""
        size = len(self) - offset if length is None else length
        attributes = {path: column.slice(offset, size) for path, column in self.attributes.items()}
        return EventBatch(self.columns.slice(offset, size), attributes)

    def split_by_shard(self, shards: int) -> dict[int, EventBatch]:
        """The part of each shard that gets one, by shard; rows keep their order, decoded attributes are left behind."""
        homes = shard_of(self.key_hashes, shards)
        return {
            int(shard): EventBatch(self.columns.take(pa.array(np.flatnonzero(homes == shard))))
            for shard in np.unique(homes)
        }

    def to_bytes(self) -> bytes:
        """Wire form: one Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_batch(self.columns)
        return cast(bytes, sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, body: bytes) -> EventBatch:
        """Read the wire form.

        Raises:
            BatchFormatError: The bytes are damaged or of a version that this release does not know.
        """
        try:
            with pa.ipc.open_stream(body) as reader:
                version = (reader.schema.metadata or {}).get(_VERSION_KEY)
                table = reader.read_all()
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            raise BatchFormatError(f"{len(body)} bytes are not an Arrow batch: {error}") from error
        if version != str(FORMAT_VERSION).encode():
            found: Any = None if version is None else version.decode(errors="replace")
            raise BatchFormatError(
                f"batch format {found!r} is unknown; this release reads {FORMAT_VERSION}", found=found
            )
        batches = table.combine_chunks().to_batches()
        return cls(batches[0] if batches else pa.RecordBatch.from_pylist([], schema=SCHEMA))

"""The columnar batch: the form of events in the event log and in the matcher.

Rows keep the order of the log. The wire form of a batch is one Arrow IPC stream, whose schema metadata contains the
format version; unknown versions are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.columns.arrow_columns import column_of, numbers_of, time_column
from streams.columns.texts import pieces_of, shown_texts, texts_of
from streams.errors import BatchFormatError
from streams.event import Event
from streams.hashing import key_hash, key_of, shard_of
from streams.keys import AttributePath, Path, place_for
from streams.tables import Tables

FORMAT_VERSION = 1
ARRIVALS_VERSION = 2
"""Format version of batches with arrival numbers."""

ENDED = ""
"""Type of a row that is not an event, but marks the end of the trace of its key. No event has an empty type.

Only batches of derived streams have such rows. Only the hashes of their keys are known.
"""

RETRACTED = ".retracted"
"""Suffix of the type of a derived event that retracts an earlier event."""

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

_ARRIVAL = pa.field("arrival", pa.int64(), nullable=False)
_WITH_ARRIVALS = pa.schema([*SCHEMA, _ARRIVAL]).with_metadata({_VERSION_KEY: str(ARRIVALS_VERSION).encode()})
_BEGINNINGS = tuple(  # the schema messages of both wire forms
    schema.serialize().to_pybytes() for schema in (SCHEMA, _WITH_ARRIVALS)
)


@dataclass(frozen=True)
class EventBatch:
    """Events of one stream as columns.

    Attributes:
        columns: Arrow record batch of ``SCHEMA``: id, type (dictionary), time (us, UTC), key, key_hash, data (the
            attributes as one JSON object per row). In a *compact* batch, ids may be whole numbers and keys a
            dictionary; ``plain`` converts both to texts.
        attributes: Attribute columns that are already decoded, by path such as ``("price",)``: Arrow arrays of bool,
            int64, float64 or string, one value per row. Any other path is read from ``data``.
        arrivals: Arrival numbers, which rise in the order in which the events of the stream arrived; None: unknown.
        tables: The tables that lookups read for these events; None: no tables. Not part of the wire form.
    """

    columns: pa.RecordBatch
    attributes: Mapping[tuple[str, ...], pa.Array] = field(default_factory=dict)
    arrivals: NDArray[np.int64] | None = field(default=None, compare=False)
    tables: Tables | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return cast(int, self.columns.num_rows)

    @classmethod
    def from_events(cls, events: Sequence[Event]) -> EventBatch:
        if not events:
            return cls(_no_rows())
        return cls.from_columns(
            [event.id for event in events],
            [event.type for event in events],
            np.array([event.time_us for event in events], np.int64),
            [event.key for event in events],
            [orjson.dumps(event.data) for event in events],
        )

    @classmethod
    def from_columns(
        cls, ids: list[str], types: list[str], times_us: NDArray[np.int64], keys: list[str], data: list[bytes]
    ) -> EventBatch:
        """Create a batch from columns whose values are already checked. ``data`` has one JSON object per row."""
        hashes = {key: key_hash(key) for key in set(keys)}
        arrays = [
            texts_of(ids),
            texts_of(types).dictionary_encode(),
            time_column(times_us),
            texts_of(keys),
            column_of(np.array([hashes[key] for key in keys], np.uint64)),
            pieces_of(data, pa.binary()),
        ]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

    @classmethod
    def of_columns(
        cls, ids: pa.Array, types: pa.DictionaryArray, times_us: NDArray[np.int64], keys: pa.Array, data: pa.Array
    ) -> EventBatch:
        """Create a batch from checked columns that have the types of ``SCHEMA``."""
        return cls.of_hashed(ids, types, times_us, (keys, hashes_of(keys)), data)

    @classmethod
    def of_hashed(
        cls,
        ids: pa.Array,
        types: pa.DictionaryArray,
        times_us: NDArray[np.int64],
        keys: tuple[pa.Array, NDArray[np.uint64]],
        data: pa.Array,
    ) -> EventBatch:
        """Create a batch like ``of_columns``, from keys with their hashes.

        Ids and keys may be compact (see the class).
        """
        arrays = [ids, types, time_column(times_us), keys[0], column_of(keys[1]), data]
        schema = SCHEMA.set(0, SCHEMA.field("id").with_type(ids.type)).set(
            3, SCHEMA.field("key").with_type(keys[0].type)
        )
        return cls(pa.RecordBatch.from_arrays(arrays, schema=schema))

    @classmethod
    def of_ended(cls, key_hashes: NDArray[np.uint64], times_us: NDArray[np.int64], *, kind: str = ENDED) -> EventBatch:
        """Create a batch whose rows are not events but end the traces of keys, which are known as hashes only.

        Each row has its time. ``kind`` is the type of all rows.
        """
        size = len(key_hashes)
        empty = pa.array([""] * size, pa.string())
        types = pa.DictionaryArray.from_arrays(column_of(np.zeros(size, np.int32)), pa.array([kind]))
        data = pa.array([b"{}"] * size, pa.binary())
        arrays = [empty, types, time_column(times_us), empty, column_of(key_hashes), data]
        return cls(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

    @property
    def plain(self) -> EventBatch:
        """The batch with ids and keys as texts."""
        if self.columns.schema.equals(SCHEMA):
            return self
        texts = {name: shown_texts(self.columns.column(name)) for name in ("id", "key")}
        arrays = [texts.get(name, self.columns.column(name)) for name in SCHEMA.names]
        return replace(self, columns=pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

    @cached_property
    def is_ended(self) -> NDArray[np.bool_]:
        """Mask of the rows that are not events but end the trace of their key (``of_ended``)."""
        names = self.type_names
        return self.type_codes == names.index(ENDED) if ENDED in names else np.zeros(len(self), np.bool_)

    @property
    def lacks_key_text(self) -> NDArray[np.bool_]:
        """Mask of the rows whose keys are known only as hashes, such as rows of ``of_ended``."""
        lengths = pc.binary_length(shown_texts(self.columns.column("key")))
        return cast("NDArray[np.bool_]", numbers_of(lengths) == 0)

    def to_events(self) -> list[Event]:
        """Return the rows as single events, for slow paths and tests."""
        columns = self.plain.columns
        return [
            Event(id=row_id, type=row_type, time_us=time_us, key=key, data=orjson.loads(data))
            for row_id, row_type, time_us, key, data in zip(
                columns.column("id").to_pylist(),
                columns.column("type").to_pylist(),
                self.time_us.tolist(),
                columns.column("key").to_pylist(),
                columns.column("data").to_pylist(),
                strict=True,
            )
        ]

    @cached_property
    def time_us(self) -> NDArray[np.int64]:
        """Occurrence times; read-only."""
        return cast("NDArray[np.int64]", numbers_of(self.columns.column("time")))

    @cached_property
    def key_hashes(self) -> NDArray[np.uint64]:
        """Hashed correlation keys; read-only."""
        return cast("NDArray[np.uint64]", numbers_of(self.columns.column("key_hash")))

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The event types; ``type_codes`` are indices into this tuple."""
        return tuple(self.columns.column("type").dictionary.to_pylist())

    @cached_property
    def type_codes(self) -> NDArray[np.int32]:
        """Event type of each row as an index into ``type_names``; read-only."""
        return cast("NDArray[np.int32]", numbers_of(self.columns.column("type").indices))

    def slice(self, offset: int, length: int | None = None) -> EventBatch:
        """Return the rows from ``offset`` to ``offset + length``, or to the last row, without a copy."""
        size = len(self) - offset if length is None else length
        attributes = {path: column.slice(offset, size) for path, column in self.attributes.items()}
        arrivals = None if self.arrivals is None else self.arrivals[offset : offset + size]
        return EventBatch(self.columns.slice(offset, size), attributes, arrivals, self.tables)

    def slices(self, rows: int) -> Iterator[EventBatch]:
        """Split the rows into consecutive parts of at most ``rows`` rows, without a copy."""
        return (self.slice(first, rows) for first in range(0, len(self), rows))

    def take(self, rows: NDArray[np.integer[Any]]) -> EventBatch:
        """Return the given rows, in the given order."""
        places = column_of(rows)
        attributes = {path: column.take(places) for path, column in self.attributes.items()}
        return EventBatch(self.columns.take(places), attributes, self._arrivals_at(rows), self.tables)

    def numbered(self, first: int) -> EventBatch:
        """Return the batch with arrival numbers. The first row has ``first``, the next one ``first + 1``, and so on."""
        return replace(self, arrivals=np.arange(first, first + len(self), dtype=np.int64))

    def _arrivals_at(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64] | None:
        return None if self.arrivals is None else self.arrivals[rows]

    def order_by_time(self) -> NDArray[np.intp]:
        """Return row indices in the order of time. Rows of equal time are sorted by id."""
        times_us = self.time_us
        order = np.argsort(times_us, kind="stable")
        is_same = np.diff(times_us[order]) == 0
        if not is_same.any():
            return order
        tied = np.flatnonzero(
            np.append(is_same, False) | np.insert(is_same, 0, False)
        )  # places of rows that share their time with another row
        rows = order[tied]
        ids = np.array(self.columns.column("id").take(column_of(rows)).to_pylist(), np.str_)
        order[tied] = rows[np.lexsort((ids, times_us[rows]))]
        return order

    @classmethod
    def joined(cls, batches: Sequence[EventBatch]) -> EventBatch:
        """Concatenate the rows of several batches, and merge the dictionaries of their types.

        If only some batches have decoded an attribute, the attribute is null in the rows of the other batches. If only
        some batches have arrival numbers, the events of the other batches count as having arrived earlier.
        """
        if len(batches) == 1:
            return batches[0]
        table = pa.Table.from_batches([batch.plain.columns for batch in batches], schema=SCHEMA)
        columns = table.unify_dictionaries().combine_chunks().to_batches()
        kinds = {path: column.type for batch in batches for path, column in batch.attributes.items()}
        attributes = {
            path: pa.concat_arrays(
                [batch.attributes.get(path, pa.nulls(len(batch), kind)) for batch in batches if len(batch)]
            )
            for path, kind in kinds.items()
        }
        return cls(columns[0], attributes, _joined_arrivals(batches)) if columns else cls(_no_rows())

    def with_times(self, times_us: NDArray[np.int64]) -> EventBatch:
        return replace(self, columns=self.columns.set_column(2, SCHEMA.field("time"), time_column(times_us)))

    def split_by_shard(self, shards: int) -> dict[int, EventBatch]:
        """Split the rows by the shard of their keys. Shards without rows are left out.

        Rows keep their order. Decoded attributes are dropped.
        """
        homes = shard_of(self.key_hashes, shards)
        bare = replace(self, attributes={})
        return {int(shard): bare.take(np.flatnonzero(homes == shard)) for shard in np.unique(homes)}

    def keyed_by(self, path: AttributePath) -> EventBatch:
        """Return the rows with the value of an attribute as their key, such as the rows of a stream by a further key.

        Rows without a non-empty text or an integer at the path are left out. If the path depends on the event type,
        each row uses the path of its type, and a row whose type has no path is left out. Rows keep their order. Decoded
        attributes and arrival numbers are dropped.
        """
        places = [place_for(path, name) for name in self.type_names]
        keys = [
            None if (place := places[code]) is None else _key_at(orjson.loads(data), place)
            for code, data in zip(self.type_codes.tolist(), self.columns.column("data").to_pylist(), strict=True)
        ]
        rows = [row for row, key in enumerate(keys) if key is not None]
        row_keys = [key for key in keys if key is not None]
        hashes = {key: key_hash(key) for key in set(row_keys)}
        columns = self.plain.columns.take(pa.array(rows, pa.int64()))
        changed = {
            "key": pa.array(row_keys, pa.string()),
            "key_hash": pa.array([hashes[key] for key in row_keys], pa.uint64()),
        }
        arrays = [changed.get(name, columns.column(name)) for name in SCHEMA.names]
        return EventBatch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), tables=self.tables)

    def to_bytes(self) -> bytes:
        """Return the wire form: one Arrow IPC stream."""
        sink, columns = pa.BufferOutputStream(), self.plain.columns
        if self.arrivals is not None:
            arrays = [*columns.columns, column_of(self.arrivals)]
            columns = pa.RecordBatch.from_arrays(arrays, schema=_WITH_ARRIVALS)
        with pa.ipc.new_stream(sink, SCHEMA if self.arrivals is None else _WITH_ARRIVALS) as writer:
            writer.write_batch(columns)
        return cast(bytes, sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, body: bytes) -> EventBatch:
        """Read the wire form.

        Raises ``BatchFormatError`` if the bytes are damaged, have other columns, or have a version unknown to this
        release.
        """
        try:
            with pa.ipc.open_stream(body) as reader:
                if not body.startswith(_BEGINNINGS):  # comparing schemas takes longer than reading
                    _check_schema(reader.schema)
                table = reader.read_all()
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            raise BatchFormatError(f"{len(body)} bytes are not an Arrow batch: {error}") from error
        batches = table.combine_chunks().to_batches()
        columns = batches[0] if batches else _no_rows()
        if len(columns.schema) == len(SCHEMA):
            return cls(columns)
        return cls(pa.RecordBatch.from_arrays(columns.columns[:-1], schema=SCHEMA), arrivals=_read_arrivals(columns))


def _read_arrivals(columns: pa.RecordBatch) -> NDArray[np.int64]:
    column = columns.column(_ARRIVAL.name)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise BatchFormatError(f"a batch holds invalid values: {error}") from error
    numbers = cast("NDArray[np.int64]", numbers_of(column.fill_null(-1)))
    if (numbers < 0).any():
        raise BatchFormatError("a batch has nulls or numbers below 0 in the column 'arrival'")
    return numbers


def _joined_arrivals(batches: Sequence[EventBatch]) -> NDArray[np.int64] | None:
    if all(batch.arrivals is None for batch in batches):
        return None
    return np.concatenate(
        [np.zeros(len(batch), np.int64) if batch.arrivals is None else batch.arrivals for batch in batches]
    )


def hashes_of(keys: pa.Array) -> NDArray[np.uint64]:
    """Hash a column of keys; each distinct key is hashed once."""
    distinct = keys.dictionary_encode()
    hashes = np.array([key_hash(key) for key in distinct.dictionary.to_pylist()], np.uint64)
    return cast("NDArray[np.uint64]", hashes[numbers_of(distinct.indices)])


@cache
def _no_rows() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in SCHEMA], schema=SCHEMA)


def _check_schema(schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(_VERSION_KEY)
    schemas = {form.metadata[_VERSION_KEY]: form for form in (SCHEMA, _WITH_ARRIVALS)}
    if version not in schemas:
        version_text: Any = None if version is None else version.decode(errors="replace")
        raise BatchFormatError(
            f"batch format {version_text!r} is unknown; this release reads {FORMAT_VERSION} and {ARRIVALS_VERSION}",
            found=version_text,
        )
    if not schema.equals(schemas[version]):
        raise BatchFormatError(f"a batch has columns {schema.names} of other types than {schemas[version].names}")


def _key_at(attributes: object, path: Path) -> str | None:
    value = attributes
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return key_of(value)

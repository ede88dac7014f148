"""Reads tables of Arrow columns as events, a column at a time. They come from data frames, Parquet or Arrow files.

Names of columns follow the rules of CSV: ``type``, ``time`` and ``key`` are required, or the columns that the options
name instead of them, and every other column is an attribute. Members of a column ``data`` of structs are attributes
themselves, as in JSON lines. Times without a zone are in the zone of the options, or UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.batch import EventBatch
from streams.columns.arrow_columns import column_of, numbers_of
from streams.columns.json_columns import floored, json_objects, typed_values
from streams.columns.texts import shown_texts
from streams.errors import EventRejected
from streams.hashing import key_hash
from streams.keys import Path, places_of, require_place
from streams.nearest import did_you_mean, listed
from streams.readers.options import ReaderOptions
from streams.tables.mapped import slots_of
from streams.time_forms import TimeForm, microseconds_of
from streams.timestamps import EARLIEST_US, LATEST_US

_DATA = "data"
_SCALES = {"s": 1_000_000, "ms": 1_000, "us": 1}


def batch_of_table(
    table: pa.Table, options: ReaderOptions, read: Collection[str] | None = None, *, is_compact: bool = False
) -> EventBatch:
    """Read the events of a table by time. Ties are in the order of the rows.

    An event without an id gets the number of its row, from 0, as its id.

    Args:
        table: The columns.
        options: How events are read. ``key``, ``times``, ``columns``, ``clock`` and ``duplicates`` apply.
        read: Names of the needed attributes. None means all.
        is_compact: Whether ids that are numbers remain numbers, and keys a dictionary.
    """
    if not table.num_columns:  # an empty list has no columns either
        return EventBatch.from_events([])
    batch = _TableReader(table, options, read).batch()
    return batch if is_compact else batch.plain


def columns_read(names: Sequence[str], options: ReaderOptions, read: Collection[str] | None) -> list[str]:
    """Return the names of the columns that are needed for events with the attributes ``read``. None means all columns.

    If a needed name is not a column, all columns are returned, because the name may be a member of a struct. If it does
    not exist at all, this is reported later, with a list of the columns.
    """
    if read is None:
        return list(names)
    members = {options.columns.type or "type", options.columns.time or "time", *places_of(options.key or "key")}
    needed = members | set(options.columns.ids or ()) | set(read)
    return [name for name in names if name in needed or name in ("id", _DATA)] if needed <= set(names) else list(names)


@dataclass(frozen=True)
class _TableReader:
    table: pa.Table
    options: ReaderOptions
    attributes: Collection[str] | None

    def batch(self) -> EventBatch:
        types, keys = self._types, self._keys()
        hashes = column_of(np.array([key_hash(key) for key in keys.dictionary.to_pylist()], np.uint64))
        members, typed = self._attributes()
        batch = EventBatch.of_hashed(
            self._ids(),
            types,
            self._times_us(),
            (keys, numbers_of(pc.take(hashes, keys.indices, boundscheck=False))),
            json_objects(members, len(self.table)),
        )
        return self._ordered(self._distinct(replace(batch, attributes=typed)))

    def _ordered(self, batch: EventBatch) -> EventBatch:
        times_us = batch.time_us
        if not self.options.is_by_time or np.all(times_us[1:] >= times_us[:-1]):
            return batch
        return batch.take(np.argsort(times_us, kind="stable"))

    def _distinct(self, batch: EventBatch) -> EventBatch:
        if self.options.duplicates == "keep" or not self._id_names:
            return batch
        _, repeated = slots_of(shown_texts(batch.columns.column("id")))
        if repeated < 0:
            return batch
        ids = batch.columns.column("id").dictionary_encode()
        _, rows = np.unique(numbers_of(ids.indices), return_index=True)
        if self.options.on_dropped is not None:
            self.options.on_dropped(len(batch) - len(rows))
        return batch.take(np.sort(rows))

    @cached_property
    def _inner(self) -> Mapping[str, pa.Array]:
        if _DATA not in self.table.schema.names or not pa.types.is_struct(self.table.schema.field(_DATA).type):
            return {}
        column = _whole(self.table.column(_DATA))
        return {field.name: pc.struct_field(column, [field.name]) for field in column.type}

    @cached_property
    def _id_names(self) -> tuple[str, ...]:
        return self.options.columns.ids or (("id",) if "id" in self.table.schema.names else ())

    @property
    def _type_name(self) -> str:
        return self.options.columns.type or "type"

    @property
    def _time_name(self) -> str:
        return self.options.columns.time or "time"

    def _column(self, name: str, what: str) -> pa.Array:
        """Return the column with a name, or the values at a path inside structs.

        ``what`` is its purpose in error messages.
        """
        names = self.table.schema.names
        if name in names:
            return _whole(self.table.column(name))
        path = name.removeprefix(f"{_DATA}.").split(".")
        column = self._inner.get(path[0])
        if column is None and path[0] in names:
            column = _whole(self.table.column(path[0]))
        for part in path[1:]:
            is_there = column is not None and pa.types.is_struct(column.type) and column.type.get_field_index(part) >= 0
            column = pc.struct_field(column, [part]) if is_there else None
        if column is None:
            raise EventRejected(
                f"no column {name!r}{did_you_mean(name, names)} among {listed(names)}; name the column of the {what}",
                field=what,
            )
        return column

    @cached_property
    def _types(self) -> pa.DictionaryArray:
        texts = _texts(self._column(self._type_name, "type"), self._type_name, "type")
        return _encoded(_filled(texts, self._type_name, "type"))

    def _keys(self) -> pa.DictionaryArray:
        key = self.options.key or "key"
        if not isinstance(key, Mapping):
            return _encoded(_filled(_texts(self._column(key, "key"), key, "key"), key, "key"))
        places = [require_place(key, name) for name in self._types.dictionary.to_pylist()]
        codes = numbers_of(self._types.indices)
        keys = pa.nulls(len(self.table), pa.string())
        for path in places_of(key):
            is_own = np.array([place == path for place in places], np.bool_)[codes]
            if is_own.any():
                texts = _decoded(_texts(self._column(path, "key"), path, "key"))
                keys = pc.if_else(column_of(is_own), texts, keys)
        return _encoded(_filled(keys, " or ".join(places_of(key)), "key"))

    def _ids(self) -> pa.Array:
        if not self._id_names:
            if self.options.on_numbered is not None:
                for number in range(len(self.table)):
                    self.options.on_numbered(str(number))
            return column_of(np.arange(len(self.table), dtype=np.int32))
        first = self._column(self._id_names[0], "id")
        if len(self._id_names) == 1 and first.type == pa.int64() and not first.null_count:
            return first
        parts = [_decoded(_filled(_texts(self._column(name, "id"), name, "id"), name, "id")) for name in self._id_names]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ":")

    def _times_us(self) -> NDArray[np.int64]:
        if self.options.times == "line":
            return np.arange(len(self.table), dtype=np.int64)
        name = self._time_name
        column = self._column(name, "time")
        if column.null_count:
            raise _faulty(column.is_null(), name, "time")
        times_us = _times(column, name, self.options.clock)
        if len(times_us) and (times_us.min() < EARLIEST_US or times_us.max() > LATEST_US):
            outside = np.flatnonzero((times_us < EARLIEST_US) | (times_us > LATEST_US))
            raise EventRejected(f"column {name!r}, row {outside[0]}: outside the years 1 to 9999", field="time")
        return times_us

    def _attributes(self) -> tuple[list[tuple[str, pa.Array]], dict[Path, pa.Array]]:
        """Return the attributes twice: as columns for JSON objects by name, and as decoded columns by path."""
        members, typed = [], dict[Path, pa.Array]()
        for name, column in self._selected():
            values = typed_values(column)
            members.append((name, column if values is None else values))
            typed.update(_leaves((name,), column) if values is None else [((name,), values)])
        return members, typed

    def _selected(self) -> Iterator[tuple[str, pa.Array]]:
        ids = self._id_names if len(self._id_names) == 1 else ()
        members = {*ids, self._type_name, self._time_name} | ({"key"} & set(places_of(self.options.key or "key")))
        selection = self.options.columns.attributes
        top = [name for name in self.table.schema.names if name not in members and name not in self._inner]
        if self._inner:
            top.remove(_DATA)
        for name in (*top, *self._inner):
            is_chosen = selection is None or name in selection
            if is_chosen and (self.attributes is None or name in self.attributes):
                yield name, self._inner.get(name) if name in self._inner else _whole(self.table.column(name))


def _leaves(path: Path, column: pa.Array) -> Iterator[tuple[Path, pa.Array]]:
    if not pa.types.is_struct(column.type):
        return
    for field in column.type:
        inner, inner_path = pc.struct_field(column, [field.name]), (*path, field.name)
        values = typed_values(inner)
        yield from _leaves(inner_path, inner) if values is None else [(inner_path, values)]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)
    if isinstance(combined, pa.ChunkedArray):
        raise EventRejected("a column has more than 2 GiB of text; match the table in parts")
    return combined


def _texts(column: pa.Array, name: str, what: str) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string(kind.value_type):
            return column
        values = _texts(column.dictionary, name, what)
        return pa.DictionaryArray.from_arrays(column.indices, _decoded(values))
    if pa.types.is_string(kind):
        return column
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_integer(kind):
        return column.cast(pa.string())
    if pa.types.is_null(kind) or (pa.types.is_floating(kind) and not len(column)):  # a column of pandas without rows
        return column.cast(pa.string())
    raise EventRejected(
        f"column {name!r} has values of the type {kind}; the {what} of an event is a text or a whole number", field=what
    )


def _filled(texts: pa.Array, name: str, what: str) -> pa.Array:
    decoded = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
    if texts.null_count or decoded.null_count or pc.any(pc.equal(pc.binary_length(decoded), 0)).as_py():
        is_bad = pc.fill_null(pc.equal(pc.binary_length(_decoded(texts)), 0), fill_value=True)
        if pc.any(is_bad).as_py():
            raise _faulty(is_bad, name, what)
    return texts


def _faulty(is_bad: pa.Array, name: str, what: str) -> EventRejected:
    rows = np.flatnonzero(is_bad.to_numpy(zero_copy_only=False))
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return EventRejected(
        f"column {name!r}: row {rows[0]}{more}: null or empty; every event has a {what}, so fill the column or leave "
        "these rows out",
        field=what,
    )


def _encoded(texts: pa.Array) -> pa.DictionaryArray:
    """Encode texts as a dictionary without repeated texts. Some texts of the dictionary may be in no row."""
    if not pa.types.is_dictionary(texts.type):
        return texts.dictionary_encode()
    names = texts.dictionary.to_pylist()
    if texts.null_count or len(set(names)) < len(names) or not all(names):
        return texts.dictionary_decode().dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.cast(pa.int32()), texts.dictionary, safe=False)


def _decoded(texts: pa.Array) -> pa.Array:
    return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts


def _times(column: pa.Array, name: str, clock: TimeForm) -> NDArray[np.int64]:
    """Convert a column of times without nulls to microseconds since 1970.

    ``clock`` is the form of texts and numbers.
    """
    kind = column.type
    if pa.types.is_null(kind):  # no rows
        return np.zeros(0, np.int64)
    if pa.types.is_dictionary(kind):
        return _times(column.dictionary_decode(), name, clock)
    if pa.types.is_date(kind):
        return _times(column.cast(pa.timestamp("us" if pa.types.is_date32(kind) else "ms")), name, clock)
    if pa.types.is_timestamp(kind):
        return _moments(column, clock)
    if pa.types.is_integer(kind) and clock.unit != "ns" and kind != pa.uint64():
        numbers = cast("NDArray[np.int64]", numbers_of(column.cast(pa.int64())))
        return microseconds_of(numbers) if clock.unit == "auto" else numbers * _SCALES[clock.unit]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or _is_text(kind):
        return _each_time(column, name, clock)
    raise EventRejected(
        f"column {name!r} has values of the type {kind}; a time is a timestamp, a date, a text or a number",
        field="time",
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _moments(column: pa.Array, clock: TimeForm) -> NDArray[np.int64]:
    """Convert timestamps to microseconds. If the zone skips a local time or repeats it, each time is read singly."""
    times = floored(column)
    if times.type.tz is None and clock.zone is not None:
        try:
            times = pc.assume_timezone(times, clock.zone)
        except pa.ArrowInvalid:  # ambiguous or nonexistent, or an offset in place of a zone
            return _each_time(times.cast(pa.string()), "time", clock)
    return cast("NDArray[np.int64]", numbers_of(times.cast(pa.int64())))


def _each_time(column: pa.Array, name: str, clock: TimeForm) -> NDArray[np.int64]:
    form = clock if clock.zone is not None else replace(clock, zone="UTC")
    distinct = column.dictionary_encode()
    times_us = []
    for place, value in enumerate(distinct.dictionary.to_pylist()):
        try:
            times_us.append(form.read(value))
        except EventRejected as error:
            row = pc.index(distinct.indices, place).as_py()
            raise EventRejected(f"column {name!r}, row {row}: {error.message}", field="time") from error
    return np.array(times_us, np.int64).take(numbers_of(distinct.indices))

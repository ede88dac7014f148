"""A table for lookups. Its rows are one Arrow batch beside an index of the keys, both mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.columns.texts import borders_of, bytes_of, joined_texts
from streams.tables.form import VALUE_TYPES, TableForm

_FORM = b"forestall.table"
_LEAST_SLOTS = 8


@dataclass(frozen=True, eq=False)
class MappedTable:
    """The columns of a table and the index of its keys, possibly mapped from files.

    Attributes:
        keys: The keys of the rows, as ``key_texts`` returns them.
        slots: The index of the keys, described in ``streams.kernels.key_index``.
    """

    form: TableForm
    columns: Sequence[pa.Array]
    keys: pa.Array
    slots: NDArray[np.uint32]

    @classmethod
    def of_rows(cls, form: TableForm, rows: pa.RecordBatch, slots: NDArray[np.uint32]) -> Self:
        """Create a table from rows and an index (``slots``) that are mapped from files."""
        return cls(form, rows.columns[: len(form.columns)], keys_in(form, rows), slots)

    @classmethod
    def of_keys(cls, form: TableForm, columns: Sequence[pa.Array], keys: pa.Array) -> Self:
        """Create a table in memory. No key occurs twice."""
        slots, _ = slots_of(keys)
        slots.flags.writeable = False  # as in a mapped file, so that numba compiles one signature
        return cls(form, columns, keys, slots)

    @cached_property
    def _keys(self) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        return _bytes_and_borders(self.keys)

    def find(self, keys: pa.Array) -> NDArray[np.int64]:
        """Return the row index of each key, or -1 for a null or unknown key. Keys are results of ``key_texts``."""
        from streams.kernels.key_index import find_keys  # noqa: PLC0415 - loads the compiler

        rows = np.full(len(keys), -1, np.int64)
        if len(keys) and len(self.keys):
            room, selected = np.empty(len(keys), np.uint64), np.empty(len(keys), np.int64)
            find_keys(*self._keys, self.slots, *_bytes_and_borders(keys), room, selected, rows)
            if keys.null_count:
                rows[np.asarray(keys.is_null())] = -1
        return rows

    def column(self, name: str) -> pa.Array:
        return self.columns[list(self.form.columns).index(name)]


def schema_of(form: TableForm) -> pa.Schema:
    """Return the schema of a table's rows. Its metadata contains the form of the table."""
    fields = [pa.field(name, VALUE_TYPES[kind]) for name, kind in form.columns.items()]
    if not _has_own_texts(form):
        fields.append(pa.field("", pa.string()))
    return pa.schema(fields, metadata={_FORM: orjson.dumps(form.to_json())})


def form_in(schema: pa.Schema) -> TableForm:
    """Read the form of a table from the metadata of a schema that ``schema_of`` made."""
    return TableForm.from_json(orjson.loads(schema.metadata[_FORM]))


def rows_of(form: TableForm, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Build the rows of a table from its columns.

    Equal rows have equal bytes, because the bytes of nulls are replaced.
    """
    columns = [_with_plain_nulls(column) for column in columns]
    if not _has_own_texts(form):
        by_name = dict(zip(form.columns, columns, strict=True))
        columns = [*columns, key_texts([by_name[name] for name in form.key])]
    return pa.RecordBatch.from_arrays(list(columns), schema=schema_of(form))


def keys_in(form: TableForm, rows: pa.RecordBatch) -> pa.Array:
    """Return the keys of rows as ``key_texts`` returns them."""
    return rows.column(list(form.columns).index(form.key[0]) if _has_own_texts(form) else len(form.columns))


def key_texts(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the keys of rows as texts. ``parts`` are the columns of the key, of texts or whole numbers.

    A null or empty part makes the key null. JSON has one type of number, and identifiers are written as numbers or
    texts, so the number 17 is the key ``17``. In a key of several parts, each part but the last is preceded by its
    length.
    """
    texts = [part if pa.types.is_string(part.type) else part.cast(pa.string()) for part in parts]
    texts = [pc.if_else(pc.equal(pc.binary_length(text), 0), pa.scalar(None, pa.string()), text) for text in texts]
    joined = [piece for text in texts[:-1] for piece in (pc.binary_length(text).cast(pa.string()), ":", text)]
    return joined_texts([*joined, texts[-1]]) if joined else texts[0]


def slots_of(keys: pa.Array) -> tuple[NDArray[np.uint32], int]:
    """Build the index of keys. Return it with the first row whose key an earlier row has, or with -1."""
    from streams.kernels.key_index import index_keys  # noqa: PLC0415 - loads the compiler

    slots = np.zeros(max(_LEAST_SLOTS, 1 << (2 * len(keys) - 1).bit_length() if len(keys) else 0), np.uint32)
    repeated = index_keys(*_bytes_and_borders(keys), slots)
    return slots, int(repeated)


def _with_plain_nulls(column: pa.Array) -> pa.Array:
    if not column.null_count:
        return column
    plain = column.fill_null("" if pa.types.is_string(column.type) else pa.scalar(0).cast(column.type))
    return pc.if_else(column.is_valid(), plain, pa.scalar(None, column.type))


def _has_own_texts(form: TableForm) -> bool:
    """Check whether the key of a table is a single column of texts. The keys are then the column itself."""
    return len(form.key) == 1 and form.columns[form.key[0]] == "text"


def _bytes_and_borders(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the bytes of texts, and their offsets from 0. Both are read-only, so that numba compiles one signature."""
    borders = borders_of(texts)
    borders = borders if borders[0] == 0 else borders - borders[0]
    data = np.frombuffer(bytes_of(texts), np.uint8)
    data.flags.writeable = borders.flags.writeable = False
    return data, borders

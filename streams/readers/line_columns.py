"""Reads JSON lines by columns: a kernel finds the members of every line, without a Python object per line.

The result equals that of ``jsonl`` for the same file. Unusual lines are read by ``jsonl``. If one of them is invalid,
or an id is repeated, ``jsonl`` reads the whole file again, because it has the error messages.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streams.batch import SCHEMA, EventBatch
from streams.columns.arrow_columns import column_of, numbers_of, time_column
from streams.errors import EventRejected
from streams.event import Event
from streams.hashing import key_hash
from streams.kernels import json_lines as kernel
from streams.keys import place_for, places_of
from streams.readers.assembling import Assembly
from streams.readers.jsonl import BYTE_ORDER_MARK, declaration_of, read_line
from streams.readers.options import Columns, ReaderOptions
from streams.tables.mapped import slots_of
from streams.time_forms import LEAST_MICROSECONDS, LEAST_MILLISECONDS, LEAST_SECONDS, TimeForm
from streams.timestamps import EARLIEST_US, LATEST_US

_CHUNK_BYTES = 4 * 1024**2  # small, so that the next chunk reuses the memory
_MOST_UNUSUAL = 10_000  # lines of a chunk; with more, this is slower than line by line
_USUAL_CLOCKS = (TimeForm(), TimeForm(unit="us"))
_MEMBERS = {kernel.ID: b"id", kernel.TYPE: b"type", kernel.DATA: b"data", kernel.TIME: b"time"}


def read_line_columns(stream: io.BufferedReader, path: Path, options: ReaderOptions) -> EventBatch | None:
    """Read the events of a JSON lines file by columns, sorted by time. Ties stay in file order.

    Return None if the file is partly invalid or has too many unusual lines. The caller then reads it line by line.
    """
    parts = list(chunks_by_columns(stream, path, options, _CHUNK_BYTES))
    batches = [part for part in parts if part is not None]
    if len(batches) < len(parts):
        return None
    batch = EventBatch.joined(batches) if batches else EventBatch.from_events([])
    if options.duplicates == "drop" and slots_of(batch.columns.column("id"))[1] >= 0:
        return None
    times_us = batch.time_us
    if not options.is_by_time or np.all(times_us[1:] >= times_us[:-1]):
        return batch
    return batch.take(np.argsort(times_us, kind="stable"))


def chunks_by_columns(
    stream: io.BufferedReader, path: Path, options: ReaderOptions, size: int, *, without: bytes = b""
) -> Iterator[EventBatch | None]:
    """Yield the events of a JSON lines file in file order, in chunks of about ``size`` bytes. Ids may repeat.

    A longer line is read as a whole. If a chunk contains the bytes ``without`` or cannot be read by columns, None is
    the last item. The caller then reads the remaining lines one by one.
    """
    forms = {path: _line_form(path, options) for path in places_of(options.key or "key")}
    readable = {path: form for path, form in forms.items() if form is not None}
    if len(readable) < len(forms):
        yield None
        return
    reader, count = _ChunkReader(path, options, readable), 0
    for chunk in _whole_lines(stream, size):
        is_for_columns = not (without and without in chunk)
        batch = reader.read(chunk, is_first=count == 0) if is_for_columns else None
        if batch is not None and options.times == "line":
            batch = batch.with_times(np.arange(count, count + len(batch), dtype=np.int64))
        yield batch
        if batch is None:
            return
        count += len(batch)


@dataclass(frozen=True, slots=True)
class _ChunkReader:
    path: Path
    options: ReaderOptions
    forms: Mapping[str, kernel.LineForm]  # by the path of the key

    def read(self, chunk: bytes, *, is_first: bool) -> EventBatch | None:
        """Return the events of a chunk in order. Return None if its lines have to be read one by one."""
        try:
            chunk.decode()
        except UnicodeDecodeError:
            return None
        text = np.frombuffer(bytearray(chunk), np.uint8)
        lines = self._lines(text)
        if self.options.times != "line":
            is_far = (lines.times < EARLIEST_US) | (lines.times > LATEST_US)
            lines.kinds[is_far & (lines.kinds == kernel.EVENT)] = kernel.UNUSUAL
        unusual = np.flatnonzero(lines.kinds == kernel.UNUSUAL)
        odd = self._read_odd(chunk, lines, unusual, is_first=is_first) if len(unusual) <= _MOST_UNUSUAL else None
        if odd is None:
            return None
        rows = np.flatnonzero(lines.kinds == kernel.EVENT)
        usual = _batch(text, lines, rows)
        if not odd:
            return usual
        order = np.concatenate([rows, list(odd)])
        return EventBatch.joined([usual, EventBatch.from_events(list(odd.values()))]).take(np.argsort(order))

    def _lines(self, text: NDArray[np.uint8]) -> kernel.Lines:
        count, inside = int(np.count_nonzero(text == kernel.NEWLINE)), np.empty(kernel.DEEPEST, np.bool_)
        readings = {path: _room_for(count) for path in self.forms}
        for path, lines in readings.items():
            kernel.read_lines(text, self.forms[path], lines, inside)
        key = self.options.key
        return _by_type(text, readings, key) if isinstance(key, Mapping) else next(iter(readings.values()))

    def _read_odd(
        self, chunk: bytes, lines: kernel.Lines, unusual: NDArray[np.intp], *, is_first: bool
    ) -> dict[int, Event] | None:
        """Read the lines that the kernel could not read as single lines. Return their events by row.

        Return None if a line is rejected or has no id.
        """
        events: dict[int, Event] = {}
        declaration = declaration_of(self.options)
        ends = [*lines.starts[1:].tolist(), len(chunk)] if len(unusual) else []
        for row in unusual.tolist():
            text = chunk[int(lines.starts[row]) : ends[row]]
            text = (text.removeprefix(BYTE_ORDER_MARK) if is_first and row == 0 else text).strip()
            if not text:
                continue
            try:
                assembly = Assembly(self.path, self.options)
                events[row] = read_line(text, declaration, assembly)
            except EventRejected:
                return None
            if assembly.has_numbered:
                return None
        return events


def _by_type(text: NDArray[np.uint8], readings: Mapping[str, kernel.Lines], key: Mapping[str, str]) -> kernel.Lines:
    """Merge readings of the same lines that differ in the path of the key.

    Each line is taken from the reading with the key path of its event type.
    """
    first = next(iter(readings.values()))
    merged = _room_for(len(first.kinds))
    merged.starts[:] = first.starts
    merged.kinds[:] = np.where(first.kinds == kernel.BLANK, kernel.BLANK, kernel.UNUSUAL)
    for path, lines in readings.items():
        rows = np.flatnonzero(lines.kinds == kernel.EVENT)
        types = _pieces(text, lines.spans[rows, kernel.TYPE], pa.string()).dictionary_encode()
        is_own = np.array([place_for(key, name) == path for name in types.dictionary.to_pylist()], np.bool_)
        own_rows = rows[is_own[numbers_of(types.indices)]]
        merged.kinds[own_rows] = kernel.EVENT
        merged.spans[own_rows] = lines.spans[own_rows]
        merged.times[own_rows] = lines.times[own_rows]
    return merged


def _line_form(path: str, options: ReaderOptions) -> kernel.LineForm | None:
    """Return the kernel's instructions for lines with the key at a path. Return None if it cannot read such lines."""
    if options.columns != Columns() or options.clock not in _USUAL_CLOCKS or options.encoding is not None:
        return None
    first, *inside = path.split(".")
    is_inside = first == "data" and len(inside) == 1
    key = (inside[0] if is_inside else first).encode()
    if not key or (not is_inside and (inside or key in _MEMBERS.values())):
        return None
    reads_time = options.times != "line"
    members = [kernel.ID, kernel.TYPE, kernel.DATA if is_inside else kernel.KEY] + [kernel.TIME] * reads_time
    codes = [_code((_MEMBERS | {kernel.KEY: key})[place]) for place in range(kernel.OTHER)]
    return kernel.LineForm(
        codes=np.array(codes, np.uint64),
        key=np.frombuffer(bytearray(key), np.uint8),
        members=sum(1 << member for member in members),
        is_key_inside=is_inside,
        reads_time=reads_time,
        knows_unit=options.clock.unit == "us",
        least=np.array([LEAST_SECONDS, LEAST_MILLISECONDS, LEAST_MICROSECONDS], np.int64),
    )


def _code(name: bytes) -> int:
    return int.from_bytes(name[: kernel.CODE_BYTES], "little")


def _whole_lines(stream: io.BufferedReader, size: int) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(size):
        border = block.rfind(b"\n") + 1
        if border:
            yield rest + block[:border]
            rest = block[border:]
        else:
            rest += block
    if rest:
        yield rest + b"\n"


def _room_for(lines: int) -> kernel.Lines:
    return kernel.Lines(
        kinds=np.zeros(lines, np.uint8),
        spans=np.zeros((lines, kernel.N_SPANS, 2), np.int64),
        times=np.zeros(lines, np.int64),
        starts=np.zeros(lines, np.int64),
    )


def _batch(text: NDArray[np.uint8], lines: kernel.Lines, rows: NDArray[np.intp]) -> EventBatch:
    spans = lines.spans[rows] if len(rows) < len(lines.kinds) else lines.spans
    keys = _pieces(text, spans[:, kernel.KEY], pa.string())
    distinct = keys.dictionary_encode()
    hashes = np.array([key_hash(key) for key in distinct.dictionary.to_pylist()], np.uint64)
    data = _pieces(text, spans[:, kernel.DATA], pa.binary())
    if not np.all(spans[:, kernel.DATA, 1]):
        data = pc.if_else(pc.equal(pc.binary_length(data), 0), pa.scalar(b"{}"), data)
    arrays = [
        _pieces(text, spans[:, kernel.ID], pa.string()),
        _pieces(text, spans[:, kernel.TYPE], pa.string()).dictionary_encode(),
        time_column(lines.times[rows]),
        keys,
        column_of(hashes[numbers_of(distinct.indices)]),
        data,
    ]
    return EventBatch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))


def _pieces(text: NDArray[np.uint8], spans: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    offsets = np.zeros(len(spans) + 1, np.int32)
    np.cumsum(spans[:, 1] - spans[:, 0], out=offsets[1:])
    room = np.empty(int(offsets[-1]), np.uint8)
    kernel.copy_spans(text, np.ascontiguousarray(spans), offsets, room)
    return pa.Array.from_buffers(kind, len(spans), [None, pa.py_buffer(offsets), pa.py_buffer(room)])

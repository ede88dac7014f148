"""Splits a JSON lines file into parts for parallel readers."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import orjson

from streams.forms.extent import decode_json
from streams.forms.parsing import MISSING, read_path
from streams.readers.jsonl import BYTE_ORDER_MARK
from streams.readers.options import ReaderOptions
from streams.readers.raw_rows import kind_of

LEAST_BYTES = 4 * 1024**2


def line_spans(path: Path, options: ReaderOptions, parts: int) -> list[tuple[int, int]]:
    """Divide a file into parts of about equal size, and return begin and end of each part in bytes.

    Every part has whole lines. There are at most ``parts`` consecutive spans, and fewer if a span would have less than
    ``LEAST_BYTES``. There are none if the file has to be read as a whole. This is so if it is not JSON lines, is
    compressed, is larger than allowed, or has events that get their ids or times from their order.
    """
    if kind_of(path) != "jsonl" or path.suffix.lower() == ".gz" or options.times == "line" or options.encoding:
        return []
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            count = min(parts, size // LEAST_BYTES)
            if size > options.max_bytes or count < 2 or not _has_id(stream, options):
                return []
            inside = {_next_line(stream, size * number // count) for number in range(1, count)}
    except OSError:
        return []  # the reader reports the error
    return list(pairwise(sorted({0, size} | inside)))


def _has_id(stream: io.BufferedReader, options: ReaderOptions) -> bool:
    stream.seek(0)
    try:
        line = decode_json(stream.readline().removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError:
        return True
    path = options.columns.ids or ("id",)
    return not isinstance(line, Mapping) or read_path(line, path[0]) is not MISSING


def _next_line(stream: io.BufferedReader, place: int) -> int:
    """Return the byte offset of the first line that begins after ``place``, or the file's size if there is none."""
    stream.seek(place)
    stream.readline()
    while True:
        begin = stream.tell()
        if stream.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:  # otherwise a span would seem to begin with a mark
            return begin
        stream.readline()

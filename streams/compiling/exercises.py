"""Exercises that call kernels for reading events and for looking up rows of tables (``streams.compiling``)."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa

from streams.readers.line_columns import read_line_columns
from streams.readers.options import ReaderOptions
from streams.tables.form import TableForm
from streams.tables.mapped import MappedTable

_LINES = b"""{"id":"1","type":"A","time":"2026-01-01T00:00:00Z","key":"k","data":{"v":1}}
{"id":"2","type":"B","time":"2026-01-01T00:00:01Z","key":"k","data":{"v":2}}
"""


def lookups() -> None:
    """Call the kernels that look up keys in reference tables (an exercise, see ``streams.compiling``)."""
    columns = [pa.array(["a", "b"])]
    table = MappedTable.of_keys(TableForm(columns={"k": "text"}, key=("k",)), columns, columns[0])
    table.find(pa.array(["b"]))


def json_lines() -> None:
    """Call the kernels that read JSON lines by columns (an exercise, see ``streams.compiling``)."""
    read_line_columns(io.BufferedReader(io.BytesIO(_LINES)), Path("exercise.jsonl"), ReaderOptions())

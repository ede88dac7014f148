"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .files import read_batch, read_events, reads_by_columns
from .mapped_rows import RawRow, mapped_row
from .one_by_one import iterate_batches, iterate_events
from .opening import encoding_of
from .options import Columns, Progress, ReaderOptions, key_in_files, reading_of
from .raw_rows import FILE_KINDS, RowLayout, kind_of, raw_rows
from .spans import line_spans
from .table_columns import batch_of_table

__all__ = [
    "FILE_KINDS",
    "Columns",
    "Progress",
    "RawRow",
    "ReaderOptions",
    "RowLayout",
    "batch_of_table",
    "encoding_of",
    "iterate_batches",
    "iterate_events",
    "key_in_files",
    "kind_of",
    "line_spans",
    "mapped_row",
    "raw_rows",
    "read_batch",
    "read_events",
    "reading_of",
    "reads_by_columns",
]

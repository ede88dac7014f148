"""Exports of the package; `__init__.py` loads each name at its first use."""

from .files import (
    read_batch as read_batch,
    read_events as read_events,
    reads_by_columns as reads_by_columns,
    unread_members as unread_members,
)
from .mapped_rows import RawRow as RawRow, RowLayout as RowLayout, mapped_row as mapped_row
from .one_by_one import iterate_batches as iterate_batches, iterate_events as iterate_events
from .opening import encoding_of as encoding_of
from .options import (
    Columns as Columns,
    ReaderOptions as ReaderOptions,
    key_in_files as key_in_files,
    reading_of as reading_of,
)
from .raw_rows import FILE_KINDS as FILE_KINDS, kind_of as kind_of, raw_rows as raw_rows
from .spans import line_spans as line_spans
from .table_columns import batch_of_table as batch_of_table, columns_read as columns_read

"""Event files: JSON lines, CSV and XES, each also gzipped; row by row also Parquet.

Purpose: turn a file into events in order of time. Promises: events with equal times keep the order of the file, an
event with a repeated id is dropped, a damaged file is rejected with its name and the place, and nothing is read beyond
a stated size.
"""

from streams.readers.files import read_batch, read_events, reads_by_columns
from streams.readers.mapped_rows import RawRow, mapped_row
from streams.readers.one_by_one import iterate_batches, iterate_events
from streams.readers.opening import encoding_of
from streams.readers.options import Columns, Progress, ReaderOptions, key_in_files, reading_of
from streams.readers.raw_rows import FILE_KINDS, RowLayout, kind_of, raw_rows
from streams.readers.spans import line_spans

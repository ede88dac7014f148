"""Event files: JSON lines, CSV and XES, each also gzipped.

Purpose: turn a file into events in the order of time. Promises: events with equal times keep the order of the file,
ids are unique, a damaged file is refused with its name and the place, and nothing is read beyond a stated size.
"""

from streams.readers.files import read_events
from streams.readers.options import Progress, ReaderOptions

__all__ = ["Progress", "ReaderOptions", "read_events"]

"""Event files: JSON lines, CSV and XES, each also gzipped; Parquet and Arrow.

Purpose: turn a file into events in order of time. Promises: events with equal times keep the order of the file, an
event with a repeated id is dropped, a damaged file is rejected with its name and the place, and nothing is read beyond
a stated size.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

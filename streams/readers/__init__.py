"""Event files: JSON lines, CSV and XES, each also gzipped; Parquet and Arrow.

Purpose: turn a file into events in the order of time.

Promises: events with equal times keep the order of the file. An event with a repeated id is dropped. A damaged file is
rejected, with its name and the place of the damage. Nothing is read beyond a declared size.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

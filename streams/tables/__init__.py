"""Reference tables: rows of values by key. Rows are read from files, and stored as Arrow under a digest.

``reading`` turns CSV, JSON lines and Parquet into the file of a table. ``files`` keeps such files in the cache folder
of this machine, ``mapped`` searches a file, and ``current`` has the tables at a position of the log. The package does
not know which process stores tables, or which operators look up their rows.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

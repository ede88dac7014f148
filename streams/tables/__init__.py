"""Reference tables: rows of values by key, read from files, stored as Arrow by the digest of their content.

``reading`` turns CSV, JSON lines and Parquet into the file of a table, ``files`` keeps such files in the cache folder
of this machine, ``mapped`` searches one, and ``current`` is the tables of a place of the log. The package does not know
who stores tables, or what looks them up.
"""

from streams.tables.current import Tables as Tables
from streams.tables.current import require_lookup as require_lookup
from streams.tables.errors import TableColumnUnknown as TableColumnUnknown
from streams.tables.errors import TableMissing as TableMissing
from streams.tables.errors import TableRefused as TableRefused
from streams.tables.errors import TableUnknown as TableUnknown
from streams.tables.files import STORED as STORED
from streams.tables.files import TableFiles as TableFiles
from streams.tables.files import fetching as fetching
from streams.tables.files import pieces_of_file as pieces_of_file
from streams.tables.form import VALUE_TYPES as VALUE_TYPES
from streams.tables.form import Lookup as Lookup
from streams.tables.form import TableForm as TableForm
from streams.tables.form import TableVersion as TableVersion
from streams.tables.form import TableWish as TableWish
from streams.tables.form import ValueType as ValueType
from streams.tables.mapped import MappedTable as MappedTable
from streams.tables.reading import MEDIA_TYPES as MEDIA_TYPES
from streams.tables.reading import TableFormat as TableFormat
from streams.tables.reading import TableLimits as TableLimits
from streams.tables.reading import format_of as format_of
from streams.tables.reading import keep_rows as keep_rows
from streams.tables.reading import keep_table as keep_table
from streams.tables.reading import media_type_of as media_type_of
from streams.tables.reading import read_row as read_row

"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .current import Tables, require_lookup
from .errors import TableColumnUnknown, TableMissing, TableRefused, TableUnknown
from .files import STORED, TableFiles, fetching, pieces_of_file
from .form import VALUE_TYPES, Lookup, TableForm, TableVersion, TableWish, ValueType
from .mapped import MappedTable
from .reading import MEDIA_TYPES, TableFormat, TableLimits, format_of, keep_rows, keep_table, media_type_of, read_row

__all__ = [
    "MEDIA_TYPES",
    "STORED",
    "VALUE_TYPES",
    "Lookup",
    "MappedTable",
    "TableColumnUnknown",
    "TableFiles",
    "TableForm",
    "TableFormat",
    "TableLimits",
    "TableMissing",
    "TableRefused",
    "TableUnknown",
    "TableVersion",
    "TableWish",
    "Tables",
    "ValueType",
    "fetching",
    "format_of",
    "keep_rows",
    "keep_table",
    "media_type_of",
    "pieces_of_file",
    "read_row",
    "require_lookup",
]

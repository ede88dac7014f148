"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .business import NEVER, OPENS, PREFIX, BusinessHours, title_of
from .calendars import Calendar, document_of, keep_calendar, read_calendar
from .current import OpenTable, Tables, require_lookup
from .errors import CalendarRefused, CalendarUnknown, TableColumnUnknown, TableMissing, TableRefused, TableUnknown
from .files import STORED, TableFiles, fetching, pieces_of_file
from .form import VALUE_TYPES, Lookup, TableForm, TableVersion, TableWish, ValueType
from .mapped import MappedTable
from .reading import MEDIA_TYPES, TableFormat, TableLimits, format_of, keep_rows, keep_table, media_type_of, read_row

__all__ = [
    "MEDIA_TYPES",
    "NEVER",
    "OPENS",
    "PREFIX",
    "STORED",
    "VALUE_TYPES",
    "BusinessHours",
    "Calendar",
    "CalendarRefused",
    "CalendarUnknown",
    "Lookup",
    "MappedTable",
    "OpenTable",
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
    "document_of",
    "fetching",
    "format_of",
    "keep_calendar",
    "keep_rows",
    "keep_table",
    "media_type_of",
    "pieces_of_file",
    "read_calendar",
    "read_row",
    "require_lookup",
    "title_of",
]

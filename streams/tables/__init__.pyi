"""Exports of the package; `__init__.py` loads each name at its first use."""

from .business import (
    NEVER as NEVER,
    OPENS as OPENS,
    PREFIX as PREFIX,
    BusinessHours as BusinessHours,
    title_of as title_of,
)
from .calendars import (
    Calendar as Calendar,
    document_of as document_of,
    keep_calendar as keep_calendar,
    read_calendar as read_calendar,
)
from .current import (
    OpenTable as OpenTable,
    Tables as Tables,
    require_lookup as require_lookup,
    require_table as require_table,
)
from .errors import (
    CalendarRefused as CalendarRefused,
    CalendarUnknown as CalendarUnknown,
    TableColumnUnknown as TableColumnUnknown,
    TableMissing as TableMissing,
    TableRefused as TableRefused,
    TableUnknown as TableUnknown,
)
from .files import (
    STORED as STORED,
    TableFiles as TableFiles,
    fetching as fetching,
    piece_count as piece_count,
    pieces_of_file as pieces_of_file,
)
from .form import (
    VALUE_TYPES as VALUE_TYPES,
    Lookup as Lookup,
    TableForm as TableForm,
    TableVersion as TableVersion,
    TableDeclaration as TableDeclaration,
    ValueType as ValueType,
)
from .mapped import MappedTable as MappedTable
from .reading import (
    MEDIA_TYPES as MEDIA_TYPES,
    TableFormat as TableFormat,
    TableLimits as TableLimits,
    format_of as format_of,
    keep_named as keep_named,
    keep_rows as keep_rows,
    keep_table as keep_table,
    media_type_of as media_type_of,
    read_row as read_row,
)

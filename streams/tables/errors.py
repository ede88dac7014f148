"""Errors of reference tables: branches of ``StreamError`` and ``StateLost``."""

from __future__ import annotations

from streams.errors import StateLost, StreamError


class TableRefused(StreamError, code="table-refused"):
    """The rows, the columns or the key of a table are refused; details carry ``line`` and ``column`` if known."""


class CalendarRefused(StreamError, code="calendar-refused"):
    """The declaration of a calendar is refused; details carry ``field``, and ``line`` of an iCalendar text."""


class TableUnknown(StreamError, code="table-unknown"):
    """A table is named that does not exist; the message lists those that do."""


class CalendarUnknown(TableUnknown, code="calendar-unknown"):
    """A calendar is named that does not exist; the message lists those that do."""


class TableColumnUnknown(StreamError, code="table-column-unknown"):
    """A column is named that the table does not have, or the number of keys is not the table's."""


class TableMissing(StateLost, code="table-missing"):
    """The content of a table is neither in the cache folder nor in the store."""

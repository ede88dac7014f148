"""Errors of reference tables, derived from ``StreamError`` and ``StateLost``."""

from __future__ import annotations

from streams.errors import StateLost, StreamError


class TableRefused(StreamError, code="table-refused"):
    """The rows, the columns or the key of a table are refused; the details have ``line`` and ``column`` if known."""


class CalendarRefused(StreamError, code="calendar-refused"):
    """The declaration of a calendar is refused; the details have ``field``, and ``line`` for an iCalendar text."""


class TableUnknown(StreamError, code="table-unknown"):
    """No table has the given name; the message lists the existing tables."""


class CalendarUnknown(TableUnknown, code="calendar-unknown"):
    """No calendar has the given name; the message lists the existing calendars."""


class TableColumnUnknown(StreamError, code="table-column-unknown"):
    """The table has no column of the given name, or the lookup has a wrong number of keys."""


class TableMissing(StateLost, code="table-missing"):
    """The content of a table is neither in the cache folder nor in the store."""

"""Access to the members of a control record's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.errors import ControlRecordError
from streams.log.records import RecordKind
from streams.timestamps import EARLIEST_US, LATEST_US


class Members:
    """The members of a record's body, read one by one; errors name the record and the member."""

    def __init__(self, kind: RecordKind, found: Mapping[str, Any]) -> None:
        self._kind = kind
        self._found = found

    def __contains__(self, name: str) -> bool:
        return name in self._found

    @property
    def all(self) -> Mapping[str, Any]:
        """All members."""
        return self._found

    def get(self, name: str) -> Any:
        """The raw value of a member; None if it is missing."""
        return self._found.get(name)

    def text(self, name: str) -> str:
        """A non-empty text."""
        value = self.get(name)
        if not isinstance(value, str) or not value:
            raise self.error(name, f"{name} is {value!r}; it must be a non-empty string")
        return value

    def version(self) -> int:
        """The member ``version``, a number from 1."""
        value = self.get("version")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error("version", f"version is {value!r}; it must be a number from 1")
        return value

    def count(self, name: str) -> int:
        """A whole number from 0."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error(name, f"{name} is {value!r}; it must be a whole number from 0")
        return value

    def time_us(self, name: str) -> int | None:
        """A time in microseconds UTC, or None."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST_US <= value <= LATEST_US:
            raise self.error(name, f"{name} is {value!r}; it must be microseconds UTC in the years 1 to 9999")
        return value

    def choice(self, name: str, known: Sequence[str]) -> str:
        """One of the known words; the first if the member is missing."""
        value = self._found.get(name, known[0])
        if value not in known:
            raise self.error(name, f"{name} is {value!r}; it must be {' or '.join(map(repr, known))}")
        return str(value)

    def json_object(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self.get(name)
        if not isinstance(value, dict):
            raise self.error(name, f"{name} is not a JSON object")
        return value

    def error(self, name: str, what: str) -> ControlRecordError:
        """An error that names the record."""
        return ControlRecordError(f"{self._kind.value} record: {what}", field=name)

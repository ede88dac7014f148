"""The members of a control record's body: how each member is read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Self, cast, get_type_hints

from streams.errors import ControlRecordError
from streams.log.records import CLOSED_US, RecordKind
from streams.timestamps import EARLIEST_US, LATEST_US


class Members:
    """The members of a control record's body, read one by one with checks.

    Errors name the kind of record and the member.
    """

    def __init__(self, kind: RecordKind, values: Mapping[str, Any]) -> None:
        self.kind = kind
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def all(self) -> Mapping[str, Any]:
        return self._values

    def get(self, name: str) -> Any:
        """Return the value of a member without a check, or None if it is missing."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """Read a non-empty text."""
        value = self.get(name)
        if not isinstance(value, str) or not value:
            raise self.error(name, f"{name} is {value!r}; it must be a non-empty string")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Read a non-empty text, or None if the member is missing."""
        return None if self.get(name) is None else self.text(name)

    def version(self, name: str) -> int:
        """Read a whole number of at least 1."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(name, f"{name} is {value!r}; it must be a number from 1")
        return value

    def count(self, name: str) -> int:
        """Read a whole number of at least 0."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error(name, f"{name} is {value!r}; it must be a whole number from 0")
        return value

    def time_us(self, name: str) -> int | None:
        """Read a time in microseconds UTC, or None if the member is missing."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST_US <= value <= LATEST_US:
            raise self.error(name, f"{name} is {value!r}; it must be microseconds UTC in the years 1 to 9999")
        return value

    def known_time_us(self, name: str) -> int:
        value = self.time_us(name)
        if value is None:
            raise self.error(name, f"{name} is None; it must be microseconds UTC")
        return value

    def reached_us(self, name: str) -> int:
        """Read a time in microseconds UTC, or the time of a closing tick."""
        value = self.get(name)
        return value if isinstance(value, int) and value >= CLOSED_US else self.known_time_us(name)

    def choice(self, name: str, known: Sequence[str]) -> str:
        """Read one of the ``known`` texts. If the member is missing, return the first of them."""
        value = self._values.get(name, known[0])
        if value not in known:
            raise self.error(name, f"{name} is {value!r}; it must be {' or '.join(map(repr, known))}")
        return str(value)

    def json_object(self, name: str) -> dict[str, Any]:
        value = self.get(name)
        if not isinstance(value, dict):
            raise self.error(name, f"{name} is not a JSON object")
        return value

    def error(self, name: str, what: str) -> ControlRecordError:
        """Return an error about the member ``name``. ``what`` is the fault in words."""
        return ControlRecordError(f"{self.kind.value} record: {what}", field=name)


@dataclass(frozen=True, slots=True)
class Member:
    """Annotation of a field of a ``Body``: how the field is read from JSON and written to it.

    Attributes:
        read: Function that reads the member of a given name.
        write: Function that converts the value to plain JSON. None means that the value is plain JSON already.
        name: Name of the member in the body. If it is empty, the member has the name of the field.
        is_sparse: Whether the member is left out if it has the default of its field.
    """

    read: Callable[[Members, str], Any]
    write: Callable[[Any], Any] | None = None
    name: str = ""
    is_sparse: bool = False


def choice_of(*known: str) -> Callable[[Members, str], str]:
    """Return a function that reads a member with ``Members.choice``, for use in a ``Member``."""
    return lambda members, name: members.choice(name, known)


class Body:
    """Base class of dataclasses that are stored as JSON objects. Fields are annotated with a ``Member``.

    A missing member has the field's default.
    """

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        members = {}
        for field, name, member in _members_of(cast(Any, type(self))):
            value = getattr(self, field.name)
            if not member.is_sparse or value != field.default:
                members[name] = value if member.write is None else member.write(value)
        return members

    @classmethod
    def from_json(cls, members: Members) -> Self:
        """Read the members that ``to_json`` writes. Raises ``ControlRecordError`` if one is missing or malformed."""
        kind: Any = cls
        values = {
            field.name: member.read(members, name)
            for field, name, member in _members_of(kind)
            if name in members or (field.default is MISSING and field.default_factory is MISSING)
        }
        body: Self = kind(**values)
        return body


@cache
def _members_of(body: Any) -> Sequence[tuple[Any, str, Member]]:
    hints = get_type_hints(body, include_extras=True)
    members = ((field, hints[field.name].__metadata__[0]) for field in fields(body))
    return [(field, member.name or field.name, member) for field, member in members]

"""Paths of keys in events: one path for all types, or a path for each type.

``data.id`` is one path. ``{"Payment": "data.ref", "Shipment": "data.order", "*": "data.id"}`` has a path for payments,
one for shipments, and one for every other type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from streams.errors import DeclarationError, EventRejected
from streams.nearest import listed
from streams.showing import shown

KeyForm: TypeAlias = str | Mapping[str, str]
"""One path, or a path by event type."""
Path: TypeAlias = tuple[str, ...]
AttributePath: TypeAlias = Path | Mapping[str, Path]
"""The parts of an attribute path, or of a path by event type."""

OTHER_TYPES = "*"
_ELEMENT = re.compile(r"\[(0|-?[1-9][0-9]{0,8})\]")
_ATTRIBUTES = "data."
_Place = TypeVar("_Place", str, int, Path)


def inner_value(value: object, name: str) -> Any:
    """Return a member of a JSON object, or a list element by a name such as ``[0]``. Return None if it is missing."""
    if isinstance(value, Mapping):
        return value.get(name)
    if not isinstance(value, list) or not is_element(name):
        return None
    place = int(name[1:-1])
    return value[place] if -len(value) <= place < len(value) else None


def is_element(name: str) -> bool:
    """Return whether a name in a path is the index of a list element, such as ``[0]``."""
    return _ELEMENT.fullmatch(name) is not None


def place_for(key: _Place | Mapping[str, _Place], event_type: str) -> _Place | None:
    """Return the path of a key for events of a type, or None if no path is declared for the type."""
    if not isinstance(key, Mapping):
        return key
    return key.get(event_type, key.get(OTHER_TYPES))


def require_place(key: _Place | Mapping[str, _Place], event_type: str) -> _Place:
    """Return the path of a key for events of a type. Raises ``EventRejected`` if none is declared for the type."""
    place = place_for(key, event_type)
    if place is None:
        declared = listed(list(key)) if isinstance(key, Mapping) else ""
        raise EventRejected(
            f"an event of the type {shown(event_type)} has no correlation key here; the key is declared for the types "
            f"{declared}, and not for other types ('{OTHER_TYPES}')",
            field="type",
        )
    return place


def places_of(key: _Place | Mapping[str, _Place]) -> tuple[_Place, ...]:
    """Return all paths of a key, each once."""
    return tuple(dict.fromkeys(key.values())) if isinstance(key, Mapping) else (key,)


def key_text(key: KeyForm) -> str:
    """Describe a key in words, such as ``data.ref (Payment) or data.id (other types)``."""
    if not isinstance(key, Mapping):
        return key
    return " or ".join(f"{path} ({'other types' if name == OTHER_TYPES else name})" for name, path in key.items())


def key_json(key: KeyForm) -> str | dict[str, str]:
    """Return a key in its JSON form."""
    return dict(key) if isinstance(key, Mapping) else key


def key_form(value: object, what: str, field: str) -> KeyForm:
    """Read a key from a JSON value: a path, or an object of paths. ``what`` names the key in error messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return dict(value)
    raise DeclarationError(f"{what} is a path, or an object of paths by event type, got {shown(value)}", field=field)


def key_names(key: KeyForm) -> tuple[Path, ...]:
    """Return the names of a key in conditions: its paths as declared, and its paths without the prefix ``data``."""
    names = (name for path in places_of(key) for name in (path.removeprefix(_ATTRIBUTES), path))
    return tuple(_parts(name) for name in dict.fromkeys(names))


def attribute_path(key: KeyForm) -> AttributePath:
    """Return the path of a key within the attributes of events, without ``data`` in front.

    If the key depends on the event type, return a path for each type.
    """
    if isinstance(key, Mapping):
        return {name: _parts(path.removeprefix(_ATTRIBUTES)) for name, path in key.items()}
    return _parts(key.removeprefix(_ATTRIBUTES))


def key_fault(key: KeyForm, event_types: tuple[str, ...]) -> str | None:
    """Return the fault of a key as text, or None if the key is valid. A key with a single path is always valid.

    If ``event_types`` is empty, every type is allowed.
    """
    if not isinstance(key, Mapping):
        return None
    if not key or "" in key:
        return "needs a path for each event type that it names, and names at least one; '*' is any other type"
    if event_types and (strangers := sorted(set(key) - {OTHER_TYPES, *event_types})):
        return f"has paths for {', '.join(strangers)}, which are not among the event types of the stream"
    return None


def _parts(path: str) -> Path:
    return tuple(path.split("."))


def members_of(key: KeyForm) -> set[str]:
    """Return the paths of a key that name a member of the event itself, such as ``subject``, and not an attribute."""
    return {path for path in places_of(key) if not path.startswith(_ATTRIBUTES)}

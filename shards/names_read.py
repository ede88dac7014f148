"""The names in an operator's document that refer to events, for notices about misspellings."""

from __future__ import annotations

from typing import NamedTuple


class NameRead(NamedTuple):
    """The names that one member of an operator's document reads: event types of a stream, or the path of an attribute.

    Attributes:
        field: The member of the document, in words.
        types: The event types that the member names. With a path: the types of the events that have the attribute, or
            empty for events of any type.
        path: The path of the attribute. Empty if the member names event types.
    """

    field: str
    stream: str
    types: tuple[str, ...]
    path: tuple[str, ...] = ()

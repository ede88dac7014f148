"""The declaration of a stream: how its events are read and when its traces end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from streams.errors import DeclarationError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMapping:
    """Where a plain JSON object keeps what an event needs: dotted paths, such as ``order.id``.

    ``data`` is the path of the attributes object; the whole object, when it is absent.
    """

    id: str = "id"
    type: str = "type"
    time: str = "time"
    data: str | None = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDeclaration:
    """A stream, declared once.

    Attributes:
        name: Letters, digits, ``.``, ``_``, ``-``; at most 100.
        key: Path of the correlation key: ``subject`` or ``data.<path>`` in a CloudEvent, any path in plain JSON.
        event_types: The types that may come; empty means any. Others are dead-lettered.
        end_events: Types that end a trace.
        mapping: How plain JSON objects are read.
    """

    name: str
    key: str = "subject"
    event_types: tuple[str, ...] = ()
    end_events: tuple[str, ...] = ()
    mapping: FieldMapping = field(default_factory=FieldMapping)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"stream name {self.name!r}: use 1 to 100 letters, digits, '.', '_' or '-', "
                "beginning with a letter or digit",
                field="name",
            )
        if not self.key:
            raise DeclarationError(f"stream {self.name!r}: the path of the correlation key is empty", field="key")
        unknown = sorted(set(self.end_events) - set(self.event_types)) if self.event_types else []
        if unknown:
            raise DeclarationError(
                f"stream {self.name!r}: end events {', '.join(unknown)} are not among its event types",
                field="end_events",
            )

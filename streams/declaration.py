"""The declaration of a stream: how its events are read and when its traces end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias, cast, get_args

from streams.errors import DeclarationError
from streams.showing import shown

Ties: TypeAlias = Literal["log", "simultaneous"]

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
        ties: What events of one time are: ordered as in the log, or not ordered at all.
        mapping: How plain JSON objects are read.
    """

    name: str
    key: str = "subject"
    event_types: tuple[str, ...] = ()
    end_events: tuple[str, ...] = ()
    ties: Ties = "log"
    mapping: FieldMapping = field(default_factory=FieldMapping)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"stream name {self.name!r}: use 1 to 100 letters, digits, '.', '_' or '-', "
                "beginning with a letter or digit",
                field="name",
            )
        _check_path(self.name, "the correlation key", self.key, "key")
        for part in fields(FieldMapping):
            if (path := getattr(self.mapping, part.name)) is not None:
                _check_path(self.name, f"{part.name!r} in the mapping", path, "mapping")
        unknown = sorted(set(self.end_events) - set(self.event_types)) if self.event_types else []
        if unknown:
            raise DeclarationError(
                f"stream {self.name!r}: end events {', '.join(unknown)} are not among its event types",
                field="end_events",
            )

    @property
    def key_paths(self) -> tuple[tuple[str, ...], ...]:
        """What ``WHERE [..]`` may call the correlation key, besides ``key``: the path, also without ``data``."""
        own = self.key.removeprefix("data.")
        return tuple(tuple(path.split(".")) for path in dict.fromkeys((own, self.key)))

    def to_json(self) -> dict[str, Any]:
        """The declaration as a plain JSON object; as it is stored; ``ties`` is there unless it is ``log``."""
        return {
            "name": self.name,
            "key": self.key,
            "event_types": list(self.event_types),
            "end_events": list(self.end_events),
            "mapping": asdict(self.mapping),
            **({} if self.ties == "log" else {"ties": self.ties}),
        }

    @classmethod
    def from_json(cls, value: object) -> StreamDeclaration:
        """The declaration that a plain JSON object stands for; absent members take their defaults.

        Raises:
            DeclarationError: It is no object, a member is missing or of the wrong type, or they contradict each other.
        """
        if not isinstance(value, Mapping):
            raise DeclarationError(f"a stream declaration is a JSON object, got {shown(value)}")
        return cls(
            name=_text(value, "name", None),
            key=_text(value, "key", "subject"),
            event_types=_texts(value, "event_types"),
            end_events=_texts(value, "end_events"),
            ties=_ties(value.get("ties", "log")),
            mapping=_mapping(value.get("mapping", {})),
        )


def _check_path(stream: str, what: str, path: str, place: str) -> None:
    if not all(path.split(".")):
        raise DeclarationError(
            f"stream {stream!r}: the path {path!r} of {what} has an empty part; write names joined by single dots, "
            "such as data.order.id",
            field=place,
        )


def _ties(value: object) -> Ties:
    for known in get_args(Ties):
        if value == known:
            return cast("Ties", known)
    raise DeclarationError(
        f"'ties' of a stream declaration is {shown(value)}; write {' or '.join(get_args(Ties))}", field="ties"
    )


def _mapping(value: object) -> FieldMapping:
    if not isinstance(value, Mapping):
        raise DeclarationError(f"'mapping' is a JSON object of paths, got {shown(value)}", field="mapping")
    known = {part.name for part in fields(FieldMapping)}
    if strangers := sorted(str(name) for name in value if name not in known):
        raise DeclarationError(
            f"'mapping' has {', '.join(strangers)}; it takes {', '.join(sorted(known))}", field="mapping"
        )
    paths = {name: _text(value, name, None) for name in value if name != "data"}
    data = value.get("data", FieldMapping().data)
    return FieldMapping(**paths, data=None if data is None else _text(value, "data", data))


def _text(value: Mapping[str, Any], name: str, default: str | None) -> str:
    found = value.get(name, default)
    if not isinstance(found, str):
        raise DeclarationError(f"{name!r} of a stream declaration is a text, got {shown(found)}", field=name)
    return found


def _texts(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = value.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise DeclarationError(f"{name!r} of a stream declaration is a list of texts, got {shown(found)}", field=name)
    return tuple(found)

"""The declaration of a stream: how its events are read and when its traces end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast, get_args

from streams.errors import DeclarationError
from streams.event_time import TimedStream, check_event_time, event_time_json, event_time_members
from streams.keys import (
    AttributePath,
    KeyForm,
    Path,
    attribute_path,
    key_fault,
    key_form,
    key_json,
    key_names,
    key_text,
    place_for,
    places_of,
)
from streams.showing import shown
from streams.time_forms import TimeForm

Ties: TypeAlias = Literal["log", "simultaneous"]
Duplicates: TypeAlias = Literal["drop", "keep"]
ColumnType: TypeAlias = Literal["text", "number", "boolean"]

_OF_CLOCK = {"time_unit": "unit", "zone": "zone", "time_format": "format", "local_times": "local_times"}
_PLACES = ("id", "type", "time", "data")
_WORDS = ("type", "time", "time_unit", "zone", "time_format", "local_times", "delimiter", "encoding")
_IN_MAPPING = (*_PLACES, *_WORDS[2:], "columns")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NAME_RULE = "use 1 to 100 letters, digits, '.', '_' or '-', beginning with a letter or digit"
_KEY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_MOST_DESCRIBED = 4_000
_NOT_DERIVED = ("key", "keys", "lateness", "late", "quiet_after", "max_ahead", "mapping", "duplicates")

CHANGEABLE = ("lateness", "late", "idle_timeout", "quiet_after", "max_ahead", "end_events", "description")
"""Members of a declaration that can be changed later. The others decide how events in the log were read."""


def name_fault(what: str, name: str) -> str | None:
    """Return the fault of a name in words, or None if it is valid.

    A valid name has at most 100 letters, digits, ``.``, ``_`` and ``-``. ``what`` is the kind of the named object, such
    as a stream.
    """
    return None if _NAME.fullmatch(name) else f"{what} name {name!r}: {_NAME_RULE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMapping:
    """Where the members of an event are in a plain JSON object or in a row of a file, and how they are written.

    Attributes:
        id: Path of the event's id, such as ``order.id``. The values at several paths are joined to one id by colons.
        data: Path of the attributes object. None means the whole object.
        delimiter: Separator of the columns of CSV. None means that it is detected.
        encoding: Encoding of files. None means UTF-8, or UTF-16 with a byte order mark.
        columns: Types of CSV columns by column name. The types of other columns follow from their values.
    """

    id: str | tuple[str, ...] = "id"
    type: str = "type"
    time: str = "time"
    data: str | None = "data"
    clock: TimeForm = field(default_factory=TimeForm)
    delimiter: str | None = None
    encoding: str | None = None
    columns: Mapping[str, ColumnType] = field(default_factory=dict)

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        ids = (self.id,) if isinstance(self.id, str) else self.id
        return {"id": ids, "type": (self.type,), "time": (self.time,), "data": (self.data,) if self.data else ()}

    def to_json(self) -> dict[str, Any]:
        """Return the mapping as plain JSON. Most members are left out if they have their default values."""
        event_id = self.id if isinstance(self.id, str) else list(self.id)
        clock, usual = self.clock, TimeForm()
        return {
            "id": event_id,
            "type": self.type,
            "time": self.time,
            "data": self.data,
            **({} if clock.unit == usual.unit else {"time_unit": clock.unit}),
            **({} if clock.zone is None else {"zone": clock.zone}),
            **({} if clock.format is None else {"time_format": clock.format}),
            **({} if clock.local_times == usual.local_times else {"local_times": clock.local_times}),
            **({} if self.delimiter is None else {"delimiter": self.delimiter}),
            **({} if self.encoding is None else {"encoding": self.encoding}),
            **({"columns": dict(self.columns)} if self.columns else {}),
        }

    @classmethod
    def from_json(cls, value: object) -> FieldMapping:
        """Read a mapping, written by ``to_json`` or by hand. Absent members have their defaults.

        Raises ``DeclarationError`` if a member is unknown or of the wrong type.
        """
        if not isinstance(value, Mapping):
            raise DeclarationError(f"'mapping' is a JSON object of paths, got {shown(value)}", field="mapping")
        if strangers := sorted(str(name) for name in value if name not in _IN_MAPPING):
            raise DeclarationError(
                f"'mapping' has {', '.join(strangers)}; it takes {', '.join(_IN_MAPPING)}", field="mapping"
            )
        usual = FieldMapping()
        event_id, data = value.get("id", usual.id), value.get("data", usual.data)
        words = {name: _text(value, name, None) for name in _WORDS if value.get(name) is not None}
        clock = {member: words.pop(name) for name, member in _OF_CLOCK.items() if name in words}
        return cls(
            id=tuple(_texts(value, "id")) if isinstance(event_id, list) and event_id else _text(value, "id", "id"),
            data=None if data is None else _text(value, "data", "data"),
            clock=TimeForm(**cast("dict[str, Any]", clock)),
            columns=_column_types(value.get("columns", {})),
            **cast("dict[str, Any]", words),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDeclaration(TimedStream):
    """The declaration of a stream. How events are read is fixed. The members in ``CHANGEABLE`` may change later.

    Attributes:
        name: Letters, digits, ``.``, ``_``, ``-``; at most 100.
        key: Path of the correlation key: ``subject`` or ``data.<path>`` in a CloudEvent, any path in plain JSON. It may
            also be an object with a path for each event type, with ``*`` for every other type. An event is rejected if
            its type has no path.
        keys: Further correlation keys by name. A key is the path of an attribute, with or without ``data`` in front, or
            has a path for each event type. Patterns may be matched on the traces of a further key. An event without a
            text or an integer at the path belongs to no trace of that key.
        event_types: The allowed types, or none to allow any type. Events of other types are dead-lettered.
        ties: How events with equal timestamps are ordered: as in the log, or not at all.
        lateness: Bound of out-of-orderness: the seconds that an event may be older than the newest event before it, or
            a measured bound. Events are sorted by time within the bound. If it is None, they are processed in the order
            of the log.
        idle_timeout: Session gap: seconds of event time after which a trace without an event ends. If it is None, no
            trace ends in this way.
        quiet_after: Source idleness: seconds of wall clock without any event after which event time advances with the
            wall clock. If it is None, event time advances with events only.
        max_ahead: The seconds that the time of an event may be ahead of the wall clock when a service accepts the
            event. ``none`` sets no limit, and None means ``USUAL_AHEAD_S``.
        duplicates: Whether an event whose id the stream has accepted before is dropped and counted, or accepted again.
        derived: Whether all events of the stream are derived by operators, which then also decide the keys and the
            order.
    """

    key: KeyForm = "subject"
    keys: Mapping[str, KeyForm] = field(default_factory=dict)
    event_types: tuple[str, ...] = ()
    end_events: tuple[str, ...] = ()
    ties: Ties = "log"
    mapping: FieldMapping = field(default_factory=FieldMapping)
    duplicates: Duplicates = "drop"
    derived: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        if fault := name_fault("stream", self.name):
            raise DeclarationError(fault, field="name")
        self._check_key("the correlation key", self.key, "key")
        self._check_keys()
        check_event_time(self)
        if self.derived:
            self._check_derived()
        for name, paths in self.mapping.paths.items():
            for path in paths:
                _check_path(self.name, f"{name!r} in the mapping", path, "mapping")
        keyless = [name for name in (*self.event_types, *self.end_events) if place_for(self.key, name) is None]
        if keyless:
            raise DeclarationError(
                f"stream {self.name!r}: the correlation key has no path for {', '.join(dict.fromkeys(keyless))}; "
                "add one for each, or one for '*', every other type",
                field="key",
            )
        if len(self.description) > _MOST_DESCRIBED:
            raise DeclarationError(
                f"stream {self.name!r}: the description has {len(self.description):,} characters; at most "
                f"{_MOST_DESCRIBED:,} are kept",
                field="description",
            )
        unknown = sorted(set(self.end_events) - set(self.event_types)) if self.event_types else []
        if unknown:
            raise DeclarationError(
                f"stream {self.name!r}: end events {', '.join(unknown)} are not among its event types",
                field="end_events",
            )

    @property
    def key_paths(self) -> tuple[Path, ...]:
        """The names of the correlation key in ``WHERE [..]`` of a pattern, besides ``key``.

        They are the paths of the key, with and without ``data`` in front. If the key depends on the event type, the
        paths that also belong to another key are left out.
        """
        return _names_among(self.key, self.keys.values())

    def route_paths(self, route: str) -> tuple[Path, ...]:
        """Return the names of a further key in ``WHERE [..]`` of a pattern: its name, and paths as in ``key_paths``.

        ``route`` is the name of the further key. Raises ``DeclarationError`` if it is unknown.
        """
        if route not in self.keys:
            names = ", ".join(self.keys) or "none"
            raise DeclarationError(
                f"stream {self.name!r}: there is no further key {route!r}; declared are: {names}", field="keys"
            )
        others = [self.key, *(key for name, key in self.keys.items() if name != route)]
        return tuple(dict.fromkeys(((route,), *_names_among(self.keys[route], others))))

    def attribute_of(self, route: str) -> AttributePath:
        """Return the path of a further key in the attributes of events, or a path for each event type.

        ``route`` is the name of the further key. Raises ``DeclarationError`` if it is unknown.
        """
        self.route_paths(route)
        return attribute_path(self.keys[route])

    def _check_key(self, what: str, key: KeyForm, place: str) -> None:
        if fault := key_fault(key, self.event_types):
            raise DeclarationError(f"stream {self.name!r}: {what} {fault}", field=place)
        for path in places_of(key):
            _check_path(self.name, what, path, place)

    def _check_derived(self) -> None:
        usual = StreamDeclaration(name=self.name)
        for name in _NOT_DERIVED:
            if getattr(self, name) != getattr(usual, name):
                raise DeclarationError(
                    f"stream {self.name!r}: {name} says how posted events are read, and no one posts events to a "
                    "derived stream; leave it out. A pattern with INTO … KEY gives events another key",
                    field=name,
                )

    def _check_keys(self) -> None:
        owners = dict.fromkeys((("key",), *self.key_paths), f"the correlation key {key_text(self.key)}")
        for name, key in self.keys.items():
            if not _KEY_NAME.fullmatch(name):
                raise DeclarationError(
                    f"stream {self.name!r}: the further key {name!r} cannot be used in a pattern; use 1 to 100 "
                    "letters, digits or '_', not beginning with a digit",
                    field="keys",
                )
            self._check_key(f"the further key {name!r}", key, "keys")
            for path in self.route_paths(name):
                if path in owners:
                    raise DeclarationError(
                        f"stream {self.name!r}: {'.'.join(path)} means both the further key {name!r} and "
                        f"{owners[path]}; give each key a name and a path of its own",
                        field="keys",
                    )
            owners.update(dict.fromkeys(self.route_paths(name), f"the further key {name!r}"))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as a plain JSON object for storage. Most members are left out at their defaults."""
        return {
            "name": self.name,
            "key": key_json(self.key),
            **({"keys": {name: key_json(key) for name, key in self.keys.items()}} if self.keys else {}),
            "event_types": list(self.event_types),
            "end_events": list(self.end_events),
            "mapping": self.mapping.to_json(),
            **({} if self.ties == "log" else {"ties": self.ties}),
            **({} if self.duplicates == "drop" else {"duplicates": self.duplicates}),
            **({"derived": True} if self.derived else {}),
            **event_time_json(self),
            **({"description": self.description} if self.description else {}),
        }

    @classmethod
    def from_json(cls, value: object) -> StreamDeclaration:
        """Read a declaration from a plain JSON object. Absent members have their defaults.

        Raises:
            DeclarationError: The value is not an object, a member is missing or of the wrong type, or members
                contradict each other.
        """
        if not isinstance(value, Mapping):
            raise DeclarationError(f"a stream declaration is a JSON object, got {shown(value)}")
        return cls(
            name=_text(value, "name", None),
            key=key_form(value.get("key", "subject"), "'key' of a stream declaration", "key"),
            keys=_keys(value.get("keys", {})),
            event_types=_texts(value, "event_types"),
            end_events=_texts(value, "end_events"),
            ties=cast("Ties", _choice(value, "ties", get_args(Ties))),
            duplicates=cast("Duplicates", _choice(value, "duplicates", get_args(Duplicates))),
            derived=_flag(value, "derived"),
            **event_time_members(value),
            mapping=FieldMapping.from_json(value.get("mapping", {})),
            description=_text(value, "description", ""),
        )


def _names_among(key: KeyForm, others: Iterable[KeyForm]) -> tuple[Path, ...]:
    """Return the names of a key's paths. If the key depends on the event type, names of ``others`` are left out."""
    if not isinstance(key, Mapping):
        return key_names(key)
    other_names = {name for other in others for name in key_names(other)}
    return tuple(name for name in key_names(key) if name not in other_names)


def _check_path(stream: str, what: str, path: str, place: str) -> None:
    if not all(path.split(".")):
        raise DeclarationError(
            f"stream {stream!r}: the path {path!r} of {what} has an empty part; write names joined by single dots, "
            "such as data.order.id",
            field=place,
        )


def _choice(value: Mapping[str, Any], name: str, words: tuple[str, ...]) -> str:
    word = value.get(name, words[0])
    if word in words:
        return str(word)
    raise DeclarationError(f"{name!r} of a stream declaration is {shown(word)}; write {' or '.join(words)}", field=name)


def _flag(value: Mapping[str, Any], name: str) -> bool:
    flag = value.get(name, False)
    if isinstance(flag, bool):
        return flag
    raise DeclarationError(f"{name!r} of a stream declaration is true or false, got {shown(flag)}", field=name)


def _keys(value: object) -> dict[str, KeyForm]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise DeclarationError(
            f"'keys' of a stream declaration is a JSON object of paths by name, got {shown(value)}", field="keys"
        )
    return {name: key_form(key, f"the further key {name!r} in 'keys'", "keys") for name, key in value.items()}


def _column_types(value: object) -> dict[str, ColumnType]:
    kinds = get_args(ColumnType)
    if isinstance(value, Mapping) and all(isinstance(name, str) and kind in kinds for name, kind in value.items()):
        return dict(value)
    raise DeclarationError(
        f"'columns' of a mapping is an object of types by column; types are {', '.join(kinds)}; got {shown(value)}",
        field="mapping",
    )


def _text(value: Mapping[str, Any], name: str, default: str | None) -> str:
    text = value.get(name, default)
    if not isinstance(text, str):
        raise DeclarationError(f"{name!r} of a stream declaration is a text, got {shown(text)}", field=name)
    return text


def _texts(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    texts = value.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise DeclarationError(f"{name!r} of a stream declaration is a list of texts, got {shown(texts)}", field=name)
    return tuple(texts)

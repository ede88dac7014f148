"""JSON Schemas of event types: compiled with bounds, and asked about events.

A schema comes from a stranger. So it names no other document, its references do not come back to themselves and do not
multiply without end, and its regular expressions are of the kind that takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
import orjson

from service.errors import SchemaRefused
from streams import Event, EventBreaksSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MOST_BYTES = 64 * 1024
_MOST_PARTS = 10_000
_DEEPEST = 64
_MOST_REGEX_BYTES = 1_000_000
_SHOWN_FAULTS = 3
_SHOWN_CHARS = 200
_PLAIN_VALUES = ("const", "enum", "default", "examples")
_ELSEWHERE = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary")


class EventSchema:
    """A compiled schema for the attributes of one type of events.

    Args:
        schema: The schema, draft 2020-12: an object.

    Raises:
        SchemaRefused: It is none, or one that is not read here; the message says where and why.
    """

    def __init__(self, schema: object) -> None:
        bounded = _bounded(schema)
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                bounded,
                pattern_options=jsonschema_rs.RegexOptions(
                    size_limit=_MOST_REGEX_BYTES, dfa_size_limit=_MOST_REGEX_BYTES
                ),
                retriever=_refuse_retrieval,
            )
        except ValueError as error:
            place = ".".join(str(part) for part in getattr(error, "instance_path", ()))
            reason = str(getattr(error, "message", error)).split("\n", 1)[0][:_SHOWN_CHARS]
            raise SchemaRefused(
                f"{place or 'the schema'}: {reason}; what is read is JSON Schema draft 2020-12, with regular "
                "expressions without look-around and back-references"
            ) from error

    def require(self, event: Event, version: int) -> None:
        """Check the attributes of an event.

        Args:
            event: The event.
            version: Of the schema, for the message.

        Raises:
            EventBreaksSchema: They do not keep it; the message names places and reasons.
        """
        if self._validator.is_valid(event.data):
            return
        faults = islice(self._validator.iter_errors(event.data), _SHOWN_FAULTS)
        listed = "; ".join(_told(fault) for fault in faults)
        raise EventBreaksSchema(f"{listed} (schema of the type {event.type!r}, version {version})")


def _told(fault: jsonschema_rs.ValidationError) -> str:
    place = ".".join(["data", *map(str, fault.instance_path)])
    message = fault.message
    return f"{place}: {message if len(message) <= _SHOWN_CHARS else message[:_SHOWN_CHARS] + '…'}"


def _refuse_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another document, and none is fetched")


def _bounded(schema: object) -> dict[str, Any]:
    """The schema; what is too large, names other places, or multiplies when its references are followed is refused."""
    if not isinstance(schema, dict):
        raise SchemaRefused("a schema is a JSON object")
    try:
        size_bytes = len(orjson.dumps(schema))
    except TypeError as error:
        raise SchemaRefused(f"the schema is nested too deeply or holds what JSON has not: {error}") from error
    if size_bytes > _MOST_BYTES:
        raise SchemaRefused(f"the schema has {size_bytes} bytes; at most {_MOST_BYTES} are read")
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        raise SchemaRefused(f"$schema: {schema['$schema']!r} is not read here; write {DIALECT!r}, or leave it out")
    _Sizes(schema).of("#", schema, 0)
    return schema


class _Sizes:
    """How many parts a schema has when every reference is replaced by what it names."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._known: dict[str, int] = {}
        self._open: set[str] = set()

    def of(self, place: str, part: object, depth: int) -> int:
        """The size of a part.

        Raises:
            SchemaRefused: It is too large or too deep, or comes back to itself.
        """
        if depth > _DEEPEST:
            raise SchemaRefused(f"{place}: the schema, with its references, is deeper than {_DEEPEST}")
        if place in self._open:
            raise SchemaRefused(f"{place}: the reference comes back to itself; recursive schemas are not read here")
        if place not in self._known:
            self._open.add(place)
            self._known[place] = 1 + sum(self._sizes(place, part, depth))
            self._open.remove(place)
        if self._known[place] > _MOST_PARTS:
            raise SchemaRefused(f"{place}: with its references the schema has more than {_MOST_PARTS} parts")
        return self._known[place]

    def _sizes(self, place: str, part: object, depth: int) -> Iterator[int]:
        if isinstance(part, list):
            for number, item in enumerate(part):
                yield self.of(f"{place}/{number}", item, depth + 1)
        if not isinstance(part, dict):
            return
        for name, item in part.items():
            if name in _ELSEWHERE or (name == "$id" and depth):
                raise SchemaRefused(f"{place}: {name} is not read here; name parts with $defs and '$ref': '#/$defs/…'")
            if name == "$ref":
                yield self._referred(place, item, depth)
            elif name not in _PLAIN_VALUES:
                yield self.of(f"{place}/{_escaped(name)}", item, depth + 1)

    def _referred(self, place: str, reference: object, depth: int) -> int:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaRefused(f"{place}: $ref {str(reference)[:_SHOWN_CHARS]!r} names no place in this schema")
        found: Any = self._schema
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, dict) and name in found:
                found = found[name]
            else:
                raise SchemaRefused(f"{place}: $ref {reference[:_SHOWN_CHARS]!r} names no place in this schema")
        return self.of(reference, found, depth + 1)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

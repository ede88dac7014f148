"""JSON Schemas of event types: compiled with bounds, and asked about events.

A schema comes from a stranger. So it names no other document, its references do not come back to themselves and do not
multiply without end, and its regular expressions are of the kind that takes linear time. What checking an event may
cost is known before it begins: the weight of the schema times the bytes of the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
import orjson

from service.errors import SchemaRefused
from streams import Event, EventBreaksSchema, SchemaTooCostly

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MOST_BYTES = 64 * 1024
_MOST_PARTS = 10_000
_DEEPEST = 64
_MOST_REGEX_BYTES = 1_000_000
_SHOWN_FAULTS = 3
_FEW_STEPS = 1_000_000
_EVENTS_SHARE = 40
_CHARS_OF_A_STEP = 16
_STEPS_OF_A_CONTAINER = 8  # in a list of values: comparing objects takes so much longer
_SHOWN_CHARS = 200
_PLAIN_VALUES = ("const", "enum", "default", "examples")
_ELSEWHERE = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary")


class EventSchema:
    """A compiled schema for the attributes of one type of events.

    Args:
        schema: The schema, draft 2020-12: an object.

    Attributes:
        weight: How many parts it has when every reference is replaced by what it names; values that are listed, and
            long regular expressions, count as several.

    Raises:
        SchemaRefused: It is none, or one that is not read here; the message says where and why.
    """

    def __init__(self, schema: object) -> None:
        bounded, self.weight = _bounded(schema)
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
        listed = "; ".join(_told(fault) for fault in self._faults(event))
        raise EventBreaksSchema(f"{listed} (schema of the type {event.type!r}, version {version})")

    def steps(self, event: Event) -> int:
        """A bound of what checking an event costs: the bytes of its attributes as JSON, for each part of the schema."""
        return self.weight * len(orjson.dumps(event.data))

    def _faults(self, event: Event) -> list[jsonschema_rs.ValidationError]:
        """The first few faults; of a large event only the first, as the library makes all before it gives one."""
        if self.steps(event) <= _FEW_STEPS:
            return list(islice(self._validator.iter_errors(event.data), _SHOWN_FAULTS))
        try:
            self._validator.validate(event.data)
        except jsonschema_rs.ValidationError as fault:
            return [fault]
        return []


class SchemaBudget:
    """What checking the events of a request may cost.

    Args:
        limit: Of all together, in steps of ``EventSchema.steps``; one event may take a fortieth.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def take(self, schema: EventSchema, event: Event) -> None:
        """Take what an event costs.

        Raises:
            SchemaTooCostly: It costs too much, or the events before have left too little.
        """
        steps, most = schema.steps(event), self._limit // _EVENTS_SHARE
        named = f"FORESTALL_LIMITS__MAX_SCHEMA_STEPS ({self._limit})"
        if steps > most:
            raise SchemaTooCostly(
                f"the schema of the type {event.type!r} has the weight {schema.weight}, which times the bytes of this "
                f"event is {steps}; at most {most}, a fortieth of {named}, are checked"
            )
        if steps > self._left:
            raise SchemaTooCostly(f"checking the events before has used up {named}; send fewer at a time")
        self._left -= steps


def _told(fault: jsonschema_rs.ValidationError) -> str:
    place = ".".join(["data", *map(str, fault.instance_path)])
    message = fault.message
    return f"{place}: {message if len(message) <= _SHOWN_CHARS else message[:_SHOWN_CHARS] + '…'}"


def _refuse_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is another document, and none is fetched")


def _bounded(schema: object) -> tuple[dict[str, Any], int]:
    """The schema and its weight; one that is too large, or names other places, is refused, references followed."""
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
    return schema, _Sizes(schema).of("#", schema, 0).weight


@dataclass(frozen=True, slots=True)
class _Size:
    """How much a part is, with all that is below it: parts, and what checking them weighs."""

    parts: int = 1
    weight: int = 1

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.parts + other.parts, self.weight + other.weight)


class _Sizes:
    """How large a schema is when every reference is replaced by what it names."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._known: dict[str, _Size] = {}
        self._open: set[str] = set()

    def of(self, place: str, part: object, depth: int) -> _Size:
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
            self._known[place] = sum(self._sizes(place, part, depth), _Size())
            self._open.remove(place)
        if self._known[place].parts > _MOST_PARTS:
            raise SchemaRefused(f"{place}: with its references the schema has more than {_MOST_PARTS} parts")
        return self._known[place]

    def _sizes(self, place: str, part: object, depth: int) -> Iterator[_Size]:
        if isinstance(part, list):
            for number, item in enumerate(part):
                yield self.of(f"{place}/{number}", item, depth + 1)
        if not isinstance(part, dict):
            return
        for name, item in part.items():
            if name in _ELSEWHERE or (name == "$id" and depth):
                raise SchemaRefused(f"{place}: {name} is not read here; name parts with $defs and '$ref': '#/$defs/…'")
            yield _Size(
                0, (len(item) if name == "pattern" and isinstance(item, str) else len(name)) // _CHARS_OF_A_STEP
            )
            if name == "$ref":
                yield self._referred(place, item, depth)
            elif name not in _PLAIN_VALUES:
                yield self.of(f"{place}/{_escaped(name)}", item, depth + 1)
            else:
                yield _Size(0, _weight_of_value(item))

    def _referred(self, place: str, reference: object, depth: int) -> _Size:
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


def _weight_of_value(value: object) -> int:
    """What comparing with a value weighs; it is no deeper than JSON that was read."""
    if isinstance(value, dict):
        return _STEPS_OF_A_CONTAINER + sum(map(_weight_of_value, value.values()))
    if isinstance(value, list):
        return _STEPS_OF_A_CONTAINER + sum(map(_weight_of_value, value))
    return 1 + (len(value) // _CHARS_OF_A_STEP if isinstance(value, str) else 0)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

"""JSON Schemas of event types: compiled within limits, and checked against events.

Schemas are untrusted. So a schema may not refer to other documents, its references must neither be circular nor expand
beyond a limit, and its regular expressions must run in linear time. ``schema_weights`` computes the largest cost of a
check in advance. Several faults of an event are listed only if the event is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
import orjson

from service.errors import SchemaRefused
from service.intake.schema_weights import Extent, Plan, Weights, extent_of
from streams import Event, EventBreaksSchema, did_you_mean

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MOST_BYTES = 64 * 1024
_MOST_REGEX_BYTES = 1_000_000
_SHOWN_FAULTS = 3
_SHOWN_CHARS = 200
_MOST_PER_CHARACTER = 125_000  # regular expressions of a million states, some 200 MB
_MOST_LISTED = 200_000
_COLLECTING = ("anyOf", "oneOf")  # a fault in these keywords contains every fault of their alternatives

# Keywords of draft 2020-12. Other words are permitted without effect, so a misspelt keyword is not an error.
_MAPS_OF_SCHEMAS = frozenset("properties patternProperties $defs definitions dependentSchemas".split())
_SINGLE_SCHEMAS = frozenset(
    "items contains additionalProperties propertyNames not if then else unevaluatedItems unevaluatedProperties "
    "contentSchema additionalItems".split()
)
_LISTS_OF_SCHEMAS = frozenset("allOf anyOf oneOf prefixItems".split())
_WORDS = (
    _MAPS_OF_SCHEMAS
    | _SINGLE_SCHEMAS
    | _LISTS_OF_SCHEMAS
    | frozenset(
        "$schema $id $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment type enum const multipleOf maximum "
        "exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems "
        "maxContains minContains maxProperties minProperties required dependentRequired dependencies format "
        "contentEncoding contentMediaType title description default deprecated readOnly writeOnly examples".split()
    )
)


@dataclass(slots=True)
class StepBudget:
    """The number of steps that all schema checks of one request may use together."""

    limit: int
    left: int

    @classmethod
    def of(cls, limit: int) -> StepBudget:
        return cls(limit, limit)

    def spend(self, steps: int, event: Event) -> None:
        """Subtract the steps of an event's check, or refuse an event that needs more steps than are left."""
        if steps > self.left:
            raise EventBreaksSchema(
                f"the check of its attributes by the schema of the type {event.type!r} may take {steps} steps, and the "
                f"request has {self.left} of {self.limit} left (FORESTALL_LIMITS__MAX_SCHEMA_STEPS); send a smaller "
                "event, fewer of them in a request, or give the type a simpler schema"
            )
        self.left -= steps


class EventSchema:
    """A compiled schema (draft 2020-12) for the attributes of one event type.

    An invalid or unsupported schema raises ``SchemaRefused`` with the place and the reason. If ``is_stored``, the cost
    per character is not limited, because an earlier release may have accepted the schema.
    """

    def __init__(self, schema: object, *, is_stored: bool = False) -> None:
        bounded, self._plan = _bounded(schema)
        weight = Weights(bounded).of("#", bounded, 0)
        if not is_stored and weight.per_character > _MOST_PER_CHARACTER:
            raise SchemaRefused(
                f"for each character of a text the schema, with its references, may take {weight.per_character} steps; "
                f"at most {_MOST_PER_CHARACTER} are allowed: write fewer or simpler regular expressions, with smaller "
                "numbers of repetitions"
            )
        self._parts = weight.parts
        self._collects = any(f'"{name}"'.encode() in orjson.dumps(bounded) for name in _COLLECTING)
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
                f"{place or 'the schema'}: {reason}; supported is JSON Schema draft 2020-12, with regular "
                f"expressions without look-around and back-references"
            ) from error

    def require(self, event: Event, version: int, budget: StepBudget) -> None:
        """Check the attributes of an event against the schema. Errors contain the schema's ``version``.

        Raises ``EventBreaksSchema`` with the place and reason of each fault, or if the check might need more steps than
        are left.
        """
        extent = extent_of(event.data, self._plan)
        budget.spend(extent.steps, event)
        if self._validator.is_valid(event.data):
            return
        listed = "; ".join(self._faults(event, extent))
        raise EventBreaksSchema(f"{listed} (schema of the type {event.type!r}, version {version})")

    def _faults(self, event: Event, extent: Extent) -> Iterable[str]:
        """Return the first faults of an event, in words. For a large event, return at most one, to limit memory."""
        if self._parts * (extent.values + extent.characters) <= _MOST_LISTED:
            return [_sentence(fault) for fault in islice(self._validator.iter_errors(event.data), _SHOWN_FAULTS)]
        if self._collects:
            return [f"data: does not match the schema; an event of {extent.values} values is too large to report where"]
        try:
            self._validator.validate(event.data)
        except jsonschema_rs.ValidationError as fault:
            return [_sentence(fault)]
        return []


def _sentence(fault: jsonschema_rs.ValidationError) -> str:
    place = ".".join(["data", *map(str, fault.instance_path)])
    message = fault.message
    return f"{place}: {message if len(message) <= _SHOWN_CHARS else message[:_SHOWN_CHARS] + '…'}"


def _refuse_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside this schema, and nothing is fetched")


def _bounded(schema: object) -> tuple[dict[str, Any], Plan]:
    if not isinstance(schema, dict):
        raise SchemaRefused("a schema must be a JSON object")
    try:
        size_bytes = len(orjson.dumps(schema))
    except TypeError as error:
        raise SchemaRefused(
            f"the schema is nested too deeply or contains values that JSON does not have: {error}"
        ) from error
    if size_bytes > _MOST_BYTES:
        raise SchemaRefused(f"the schema has {size_bytes} bytes; at most {_MOST_BYTES} are read")
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        raise SchemaRefused(f"$schema: {schema['$schema']!r} is not supported; write {DIALECT!r}, or leave it out")
    return schema, Weights(schema).plan()


def unknown_words(schema: object) -> list[str]:
    """Return a sentence for each unknown keyword of a schema. Keywords that begin with ``x-`` are ignored."""
    words = dict.fromkeys(word for word in _words(schema) if word not in _WORDS and not word.startswith("x-"))
    return [
        f"{word!r} is not a word of JSON Schema, and has no effect{did_you_mean(word, sorted(_WORDS))}"
        for word in words
    ]


def _words(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    yield from schema
    for word, value in schema.items():
        if word in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            parts: list[Any] = list(value.values())
        elif word in _LISTS_OF_SCHEMAS and isinstance(value, list):
            parts = value
        else:
            parts = [value] if word in _SINGLE_SCHEMAS else []
        for part in parts:
            yield from _words(part)

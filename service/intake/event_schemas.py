"""JSON Schemas of event types: compiled with bounds, and asked about events.

A schema comes from a stranger. So it names no other document, its references do not come back to themselves and do not
multiply without end, and its regular expressions are of the kind that takes linear time. What a check takes at most is
counted before it begins (``schema_weights``), and all faults of an event are built only where they are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
import orjson

from service.errors import SchemaRefused
from service.intake.schema_weights import Extent, Plan, Weights, extent_of
from streams import Event, EventBreaksSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MOST_BYTES = 64 * 1024
_MOST_REGEX_BYTES = 1_000_000
_SHOWN_FAULTS = 3
_SHOWN_CHARS = 200
_MOST_PER_CHARACTER = 125_000  # regular expressions of a million states, some 200 MB
_MOST_LISTED = 200_000
_COLLECTING = ("anyOf", "oneOf")  # a fault of these holds every fault of their alternatives


@dataclass(slots=True)
class StepBudget:
    """The steps that the checks of one request may take together.

    Attributes:
        limit: At first.
        left: Now.
    """

    limit: int
    left: int

    @classmethod
    def of(cls, limit: int) -> StepBudget:
        """A budget of which nothing is spent."""
        return cls(limit, limit)

    def spend(self, steps: int, event: Event) -> None:
        """Take steps out of the budget before they are made.

        Raises:
            EventBreaksSchema: There are not so many left; those that are stay for other events.
        """
        if steps > self.left:
            raise EventBreaksSchema(
                f"the check of its attributes by the schema of the type {event.type!r} may take {steps} steps, and the "
                f"request has {self.left} of {self.limit} left (FORESTALL_LIMITS__MAX_SCHEMA_STEPS); send a smaller "
                "event, fewer of them in a request, or give the type a simpler schema"
            )
        self.left -= steps


class EventSchema:
    """A compiled schema for the attributes of one type of events.

    Args:
        schema: The schema, draft 2020-12: an object.
        is_stored: It was registered before, perhaps by a release that bounded less.

    Raises:
        SchemaRefused: It is none, or one that is not read here; the message says where and why.
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
        """Check the attributes of an event.

        Args:
            event: The event.
            version: Of the schema, for the message.
            budget: What the check may take.

        Raises:
            EventBreaksSchema: They do not keep it, and the message names places and reasons; or the check could take
                more than the budget has.
        """
        extent = extent_of(event.data, self._plan)
        budget.spend(extent.steps, event)
        if self._validator.is_valid(event.data):
            return
        listed = "; ".join(self._faults(event, extent))
        raise EventBreaksSchema(f"{listed} (schema of the type {event.type!r}, version {version})")

    def _faults(self, event: Event, extent: Extent) -> Iterable[str]:
        """The first faults of an event, in words: no more of them are built than memory has room for."""
        if self._parts * (extent.values + extent.characters) <= _MOST_LISTED:
            return [_told(fault) for fault in islice(self._validator.iter_errors(event.data), _SHOWN_FAULTS)]
        if self._collects:
            return [f"data: does not match the schema; an event of {extent.values} values is too large to report where"]
        try:
            self._validator.validate(event.data)
        except jsonschema_rs.ValidationError as fault:
            return [_told(fault)]
        return []


def _told(fault: jsonschema_rs.ValidationError) -> str:
    place = ".".join(["data", *map(str, fault.instance_path)])
    message = fault.message
    return f"{place}: {message if len(message) <= _SHOWN_CHARS else message[:_SHOWN_CHARS] + '…'}"


def _refuse_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside this schema, and nothing is fetched")


def _bounded(schema: object) -> tuple[dict[str, Any], Plan]:
    """The schema and what it costs.

    What is too large, names other places, or multiplies when its references are followed is refused.
    """
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

"""The words of JSON Schema (draft 2020-12): others are permitted and have no effect, so a typing error is silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams import did_you_mean

_OF_SCHEMAS = frozenset("properties patternProperties $defs definitions dependentSchemas".split())
_ONE = frozenset(
    "items contains additionalProperties propertyNames not if then else unevaluatedItems unevaluatedProperties "
    "contentSchema additionalItems".split()
)
_SEVERAL = frozenset("allOf anyOf oneOf prefixItems".split())
_WORDS = (
    _OF_SCHEMAS
    | _ONE
    | _SEVERAL
    | frozenset(
        "$schema $id $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment type enum const multipleOf maximum "
        "exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems "
        "maxContains minContains maxProperties minProperties required dependentRequired dependencies format "
        "contentEncoding contentMediaType title description default deprecated readOnly writeOnly examples".split()
    )
)


def unknown_words(schema: object) -> list[str]:
    """A sentence for each word of a schema that JSON Schema does not have; those with ``x-`` are the user's own."""
    found = dict.fromkeys(word for word in _words(schema) if word not in _WORDS and not word.startswith("x-"))
    return [
        f"{word!r} is not a word of JSON Schema, and has no effect{did_you_mean(word, sorted(_WORDS))}"
        for word in found
    ]


def _words(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    yield from schema
    for word, value in schema.items():
        if word in _OF_SCHEMAS and isinstance(value, Mapping):
            parts: list[Any] = list(value.values())
        elif word in _SEVERAL and isinstance(value, list):
            parts = value
        else:
            parts = [value] if word in _ONE else []
        for part in parts:
            yield from _words(part)

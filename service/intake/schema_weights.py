"""The largest cost of checking an event against a JSON Schema, computed before the check.

Schemas and events are untrusted. ``Weights`` reads a schema once. It replaces every reference by its target, counts the
resulting parts, and computes the cost of each part per value and per character. ``extent_of`` applies these costs to an
event.

Costs are counted in steps, not in seconds, so that equal events get equal verdicts. One step is about the cost of
comparing one value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from service.errors import SchemaRefused

_MOST_PARTS = 10_000
_DEEPEST = 64
_SHOWN_CHARS = 200
_STATES_OF_A_STEP = 8  # following this many states of an automaton costs one step
_BYTES_OF_A_STEP = 8
_PLAIN_VALUES = ("const", "enum", "default", "examples")
_COMPARED = ("const", "enum")
_BY_CHARACTER = ("minLength", "maxLength", "format", "uniqueItems", *_COMPARED)
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired")
_DEFINITIONS = ("$defs", "definitions")  # cost nothing by themselves
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_UNSUPPORTED = ("$dynamicRef", "$dynamicAnchor", "$anchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary")

_ATOM = re.compile(
    r"\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[a-zA-Z-]*:|\(\?P?<[^>]*>|"
    r"\{[0-9]+(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_MANY_STATES = re.compile(r"\\[wWpP]")
_ONE_STATE = re.compile(r"\\[^dDsS]|\[(?!\^)[\x00-\x5b\x5d-\x7f]*\]|[^.\\]")
_STATES_OF_LETTERS = 100  # a class such as \w is an automaton over the bytes of UTF-8
_STATES_OF_A_CLASS = 8


@dataclass(frozen=True, slots=True)
class Weight:
    """The cost of checking a part of a schema, in steps per checked value and in steps per character.

    The characters are those of all texts and names in the checked values. ``parts`` counts the part itself and all
    parts inside it, including the targets of references.
    """

    parts: int = 1
    per_value: int = 1
    per_character: int = 0
    height: int = 1

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.parts + other.parts,
            self.per_value + other.per_value,
            self.per_character + other.per_character,
            max(self.height, other.height + 1),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The costs from which the largest number of steps of a check is computed.

    Attributes:
        weight: The cost of schemas that apply to the value and to every value inside it.
        once: The cost of schemas that apply only to the value itself.
        properties: The plan for each member's value, by the name of the member.
    """

    weight: Weight
    once: int = 0
    properties: Mapping[str, Plan] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a JSON value with all values and names inside it, and the most steps that its check may need."""

    values: int
    characters: int
    steps: int


_WEIGHTLESS = Weight(0, 0, 0, 0)
_EMPTY_PLAN = Plan(_WEIGHTLESS)


def extent_of(value: object, plan: Plan) -> Extent:
    """Return the size of a JSON value, and the most steps that its check may need.

    The function is recursive, so the caller must limit the nesting of ``value``.
    """
    values, characters, steps = 1, 0, plan.once
    if isinstance(value, str):
        characters = len(value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            inner = extent_of(item, plan.properties.get(name, _EMPTY_PLAN))
            values += inner.values + 1
            characters += inner.characters + len(name)
            steps += inner.steps
    elif isinstance(value, list | tuple):
        for item in value:
            inner = extent_of(item, _EMPTY_PLAN)
            values += inner.values
            characters += inner.characters
    weight = plan.weight
    return Extent(values, characters, steps + weight.per_value * values + weight.per_character * characters)


def regex_states(pattern: str) -> int:
    """Estimate the number of states of a regular expression's automaton. Counted repetitions are expanded."""
    groups: list[tuple[int, int]] = []
    total = last = 0
    for atom in _ATOM.findall(pattern):
        if atom[0] == "(":
            groups.append((total, last))
            total = last = 0
        elif atom == ")" and groups:
            inner = total + 1
            total, last = groups.pop()
            total, last = total + inner, inner
        elif atom[0] == "{" and atom[-1] == "}":
            times = max(int(number) for number in re.findall("[0-9]+", atom))
            total, last = total + last * max(0, times - 1), last * max(1, times)
        else:
            last = _states_of(atom)
            total += last
    return total + sum(before for before, _ in groups) + 1


def _states_of(atom: str) -> int:
    if _MANY_STATES.search(atom):
        return _STATES_OF_LETTERS
    return 1 if _ONE_STATE.fullmatch(atom) else _STATES_OF_A_CLASS


class Weights:
    """The costs of the parts of a schema, after every reference is replaced by its target."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._weights: dict[str, Weight] = {}
        self._open: set[str] = set()

    def plan(self) -> Plan:
        """Compute the costs from which the largest number of steps of a check follows.

        Refuses a schema that is too large or too deep, that refers to other documents, or that has a circular
        reference.
        """
        return self._plan("#", self._schema, 0)

    def _plan(self, place: str, part: object, depth: int) -> Plan:
        weight = self.of(place, part, depth)
        if not isinstance(part, Mapping):
            return Plan(weight)
        if set(part) == {"$ref"}:
            return self._plan(part["$ref"], self._target_of(place, part["$ref"]), depth + 1)
        properties = part.get("properties")
        if not isinstance(properties, Mapping) or any(name in part for name in _UNEVALUATED):
            return Plan(weight)
        plans = {
            name: self._plan(f"{place}/properties/{_escaped(name)}", item, depth + 2)
            for name, item in properties.items()
        }
        keywords = {name: item for name, item in part.items() if name != "properties" and name not in _DEFINITIONS}
        deep = {name: item for name, item in keywords.items() if name in _COMPARED or _has_schemas(item)}
        once = sum(1 + (len(item) if isinstance(item, list) else 0) for item in keywords.values()) + len(properties)
        inner = sum((self._of_keyword(place, name, item, depth) for name, item in deep.items()), _WEIGHTLESS)
        return Plan(_object_weight(keywords, inner), once, plans)

    def _of_keyword(self, place: str, name: str, item: object, depth: int) -> Weight:
        if name in _PLAIN_VALUES:
            return _WEIGHTLESS
        return self.of(f"{place}/{_escaped(name)}", item, depth + 1, is_named=name in _BY_NAME)

    def of(self, place: str, part: object, depth: int, *, is_named: bool = False) -> Weight:
        """Return the cost of a part of the schema.

        If ``is_named``, the members of ``part`` are schemas by property name. Otherwise they are keywords.
        """
        if depth > _DEEPEST:
            raise SchemaRefused(f"{place}: the schema, with its references, is deeper than {_DEEPEST}")
        if place in self._open:
            raise SchemaRefused(f"{place}: the reference is circular; recursive schemas are not supported")
        if place not in self._weights:
            self._open.add(place)
            weight = sum(self._inner(place, part, depth, is_named=is_named), Weight())
            if isinstance(part, Mapping) and not is_named:
                weight = _object_weight(part, weight)
            self._weights[place] = weight
            self._open.remove(place)
        if self._weights[place].parts > _MOST_PARTS:
            raise SchemaRefused(f"{place}: with its references the schema has more than {_MOST_PARTS} parts")
        return self._weights[place]

    def _inner(self, place: str, part: object, depth: int, *, is_named: bool) -> Iterator[Weight]:
        if isinstance(part, list):
            for number, item in enumerate(part):
                yield self.of(f"{place}/{number}", item, depth + 1)
        if not isinstance(part, dict):
            return
        for name, item in part.items():
            inner = f"{place}/{_escaped(name)}"
            if is_named:
                yield self.of(inner, item, depth + 1)
            elif name in _UNSUPPORTED or (name == "$id" and depth):
                raise SchemaRefused(f"{place}: {name} is not supported; name parts with $defs and '$ref': '#/$defs/…'")
            elif name == "$ref":
                yield self.of(str(item), self._target_of(place, item), depth + 1)
            elif name in _DEFINITIONS:
                yield Weight(self.of(inner, item, depth + 1, is_named=True).parts, 0)
            elif name not in _PLAIN_VALUES:
                yield self.of(inner, item, depth + 1, is_named=name in _BY_NAME)

    def _target_of(self, place: str, reference: object) -> Any:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaRefused(f"{place}: $ref {str(reference)[:_SHOWN_CHARS]!r} names no place in this schema")
        target: Any = self._schema
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdigit() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                raise SchemaRefused(f"{place}: $ref {reference[:_SHOWN_CHARS]!r} names no place in this schema")
        return target


def _object_weight(part: Mapping[str, Any], inner: Weight) -> Weight:
    per_value, per_character = inner.per_value, inner.per_character
    per_character += sum(name in part for name in _BY_CHARACTER)
    per_value += sum(len(orjson.dumps(part[name])) // _BYTES_OF_A_STEP + 1 for name in _COMPARED if name in part)
    for pattern in _patterns_of(part):
        per_character += 1 + regex_states(pattern) // _STATES_OF_A_STEP
    if unevaluated := sum(name in part for name in _UNEVALUATED):  # evaluates the sibling keywords again
        times = 1 + unevaluated * (1 + inner.height)
        per_value, per_character = per_value * times, per_character * times
    return Weight(inner.parts, per_value, per_character, inner.height)


def _patterns_of(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the regular expressions of a schema object, without the regular expressions of nested schemas."""
    if isinstance(pattern := part.get("pattern"), str):
        yield pattern
    if isinstance(patterns := part.get("patternProperties"), Mapping):
        yield from patterns


def _has_schemas(item: object) -> bool:
    return isinstance(item, Mapping) or (isinstance(item, list) and any(isinstance(part, Mapping) for part in item))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

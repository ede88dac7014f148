"""Warnings about comparisons that are null for actual events, because a text is compared with a number or a boolean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.conditions.lookups import lookup_of
from nfa.conditions.predicates import BatchColumns
from nfa.conditions.values import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, classified
from nfa.functions.lookups import LOOKUP
from nfa.language.description import describe_expression
from nfa.language.scope import all_atoms_of
from nfa.language.stream_checks import Notice
from nfa.syntax import (
    Atom,
    Attribute,
    Call,
    Comparison,
    Expression,
    InList,
    Literal,
    Pattern,
    operands_of,
    subexpressions,
)
from streams import EventBatch, listed
from streams.tables import TableForm

_READ = 100_000  # maximum number of events read for the types of a step
_COLUMN_TYPES = {BOOLEAN: "boolean", INTEGER: "number"}
_OF_COLUMNS = {"text": TEXT, "boolean": BOOLEAN, "integer": INTEGER, "number": INTEGER}
_WORDS = {TEXT: "a text", BOOLEAN: "a boolean", INTEGER: "a number"}

_Kinds: TypeAlias = NDArray[np.uint8]


KindsRead: TypeAlias = dict[tuple[tuple[str, ...], tuple[str, ...]], _Kinds]
"""The kinds of values by path and types of events."""


def incomparable(
    pattern: Pattern, events: EventBatch, known: KindsRead | None = None, forms: Mapping[str, TableForm] = {}
) -> Iterator[Notice]:
    """Yield a notice for each comparison in a pattern that is null for all given events.

    At most 100,000 events are read for each set of types. ``known`` caches the kinds of values that were read. Callers
    that check several patterns can pass the same cache. ``forms`` has the tables that lookups read.
    """
    atoms = [atom for atom, _ in all_atoms_of(pattern.event)]
    reading = _Reading(events, {atom.alias: atom for atom in reversed(atoms)}, {} if known is None else known, forms)
    conditions: list[tuple[Expression | None, Atom | None]] = [(atom.condition, atom) for atom in atoms]
    places: set[tuple[Expression, tuple[str, ...]]] = set()
    for condition, step in [*conditions, (pattern.where, None)]:
        for part in () if condition is None else subexpressions(condition):
            place = part, () if step is None else step.types
            if isinstance(part, Comparison | InList) and place not in places and not _reads_row(part, pattern):
                places.add(place)
                yield from reading.of_lookups(part, step)
                yield from reading.with_constants(part, step) if _constants(part) else reading.of_attributes(part, step)


@dataclass(frozen=True, slots=True)
class _Reading:
    events: EventBatch
    steps: Mapping[str, Atom]
    known: KindsRead
    forms: Mapping[str, TableForm]

    def of_lookups(self, comparison: Comparison | InList, step: Atom | None) -> Iterator[Notice]:
        """Yield a notice if a lookup gives values of one kind, by its column, and the other sides have none of it."""
        sides = operands_of(comparison)
        lookup = next((side for side in sides if isinstance(side, Call) and side.name == LOOKUP.name), None)
        if lookup is None:
            return
        table, column, _ = lookup_of(lookup)
        kind = _OF_COLUMNS.get(self.forms[table].columns.get(column or "", "")) if table in self.forms else None
        others = [(side, self._side_kinds(side, step)) for side in sides if side is not lookup]
        if kind is None or any(kind in kinds or NULL in kinds or not kinds for _, kinds in others):
            return
        side, kinds = others[0]
        yield Notice(
            "incomparable",
            f"{describe_expression(lookup)} is {_WORDS[kind]}, as the column {column} of the table {table} is, and "
            f"{describe_expression(side)} {_WORDS[min(kinds)]}: comparing them is always null; declare another "
            "type of the column, or compare values of one kind",
            lookup.position,
        )

    def _side_kinds(self, side: Expression, step: Atom | None) -> set[int]:
        if isinstance(side, Literal):
            return {_kind_of(side)}
        return set(self._kinds(side, step).tolist()) if isinstance(side, Attribute) and side.path else set()

    def with_constants(self, comparison: Comparison | InList, step: Atom | None) -> Iterator[Notice]:
        constants, attribute = _constants(comparison), _attribute(comparison)
        constant_kinds = {_kind_of(constant) for constant in constants}
        if attribute is None or NULL in constant_kinds:
            return
        kinds = self._kinds(attribute, step)
        other_kinds = kinds[~np.isin(kinds, list(constant_kinds))]
        if not len(other_kinds):
            return
        kind = int(np.bincount(other_kinds).argmax())
        count, texts = int((other_kinds == kind).sum()), _texts_of(constants)
        fault = (
            f"{texts[0]} is {_WORDS[_kind_of(constants[0])]}" if len(texts) == 1 else f"none of {', '.join(texts)} is"
        )
        yield Notice(
            "incomparable",
            f"{describe_expression(attribute)} is {_WORDS[kind]} in {count:,} of {len(kinds):,} events "
            f"{self._owner(attribute, step)}, and {fault}: comparing them is null, so the condition is not met there; "
            f"{_advice(kind, constants[0])}",
            attribute.position,
        )

    def of_attributes(self, comparison: Comparison | InList, step: Atom | None) -> Iterator[Notice]:
        if isinstance(comparison, InList):
            return
        left, right = comparison.left, comparison.right
        if not isinstance(left, Attribute) or not isinstance(right, Attribute):
            return
        left_kinds, right_kinds = self._kinds(left, step), self._kinds(right, step)
        if not len(left_kinds) or not len(right_kinds) or len(np.intersect1d(left_kinds, right_kinds)):
            return
        yield Notice(
            "incomparable",
            f"{describe_expression(left)} is {_WORDS[int(left_kinds[0])]} in all {len(left_kinds):,} events "
            f"{self._owner(left, step)} that have it, and {describe_expression(right)} {_WORDS[int(right_kinds[0])]} "
            f"in all {len(right_kinds):,} {self._owner(right, step)}: comparing them is always null; send both "
            "as values of one kind",
            left.position,
        )

    def _types(self, attribute: Attribute, own_step: Atom | None) -> tuple[str, ...]:
        step = own_step if attribute.of is None else self.steps.get(attribute.of)
        return () if step is None or step.is_any_type else tuple(sorted(set(step.types)))

    def _owner(self, attribute: Attribute, step: Atom | None) -> str:
        types = self._types(attribute, step)
        return f"of the type {listed(types)}" if types else "here"

    def _kinds(self, attribute: Attribute, step: Atom | None) -> _Kinds:
        """Return the kinds of an attribute's values that are not null, in the events that may have the attribute.

        Floats count as ``INTEGER``, because all numbers are comparable.
        """
        types = self._types(attribute, step)
        place = attribute.path, types
        if place not in self.known:
            names = list(self.events.type_names)
            type_codes = [code for code, name in enumerate(names) if not types or name in types]
            rows = np.flatnonzero(np.isin(self.events.type_codes, type_codes))[:_READ]
            part = self.events.take(rows)
            kinds = BatchColumns(part).read(np.arange(len(part)), [attribute.path])[attribute.path].kinds
            kinds = np.where(kinds == FLOAT, INTEGER, kinds).astype(np.uint8)
            self.known[place] = kinds[kinds != NULL]
        return self.known[place]


def _reads_row(expression: Expression, pattern: Pattern) -> bool:
    """Check whether a comparison reads a column of the FOR EACH ROW table.

    The table declares the kinds of its columns, so such comparisons are not examined.
    """
    sides = [side for side in operands_of(expression) if isinstance(side, Attribute)]
    return pattern.rows is not None and any(side.of == pattern.rows.alias for side in sides)


def _constants(comparison: Comparison | InList) -> list[Literal]:
    if isinstance(comparison, InList):
        return list(comparison.values)
    return [side for side in (comparison.left, comparison.right) if isinstance(side, Literal)]


def _attribute(comparison: Comparison | InList) -> Attribute | None:
    sides = [comparison.operand] if isinstance(comparison, InList) else [comparison.left, comparison.right]
    return next((side for side in sides if isinstance(side, Attribute) and side.path), None)


def _kind_of(literal: Literal) -> int:
    kind = int(classified(literal.value)[0])
    return INTEGER if kind == FLOAT else kind


def _texts_of(constants: list[Literal]) -> list[str]:
    return [describe_expression(constant) for constant in constants[:4]] + ["…"] * (len(constants) > 4)


def _advice(kind: int, constant: Literal) -> str:
    constant_kind = _kind_of(constant)
    if kind == TEXT:
        text = str(constant.value).lower() if constant_kind == BOOLEAN else str(constant.value)
        send = (
            f"send {_WORDS[constant_kind]} (of a CSV column: --columns NAME={_COLUMN_TYPES[constant_kind]}, or the "
            "stream's mapping)"
        )
        return f"write '{text}' to compare texts, or {send}"
    if constant_kind == TEXT and kind == INTEGER:
        return f"write {constant.value} without quotes to compare numbers, or send a text ({_in_csv('text')})"
    return f"compare it with {_WORDS[kind]}, or send {_WORDS[constant_kind]}"


def _in_csv(column_type: str) -> str:
    return f"in CSV: --columns NAME={column_type}, or the stream's mapping"

"""The kind of an expression's values, derived from the kinds of the attributes that the expression reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Literal as OneOf
from typing import TypeAlias

from nfa.conditions.lookups import lookup_of
from nfa.functions.lookups import LOOKUP
from nfa.functions.table import FUNCTIONS
from nfa.syntax import AGGREGATES, OF_EVENT, Arithmetic, Attribute, Call, Expression, Literal, Negative
from streams.tables import Lookup

ValueKind: TypeAlias = OneOf["boolean", "integer", "number", "text", "null", "any"]
"""The kind of a column of values; ``any``: the values have several kinds, or an unknown kind."""

_OF_RESULT: dict[str, ValueKind] = {"text": "text", "number": "number", "boolean": "boolean", "time": "number"}
_OF_AGGREGATE: dict[str, ValueKind] = {"count": "integer", "sum": "number", "avg": "number"}


def kind_of_value(expression: Expression, kind_of: Callable[[Attribute | Lookup], ValueKind]) -> ValueKind:
    """Return the kind of an expression's values that are not null, or ``null`` if every value is null.

    ``kind_of`` has the kinds of attributes and lookups.
    """
    match expression:
        case Literal():
            return _of_literal(expression.value)
        case Attribute():
            return kind_of(expression) if expression.path else "boolean"
        case Arithmetic() | Negative():
            return "number"
        case Call():
            return _of_call(expression, kind_of)
        case _:
            return "boolean"


def _of_literal(value: object) -> ValueKind:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) else "number" if isinstance(value, float) else "text"


def _of_call(call: Call, kind_of: Callable[[Attribute | Lookup], ValueKind]) -> ValueKind:
    if call.name == LOOKUP.name:
        return kind_of(lookup_of(call))
    if call.name in OF_EVENT:
        return "integer" if call.name == "time" else "text"
    if call.name in _OF_AGGREGATE:
        return _OF_AGGREGATE[call.name]
    if call.name in AGGREGATES or call.name == "coalesce":
        return _joined([kind_of_value(argument, kind_of) for argument in call.arguments])
    return _OF_RESULT.get(FUNCTIONS[call.name].result, "any")


def _joined(kinds: Sequence[ValueKind]) -> ValueKind:
    def common_kind(first: ValueKind, second: ValueKind) -> ValueKind:
        if second in (first, "null"):
            return first
        if first == "null":
            return second
        return "number" if {first, second} == {"integer", "number"} else "any"

    return reduce(common_kind, kinds, "null")

"""The values of an aggregate, such as ``sum(price)``, which are computed over the events of a window."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

from aggregates.errors import AggregateRefused

Function: TypeAlias = Literal[
    "count", "count_if", "sum", "avg", "min", "max", "stddev", "distinct", "first", "last", "quantile"
]

_CALL = re.compile(r"\s*([a-z_]+)\s*\((.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
MOST_VALUES = 32
_SHARE = re.compile(r"[0-9._/+]{1,50}(?:[eE][+-]?[0-9]{1,2})?")  # short, as a fraction of 1e-10000000 takes seconds
_FINEST_SHARE = 10**9


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """One value that an aggregate computes, such as ``sum(price)``.

    Attributes:
        name: The member of derived events, and the name in ``having``.
        argument: An expression over an event, in the language of conditions. Empty for ``count()``.
        share: For ``quantile``, the share of the values that are at most the result.
    """

    name: str
    function: Function
    argument: str = ""
    share: Fraction = Fraction(0)


def read_values(document: object) -> tuple[AggregateValue, ...]:
    """Read the member ``values`` of an aggregate's document. Return the values in their order.

    Raises:
        AggregateRefused: A value has no name, or its function is unknown.
    """
    if not isinstance(document, Mapping) or not document:
        raise AggregateRefused("'values' is an object such as {n: count(), total: sum(price)}", field="values")
    if len(document) > MOST_VALUES:
        raise AggregateRefused(f"'values' has {len(document)} members, and at most {MOST_VALUES} are allowed")
    return tuple(read_value(str(name), text) for name, text in document.items())


def read_value(name: str, text: object) -> AggregateValue:
    """Read one value from its text, such as ``sum(price)``. Raises ``AggregateRefused`` if it is invalid."""
    call = _CALL.fullmatch(text) if isinstance(text, str) else None
    if not _NAME.fullmatch(name):
        raise AggregateRefused(f"values: {name!r} is not a name of letters, digits and '_'", field="values")
    if call is None or call[1] not in get_args(Function):
        raise AggregateRefused(
            f"values, {name}: {text!r} is not a value; write one of {', '.join(get_args(Function))} and its argument, "
            "such as count(), sum(price), distinct(user), quantile(price, 0.95) or count_if(price > 10)",
            field="values",
        )
    function, argument, share = cast("Function", call[1]), call[2].strip(), Fraction(0)
    if function == "quantile":
        argument, _, number = (part.strip() for part in argument.rpartition(","))
        share = _share(name, number)
    if not argument and function != "count":
        raise AggregateRefused(f"values, {name}: {function} needs an argument, such as {function}(price)")
    return AggregateValue(name, function, argument, share)


def _share(name: str, text: str) -> Fraction:
    try:
        share = Fraction(text if _SHARE.fullmatch(text) else -1)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 < share <= 1 or share.denominator > _FINEST_SHARE:
        raise AggregateRefused(
            f"values, {name}: a quantile needs an expression and a share above 0 and up to 1 with at most nine "
            f"decimals, such as quantile(price, 0.95), and not {text!r}",
            field="values",
        )
    return share

"""Patterns of punctuations: the values of one attribute that do not come any more.

Source: section 2 of the specification of punctuation-aware joins (patterns) and section 6.3 (empty and wrong ones).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from literature.errors import PunctuationRefused
from streams import shown

Value: TypeAlias = int | float | str
Domain: TypeAlias = Literal["integer", "number", "text"]
"""The type of an attribute; integers have 64 bits, texts are ordered by code points."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Every value, null included. As the pattern of all attributes: the input is finished."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No value; such a punctuation changes nothing."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """A constant, or a list of them; an empty list is ``Nothing``."""

    values: frozenset[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The values between two bounds; a range whose bounds cross is empty.

    Attributes:
        low: Least value; None: no bound.
        high: Greatest value; None: no bound.
        has_low: Whether ``low`` itself is in the range.
        has_high: Whether ``high`` itself is in the range.
    """

    low: Value | None = None
    high: Value | None = None
    has_low: bool = True
    has_high: bool = True


Pattern: TypeAlias = Anything | Nothing | OneOf | Range


def constant(value: Value) -> OneOf:
    """The pattern of one value."""
    return OneOf(frozenset({value}))


def is_missing(value: Value | None) -> bool:
    """Whether a key is null or NaN; such keys join nothing and are never closed."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def matches(pattern: Pattern, value: Value | None) -> bool:
    """Whether a pattern has a value. Null and NaN are in ``Anything`` only."""
    if isinstance(pattern, Anything):
        return True
    if value is None or is_missing(value) or isinstance(pattern, Nothing):
        return False
    if isinstance(pattern, OneOf):
        return value in pattern.values
    return _is_above(pattern, value) and _is_below(pattern, value)


def _is_above(pattern: Range, value: Value) -> bool:
    if pattern.low is None:
        return True
    is_above: bool = value >= pattern.low if pattern.has_low else value > pattern.low  # type: ignore[operator]
    return is_above


def _is_below(pattern: Range, value: Value) -> bool:
    if pattern.high is None:
        return True
    is_below: bool = value <= pattern.high if pattern.has_high else value < pattern.high  # type: ignore[operator]
    return is_below


def is_empty(pattern: Pattern) -> bool:
    """Whether a pattern has no values, judged by its bounds; integers strictly between 1 and 2 do not count."""
    if isinstance(pattern, OneOf):
        return not pattern.values
    if not isinstance(pattern, Range) or pattern.low is None or pattern.high is None:
        return isinstance(pattern, Nothing)
    return not (_is_above(pattern, pattern.high) and _is_below(pattern, pattern.low))


def require_domain(pattern: Pattern, domain: Domain) -> None:
    """Check that a pattern can be compared with the values of an attribute.

    Raises:
        PunctuationRefused: A value has another type, or is NaN.
    """
    values = pattern.values if isinstance(pattern, OneOf) else ()
    bounds = (pattern.low, pattern.high) if isinstance(pattern, Range) else ()
    for value in (*values, *(bound for bound in bounds if bound is not None)):
        if not _is_of(value, domain):
            raise PunctuationRefused(f"a punctuation names {shown(value)}, and the keys have the type {domain!r}")


def _is_of(value: object, domain: Domain) -> bool:
    if domain == "text":
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if domain == "integer":
        return isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return not math.isnan(value)


def read_pattern(form: object) -> Pattern:
    """The pattern of a JSON value: ``{"eq": 180}``, ``{"in": [1, 2]}``, ``{"range": {"ge": 1, "lt": 9}}``,
    ``{"any": true}`` or ``{"none": true}``.

    Raises:
        PunctuationRefused: The value has another form.
    """
    if not isinstance(form, Mapping) or len(form) != 1:
        raise PunctuationRefused(f"a pattern is an object with one of eq, in, range, any, none; got {shown(form)}")
    ((name, operand),) = form.items()
    if name == "eq" and _is_value(operand):
        return constant(operand)
    if name == "in" and isinstance(operand, list) and all(map(_is_value, operand)):
        return OneOf(frozenset(operand)) if operand else Nothing()
    if name == "range" and isinstance(operand, Mapping):
        return _read_range(operand)
    if name in ("any", "none") and operand is True:
        return Anything() if name == "any" else Nothing()
    raise PunctuationRefused(f"a pattern is an object with one of eq, in, range, any, none; got {shown(form)}")


def _is_value(value: object) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _read_range(bounds: Mapping[str, object]) -> Pattern:
    is_known = (
        set(bounds) <= {"ge", "gt", "le", "lt"} and not {"ge", "gt"} <= set(bounds) and not {"le", "lt"} <= set(bounds)
    )
    if not is_known or not bounds or not all(map(_is_value, bounds.values())):
        raise PunctuationRefused(f"a range has ge or gt, le or lt, or one of both; got {shown(dict(bounds))}")
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    if low is not None and high is not None and isinstance(low, str) != isinstance(high, str):
        raise PunctuationRefused(f"the bounds of a range have one type; got {shown(dict(bounds))}")
    return Range(low=low, high=high, has_low="gt" not in bounds, has_high="lt" not in bounds)  # type: ignore[arg-type]


def pattern_form(pattern: Pattern) -> dict[str, object]:
    """The JSON value that ``read_pattern`` reads."""
    if isinstance(pattern, Anything) or (isinstance(pattern, Range) and pattern.low is None and pattern.high is None):
        return {"any": True}
    if isinstance(pattern, Nothing):
        return {"none": True}
    if isinstance(pattern, OneOf):
        return {"in": sorted(pattern.values)}
    low = {} if pattern.low is None else {"ge" if pattern.has_low else "gt": pattern.low}
    high = {} if pattern.high is None else {"le" if pattern.has_high else "lt": pattern.high}
    return {"range": {**low, **high}}


def key_pattern(patterns: Mapping[str, Pattern], key: str) -> Pattern | None:
    """The pattern of the keys that a punctuation over several attributes closes.

    ``Nothing`` where some pattern is empty; None where the punctuation restricts other attributes, too, so that it
    closes no key. An attribute without a pattern is not restricted.
    """
    if any(is_empty(pattern) for pattern in patterns.values()):
        return Nothing()
    if any(not isinstance(pattern, Anything) for name, pattern in patterns.items() if name != key):
        return None
    return patterns.get(key, Anything())

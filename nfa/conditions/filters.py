"""Filters: comparisons of an event's attribute with constants. An index can evaluate these conjuncts of a step.

A *filter* is ``attribute = constant``, ``attribute IN (constants)``, or a comparison such as ``attribute < constant``.
Numbers are compared as float64 here. This is exact, because only constants of magnitude below 2^53 are used: comparing
a number with such a constant gives the same result as comparing its float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal as OneOf
from typing import TypeAlias

from nfa.conditions.predicates import Leaf, leaf_of
from nfa.conditions.residuals import all_of, conjuncts_of, split_condition
from nfa.syntax import Atom, Comparison, ComparisonOperator, Expression, InList, Literal, Scalar

Relation: TypeAlias = OneOf["=", ">", "<"]
Bound: TypeAlias = tuple[float, bool]  # (constant, negated under "<"; whether the bound is exclusive)
Constant: TypeAlias = str | float | Bound

_MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT_BELOW = 2**53


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a filter index: a column of events, and the relation by which filters compare this column."""

    leaf: Leaf
    relation: Relation

    @property
    def sign(self) -> float:
        """The factor by which values and constants are multiplied, so that every bound becomes a lower bound."""
        return -1.0 if self.relation == "<" else 1.0


@dataclass(frozen=True, slots=True)
class Filter:
    """A conjunct of a step that compares a column of events with constants.

    For ``=`` and IN, the conjunct is true if the value equals any of the constants. For other relations there is one
    constant, the bound. ``rest`` is the step without this conjunct. Its condition has only the step's other unary
    conjuncts (see ``split_condition``).
    """

    constants: frozenset[Constant]
    rest: Atom


def filters_of(atom: Atom) -> dict[Dimension, Filter]:
    """Return the filters among the conjuncts of a step, at most one for each dimension: the first."""
    unary, _ = split_condition(atom)
    if unary is None:
        return {}
    conjuncts = list(conjuncts_of(unary))
    filters: dict[Dimension, Filter] = {}
    for place, conjunct in enumerate(conjuncts):
        comparison = _parsed_filter(conjunct)
        if comparison is not None and comparison[0] not in filters:
            other_conjuncts = [other_conjunct for number, other_conjunct in enumerate(conjuncts) if number != place]
            filters[comparison[0]] = Filter(comparison[1], replace(atom, condition=all_of(other_conjuncts)))
    return filters


def _parsed_filter(conjunct: Expression) -> tuple[Dimension, frozenset[Constant]] | None:
    match conjunct:
        case InList():
            leaf, constants = leaf_of(conjunct.operand), [_constant(value.value) for value in conjunct.values]
            supported = frozenset(constant for constant in constants if constant is not None)
            is_filter = leaf is not None and None not in constants
            return (Dimension(leaf, "="), supported) if leaf is not None and is_filter else None
        case Comparison():
            for leaf, operator, constant in _sides(conjunct):
                if operator == "=":
                    return Dimension(leaf, "="), frozenset([constant])
                if not isinstance(constant, str):
                    dimension = Dimension(leaf, ">" if operator in (">", ">=") else "<")
                    return dimension, frozenset([(dimension.sign * constant, operator in (">", "<"))])
    return None


def _sides(comparison: Comparison) -> Iterator[tuple[Leaf, ComparisonOperator, str | float]]:
    mirrored = _MIRRORED.get(comparison.operator)
    for column, operator, other in (
        (comparison.left, comparison.operator, comparison.right),
        (comparison.right, mirrored, comparison.left),
    ):
        leaf = leaf_of(column)
        constant = _constant(other.value) if isinstance(other, Literal) else None
        if mirrored is not None and operator is not None and leaf is not None and constant is not None:
            yield leaf, operator, constant


def _constant(value: Scalar) -> str | float | None:
    if isinstance(value, str):
        return None if any("\ud800" <= character <= "\udfff" for character in value) else value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return float(value) + 0.0 if abs(value) < _EXACT_BELOW else None

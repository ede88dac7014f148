"""Functions of lists. ``nfa.conditions.predicates`` evaluates their last argument for every element of the list."""

from __future__ import annotations

from nfa.functions.function import Function, Parameter

_LIST = Parameter("list", "any")

FUNCTIONS = (
    Function(
        "any",
        (_LIST, Parameter("condition", "boolean")),
        "boolean",
        None,
        "Whether the condition is true for an element of the list; null if it is true for none and null for one.",
        (
            ("any(items, price > 100)", "TRUE"),
            ("any(items, price > 500)", "FALSE"),
            ("any(tags, value = 'gift')", "TRUE"),
        ),
    ),
    Function(
        "sum_of",
        (_LIST, Parameter("x", "number")),
        "number",
        None,
        "The sum of `x` over the elements of the list, where it is not null; null if it is null for all, or "
        "not a number for one. `sum_of(list, x)` is the same.",
        (("sum(items, price * quantity)", "220.0"),),
        written="sum",
    ),
)

"""Operators on values that may be null, in the form of functions."""

from __future__ import annotations

from nfa.functions.function import Function, Parameter

FUNCTIONS = (
    Function(
        name="coalesce",
        parameters=(Parameter("x", "any"),),
        is_repeated=True,
        result="any",
        column=None,
        spans_events=True,
        summary="The first value that is not null.",
        examples=(("coalesce(NULL, 2)", "2"),),
    ),
    Function(
        name="if",
        parameters=(Parameter("condition", "boolean"), Parameter("value", "any"), Parameter("otherwise", "any")),
        result="any",
        column=None,
        spans_events=True,
        summary="`value` if the condition is true, `otherwise` if it is false or null. `CASE WHEN c THEN x WHEN d THEN "
        "y ELSE z END` is the same as `if(c, x, if(d, y, z))`; without ELSE, `z` is NULL.",
        examples=(
            ("IF(2 > 1, 'more', 'less')", "'more'"),
            ("CASE WHEN NULL > 1 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END", "'b'"),
            ("CASE WHEN 1 > 2 THEN 'a' END", "NULL"),
        ),
    ),
    Function(
        name="between",
        parameters=(Parameter("x", "any"), Parameter("low", "any"), Parameter("high", "any")),
        result="boolean",
        column=None,
        spans_events=True,
        summary="`x BETWEEN low AND high` is `x >= low AND x <= high`; `x NOT BETWEEN low AND high` is its negation.",
        examples=(
            ("2 BETWEEN 1 AND 2", "TRUE"),
            ("2 NOT BETWEEN 1 AND 2", "FALSE"),
            ("2 BETWEEN 3 AND NULL", "FALSE"),
            ("2 BETWEEN 1 AND NULL", "NULL"),
        ),
    ),
)

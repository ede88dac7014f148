"""Functions whose arguments may be null: ``coalesce``, ``if`` and ``between``."""

from __future__ import annotations

from nfa.functions.function import Function, Parameter

FUNCTIONS = (
    Function(
        "coalesce",
        (Parameter("x", "any"),),
        "any",
        None,
        "The first value that is not null.",
        (("coalesce(NULL, 2)", "2"),),
        is_repeated=True,
        spans_events=True,
    ),
    Function(
        "if",
        (Parameter("condition", "boolean"), Parameter("value", "any"), Parameter("otherwise", "any")),
        "any",
        None,
        "`value` if the condition is true, `otherwise` if it is false or null. `CASE WHEN c THEN x WHEN d THEN "
        "y ELSE z END` is the same as `if(c, x, if(d, y, z))`; without ELSE, `z` is NULL.",
        (
            ("IF(2 > 1, 'more', 'less')", "'more'"),
            ("CASE WHEN NULL > 1 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END", "'b'"),
            ("CASE WHEN 1 > 2 THEN 'a' END", "NULL"),
        ),
        spans_events=True,
    ),
    Function(
        "between",
        (Parameter("x", "any"), Parameter("low", "any"), Parameter("high", "any")),
        "boolean",
        None,
        "`x BETWEEN low AND high` is `x >= low AND x <= high`; `x NOT BETWEEN low AND high` is its negation.",
        (
            ("2 BETWEEN 1 AND 2", "TRUE"),
            ("2 NOT BETWEEN 1 AND 2", "FALSE"),
            ("2 BETWEEN 3 AND NULL", "FALSE"),
            ("2 BETWEEN 1 AND NULL", "NULL"),
        ),
        spans_events=True,
    ),
)

"""NaN is null in conditions between rows, as it is in measures."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import run_query

INFINITE = float("inf")
NULLS = [
    "B.g - A.g",
    "A.g + -B.g",
    "A.g * (count(*) - count(g))",
    "B.g / A.g",
    "A.g % match_number()",
    "mod(A.g, B.g)",
    "sum(g) - sum(g)",
    "avg(A.g) - B.g",
    "avg(A.g - 1) * 0",
    "sum(h)",
    "avg(h)",
    "-(A.g - B.g)",
    "abs(A.g - B.g)",
    "greatest(A.g - B.g, 1)",
    "CASE WHEN A.g > 0 THEN A.g - B.g ELSE 1.0 END",
    "(A.g - B.g) + 1",
]
LEAVES = [*(f"{row}.{column}" for row in "AB" for column in "gwv"), "FIRST(A.g)", "PREV(B.w)", "g - PREV(g)"]
AGGREGATES = [f"{name}({row}.{column})" for name in ("sum", "avg", "min", "max") for row in "AB" for column in "gv"]
numbers = st.recursive(
    st.sampled_from([*LEAVES, *LEAVES, *AGGREGATES, "sum(g)", "count(A.g)", "0", "2", "0.5", "NULL"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda one: f"({one[0]} {one[1]} {one[2]})"),
        st.tuples(st.sampled_from(["coalesce", "least", "greatest"]), inner, inner).map(
            lambda one: f"{one[0]}({one[1]}, {one[2]})"
        ),
        st.tuples(st.sampled_from(["abs", "-"]), inner).map(lambda one: f"{one[0]}({one[1]})"),
        st.tuples(inner, inner).map(lambda one: f"CASE WHEN {one[0]} > 1 THEN {one[1]} ELSE A.w END"),
    ),
    max_leaves=4,
)
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
conditions = st.one_of(
    numbers.map(lambda one: f"{one} IS NULL"),
    st.tuples(numbers, comparisons, numbers).map(" ".join),
    st.tuples(numbers, comparisons, numbers).map(lambda one: f"NOT ({' '.join(one)})"),
    st.tuples(numbers, numbers).map(lambda one: f"{one[0]} IN ({one[1]}, 1)"),
    st.tuples(numbers, numbers, comparisons).map(lambda one: f"{one[0]} IS NULL OR {one[1]} {one[2]} 1"),
)
floats = st.sampled_from([INFINITE, INFINITE, INFINITE, -INFINITE, float("nan"), None, 0.0, -2.5])
tables = st.lists(
    st.fixed_dictionaries({"g": floats, "w": floats, "v": st.sampled_from([0, 1, -3, None])}), min_size=3, max_size=6
)
SCHEMA = pa.schema([("n", pa.int64()), ("g", pa.float64()), ("w", pa.float64()), ("v", pa.int64())])


def rows(query, table):
    with np.errstate(over="ignore", invalid="ignore"):  # of which the kernel warns as plain Python
        return run_query(query, {"t": table}.get).to_pylist()


@pytest.mark.parametrize("expression", NULLS)
@pytest.mark.parametrize("condition", ["({}) IS NULL", "coalesce({}, 7.0) = 7"])
def test_nan_is_null_between_rows(expression, condition):
    table = pa.table({"g": [INFINITE, INFINITE, INFINITE], "h": [0.0, INFINITE, -INFINITE]})
    clause = "MATCH_RECOGNIZE (MEASURES {} AS r PATTERN (A C B) DEFINE C AS TRUE, B AS {})"
    condition = condition.format(expression)
    assert rows(f"SELECT r FROM t {clause.format(expression, condition)}", table) == [{"r": None}]
    assert rows(f"SELECT r FROM t {clause.format(expression, f'NOT ({expression} > 0)')}", table) == []


@settings(max_examples=500, deadline=None)
@given(conditions, tables)
def test_a_condition_between_rows_equals_its_measure(condition, found):
    table = pa.Table.from_pylist([{"n": place, **row} for place, row in enumerate(found)], schema=SCHEMA)
    clause = (
        "MATCH_RECOGNIZE (ORDER BY n MEASURES A.n AS n, {} AS r AFTER MATCH SKIP TO NEXT ROW PATTERN (A A B) "
        "DEFINE B AS {})"
    )
    measured = rows(f"SELECT n, r FROM t {clause.format(condition, 'TRUE')}", table)
    matched = rows(f"SELECT n, r FROM t {clause.format(condition, condition)}", table)
    assert matched == [row for row in measured if row["r"]]

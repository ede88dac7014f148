"""Functions equal those of DuckDB where the meaning is the same, on random values with nulls."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import columns_of_events, parse_event_expression
from streams import Event, EventBatch

ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"]
TEXTS = {  # DuckDB's case and white space are other ones outside of ASCII
    "lower(a)": "lower(a)",
    "upper(a)": "upper(a)",
    "trim(a)": "trim(a, E' \\t')",
    "length(a)": "length(a)",
    "substr(a, 2)": "substr(a, 2)",
    "substr(a, 2, 3)": "substr(a, 2, 3)",
    "substr(a, -2)": "CASE WHEN length(a) < 2 THEN a ELSE substr(a, -2) END",
    "concat(a, '-', b)": "a || '-' || b",
    "contains(a, b)": "contains(a, b)",
    "starts_with(a, b)": "starts_with(a, b)",
    "ends_with(a, b)": "ends_with(a, b)",
    "matches(a, '^[a-m]+.?[B-Z]')": "regexp_matches(a, '^[a-m]+.?[B-Z]')",
    "a LIKE 'a%b_'": "a LIKE 'a%b_'",
    "coalesce(a, b)": "coalesce(a, b)",
    "CASE WHEN a = b THEN 'x' WHEN a IS NULL THEN b END": "CASE WHEN a = b THEN 'x' WHEN a IS NULL THEN b END",
    "a BETWEEN 'a' AND b": "a BETWEEN 'a' AND b",
}
NUMBERS = {
    "abs(x)": "abs(x)",
    "round(x)": "round(x)",
    "round(x, 2)": "round(x, 2)",
    "round(x, -1)": "round(x, -1)",
    "floor(x)": "floor(x)",
    "ceil(x)": "ceil(x)",
    "sqrt(x)": "sqrt(x)",
    "ln(x)": "ln(x)",
    "pow(x, y)": "pow(x, y)",
    "mod(x, y)": "x % y",
    "least(x, y)": "CASE WHEN x IS NOT NULL AND y IS NOT NULL THEN least(x, y) END",
    "greatest(x, y)": "CASE WHEN x IS NOT NULL AND y IS NOT NULL THEN greatest(x, y) END",
    "x NOT BETWEEN 1 AND y": "x NOT BETWEEN 1 AND y",
    "if(x > y, 1, 2)": "if(x > y, 1, 2)",
}
CLOCKS = {
    "year(t, '{}')": "year({})",
    "month(t, '{}')": "month({})",
    "day(t, '{}')": "day({})",
    "hour(t, '{}')": "hour({})",
    "minute(t, '{}')": "minute({})",
    "second(t, '{}')": "second({})",
    "weekday(t, '{}')": "isodow({})",
    "date(t, '{}')": "strftime({}, '%Y-%m-%d')",
}

texts = (
    st.none() | st.text(st.sampled_from("abkzABZ %_-.\t9"), max_size=6) | st.text(st.sampled_from("ä€𝄞x"), max_size=4)
)
numbers = st.none() | st.floats(-1e6, 1e6) | st.integers(-20, 20).map(float) | st.sampled_from([0.5, 2.5, -2.5, 1.005])
moments = st.none() | st.integers(-(10**15), 4 * 10**15)


def require_equal(forms: dict[str, str], rows: list[dict[str, Any]], kind: pa.DataType) -> None:
    """Every form has the value that DuckDB computes, on every row; what is not finite there is null here."""
    events = [Event(id=str(number), type="A", time_us=number, key="k", data=row) for number, row in enumerate(rows)]
    columns = columns_of_events(EventBatch.from_events(events))
    given = pa.table({name: pa.array([row[name] for row in rows], kind) for name in rows[0]})
    with duckdb.connect() as connection:
        connection.register("given", given)
        wanted = connection.execute(f"SELECT {', '.join(forms.values())} FROM given").fetchall()
    for form, others in zip(forms, zip(*wanted, strict=True), strict=True):
        for one, other in zip(parse_event_expression(form).column(columns, np.arange(len(rows))), others, strict=True):
            if isinstance(other, float):
                is_known, is_number = math.isfinite(other), isinstance(one, int | float)
                is_equal = math.isclose(float(one or 0), other, rel_tol=1e-14) if is_number else one is None
                is_equal = is_equal and is_known == is_number
            else:
                is_equal = one == other
            assert is_equal, f"{form} is {one!r} and not {other!r}: {rows}"


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.fixed_dictionaries({"a": texts, "b": texts}), min_size=1, max_size=40))
def test_functions_of_texts(rows: list[dict[str, Any]]) -> None:
    require_equal(TEXTS, rows, pa.string())


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.fixed_dictionaries({"x": numbers, "y": numbers}), min_size=1, max_size=40))
def test_functions_of_numbers(rows: list[dict[str, Any]]) -> None:
    require_equal(NUMBERS, rows, pa.float64())


@settings(max_examples=200, deadline=None)
@given(zone=st.sampled_from(ZONES), rows=st.lists(st.fixed_dictionaries({"t": moments}), min_size=1, max_size=40))
def test_clocks(zone: str, rows: list[dict[str, Any]]) -> None:
    local = f"timezone('{zone}', timezone('UTC', make_timestamp(t)))"
    require_equal({form.format(zone): sql.format(local) for form, sql in CLOCKS.items()}, rows, pa.int64())

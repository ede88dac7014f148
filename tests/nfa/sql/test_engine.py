"""The engine gives the rows of the reference, in its order, on random clauses and tables."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa import PatternRefused, RowPatternFailed, run_query
from tests.references import row_patterns

LABELS = "ABC"
START = datetime(2026, 1, 1)


def sizes(low, high):
    return st.integers(low, high)


quantifiers = st.sampled_from(
    ["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}", "{1,}?", "{,2}?"]
)
patterns = st.recursive(
    st.one_of(st.sampled_from(LABELS), st.sampled_from([*LABELS, "()", "^", "$"])),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} | {pair[1]})"),
        st.tuples(inner, quantifiers).map(lambda pair: f"({pair[0]}){pair[1]}"),
        inner.map(lambda one: f"{{- {one} -}}"),
        st.tuples(inner, inner).map(lambda pair: f"PERMUTE({pair[0]}, {pair[1]})"),
    ),
    max_leaves=5,
)

variables = st.sampled_from(["", "A.", "B.", "C.", "U."])
columns = st.sampled_from(["v", "w"])
plain = st.tuples(variables, columns).map("".join)
navigations = st.one_of(
    plain,
    st.tuples(st.sampled_from(["FIRST", "LAST"]), plain, sizes(0, 2)).map(lambda one: f"{one[0]}({one[1]}, {one[2]})"),
    st.tuples(st.sampled_from(["PREV", "NEXT"]), plain, sizes(0, 2)).map(lambda one: f"{one[0]}({one[1]}, {one[2]})"),
    st.tuples(
        st.sampled_from(["PREV", "NEXT"]), st.sampled_from(["FIRST", "LAST"]), plain, sizes(0, 1), sizes(0, 2)
    ).map(lambda one: f"{one[0]}({one[1]}({one[2]}, {one[3]}), {one[4]})"),
)
aggregates = st.tuples(st.sampled_from(["sum", "avg", "min", "max", "count", "arbitrary"]), plain).map(
    lambda one: f"{one[0]}({one[1]})"
)
numbers = st.recursive(
    st.one_of(
        navigations,
        aggregates,
        st.sampled_from(["count(*)", "count(A.*)", "match_number()", "1", "2", "0.5", "NULL"]),
        st.sampled_from(["length(CLASSIFIER(U))", "count(CLASSIFIER(B))", "min(length(CLASSIFIER()) + v)"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda one: f"({one[0]} {one[1]} {one[2]})"),
        st.tuples(inner, inner).map(lambda one: f"coalesce({one[0]}, {one[1]})"),
        inner.map(lambda one: f"abs({one})"),
        st.tuples(inner, inner).map(lambda one: f"CASE WHEN v > 1 THEN {one[0]} ELSE {one[1]} END"),
    ),
    max_leaves=3,
)
texts = st.sampled_from(
    ["s", "A.s", "FIRST(U.s)", "PREV(s)", "CLASSIFIER()", "LAST(CLASSIFIER(), 1)", "'B'", "'x'", "max(s)"]
)
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
conditions = st.recursive(
    st.one_of(
        st.tuples(numbers, comparisons, numbers).map(" ".join),
        st.tuples(texts, comparisons, texts).map(" ".join),
        numbers.map(lambda one: f"{one} IS NULL"),
        st.tuples(numbers, numbers).map(lambda one: f"{one[0]} IS DISTINCT FROM {one[1]}"),
        st.tuples(numbers, numbers).map(lambda one: f"{one[0]} IN (1, {one[1]})"),
        st.sampled_from(["TRUE", "t - FIRST(t) < INTERVAL '3' SECOND", "LAST(B.t) IS NULL OR t > LAST(B.t)"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda one: f"({one[0]} AND {one[1]})"),
        st.tuples(inner, inner).map(lambda one: f"({one[0]} OR {one[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=2,
)
measures = st.one_of(
    numbers,
    texts,
    st.tuples(st.sampled_from(["FINAL", "RUNNING"]), aggregates).map(" ".join),
    st.sampled_from(["FINAL LAST(v, 1)", "array_agg(v)", "max_by(s, w)", "count(DISTINCT v)", "lower(CLASSIFIER(U))"]),
    st.sampled_from(["FINAL FIRST(A.v, 1)", "array_agg(s || CLASSIFIER())", "NEXT(CLASSIFIER(), 1)", "max(t)"]),
    st.sampled_from(
        ["FIRST(A.t, 1) - greatest(t, A.t)", "least(t, NEXT(t)) - max(B.t)", "least(v, w) BETWEEN 1 AND B.v"]
    ),
)
row_modes = st.sampled_from(
    [
        "",
        "ONE ROW PER MATCH",
        "ALL ROWS PER MATCH",
        "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
    ]
)
skips = st.sampled_from(["", "PAST LAST ROW", "TO NEXT ROW", "TO NEXT ROW", "TO FIRST B", "TO LAST U", "TO C"])
orders = st.sampled_from(["ORDER BY t", "ORDER BY v DESC NULLS FIRST, t", "ORDER BY w, t DESC", "ORDER BY s, t", ""])
rows = st.lists(
    st.fixed_dictionaries(
        {
            "p": st.sampled_from(["x", "y", None]),
            "t": sizes(0, 6).map(lambda second: START + timedelta(seconds=second)),
            "v": st.one_of(sizes(-1, 3), st.none()),
            "w": st.sampled_from([0.5, 1.0, 2.5, None]),
            "s": st.sampled_from(["A", "B", "x", None]),
        }
    ),
    max_size=9,
)
SCHEMA = pa.schema(
    [("p", pa.string()), ("t", pa.timestamp("us")), ("v", pa.int64()), ("w", pa.float64()), ("s", pa.string())]
)


@st.composite
def clauses(draw):
    order = draw(orders)
    pattern, chosen, found = (
        draw(patterns),
        draw(st.lists(measures, max_size=3)),
        draw(st.lists(conditions, max_size=3)),
    )
    within = "WITHIN INTERVAL '3' SECOND" if order == "ORDER BY t" and draw(st.booleans()) else ""
    skip, mode = draw(skips), draw(row_modes)
    parts = [
        draw(st.sampled_from(["", "PARTITION BY p", "PARTITION BY p, s"])),
        order,
        "MEASURES " + ", ".join(f"{one} AS m{place}" for place, one in enumerate(chosen)) if chosen else "",
        mode,
        f"AFTER MATCH SKIP {skip}" if skip else "",
        f"PATTERN ({pattern} | A B? C)" if "-}" not in pattern or "UNMATCHED" not in mode else "PATTERN (A+ B C?)",
        within,
        "SUBSET U = (A, B)",
        "DEFINE " + ", ".join(f"{label} AS {one}" for label, one in zip(LABELS, found, strict=False)) if found else "",
    ]
    return f"SELECT * FROM t MATCH_RECOGNIZE ({' '.join(parts)})"


def near(left, right):
    if isinstance(left, float) and isinstance(right, float | int):
        return left == pytest.approx(right, nan_ok=True)
    return left == right


def outcome(query, table):
    """The rows of a query; or its error."""
    try:
        found = run_query(query, {"t": table}.get)
    except (PatternRefused, RowPatternFailed) as error:
        return error
    return [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


@given(clauses(), rows)
def test_engine_equals_reference(query, found):
    actual = outcome(query, pa.Table.from_pylist(found, schema=SCHEMA))
    if isinstance(actual, RowPatternFailed):
        assert "AFTER MATCH SKIP" in actual.message
        with pytest.raises(row_patterns.SkipFails):
            row_patterns.run_clause(query, found, SCHEMA.names)
        return
    assert not isinstance(actual, PatternRefused), (query, actual)
    expected = row_patterns.run_clause(query, found, SCHEMA.names)
    if not any(expected):
        return  # without columns
    assert len(actual) == len(expected), (query, actual, expected)
    for left, right in zip(actual, expected, strict=True):
        assert all(map(near, left, right)), (query, left, right)

"""Each operator between rows of a match against the reference, and each function of a row against plain values."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from nfa import run_query
from tests.references import row_patterns

START = datetime(2026, 1, 1)
ROWS = [
    {"t": START + timedelta(seconds=place), "v": v, "w": w, "s": s, "f": f}
    for place, (v, w, s, f) in enumerate(
        [
            (1, 0.5, "a", True),
            (2, None, "b", False),
            (-3, 2.5, None, None),
            (0, 0.0, "a", True),
            (None, 1.5, "c", True),
            (7, -1.0, "b", False),
            (7, 1.0, "b", None),
            (2, 2.0, "d", True),
        ]
    )
]
SCHEMA = pa.schema(
    [("t", pa.timestamp("us")), ("v", pa.int64()), ("w", pa.float64()), ("s", pa.string()), ("f", pa.bool_())]
)
BETWEEN_ROWS = [
    *(f"v {sign} A.v" for sign in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")),
    *(f"w {sign} A.w" for sign in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")),
    *(f"s {sign} A.s" for sign in ("=", "<>", "<", ">=", "IS DISTINCT FROM")),
    *(f"v {sign} A.v > 0" for sign in "+-*/%"),
    *(f"w {sign} A.w > 0.5" for sign in "+-*/%"),
    *(f"v {sign} A.w > 0.5" for sign in "+-*/%"),
    "-(A.v + v) < 0",
    "-(A.w + w) < 0",
    "abs(A.v - v) > 2",
    "abs(A.w - w) >= 1",
    "least(v, A.v) > 0",
    "greatest(w, A.w, 1.0) > 1.5",
    "coalesce(v, A.v, 3) > 1",
    "coalesce(A.w + w, 3.5) > 1",
    "CASE WHEN v > A.v THEN w ELSE A.w END > 0",
    "CASE WHEN v > A.v THEN s WHEN v = A.v THEN A.s END = 'b'",
    "CASE A.s WHEN 'a' THEN v > 0 WHEN s THEN FALSE ELSE v < 0 END",
    "v > A.v AND w > A.w",
    "v > A.v OR w > A.w",
    "NOT (v > A.v OR f <> A.f)",
    "f AND A.f",
    "A.v IS NULL OR (v = A.v) IS NULL",
    "v IN (A.v, 2) OR s IN ('d', A.s)",
    "v NOT BETWEEN A.v AND 7",
    "t - A.t >= INTERVAL '2' SECOND",
    "A.t + INTERVAL '2' SECOND < t",
    "t - INTERVAL '1' SECOND = A.t",
    "INTERVAL '1' SECOND + A.t = t",
    "(t - A.t) * 2 > INTERVAL '3' SECOND",
    "(t - A.t) + (t - A.t) > INTERVAL '3' SECOND",
    "t > TIMESTAMP '2026-01-01 00:00:03' AND A.v = 1",
    "match_number() * 2 > count(*) OR A.v > 5",
    *(f"{name}(B.v) > A.v" for name in ("sum", "avg", "min", "max", "count", "arbitrary")),
    *(f"{name}(B.w) > A.w" for name in ("sum", "avg", "min", "max", "count", "arbitrary")),
    "min(s) = 'a' AND max(A.s) <> 'b'",
    "count(B.*) + count(*) > 4",
    "count(CLASSIFIER(U)) > count(v)",
    "max(lower(CLASSIFIER())) = 'b' AND A.v > 0",
    "LAST(B.v, 1) IS NULL OR v > LAST(B.v, 1)",
    "FIRST(B.w, 1) IS NULL OR w > FIRST(U.w, 1)",
    "FIRST(v, 2) > 0 OR LAST(w, 2) > 0",
    "PREV(FIRST(A.v), 1) > v",
    "NEXT(LAST(A.v), 2) > v",
    "LAST(CLASSIFIER(), 1) = 'A' OR PREV(CLASSIFIER(U), 1) IS NULL",
    "NEXT(CLASSIFIER()) IS NULL AND A.v > 0",
    "A.f",
    "NULL OR A.f",
    "lower(A.s) = s",
]
FUNCTIONS = [
    ("abs(-3)", 3),
    ("sign(-2)", -1),
    ("ceil(1.2)", 2.0),
    ("floor(-1.2)", -2.0),
    ("round(2.5)", 3.0),
    ("round(-1.256, 2)", -1.26),
    ("round(2.5, 15)", 2.5),
    ("round(n, NULL)", None),
    ("round(NULL, NULL)", None),
    ("sqrt(9)", 3.0),
    ("ln(1)", 0.0),
    ("exp(0)", 1.0),
    ("power(2, 3)", 8.0),
    ("mod(-7, 3)", -1),
    ("-7 / 2", -3),
    ("7.5 % 2", 1.5),
    ("greatest(1, 3, 2)", 3),
    ("least(1, NULL)", None),
    ("coalesce(NULL, 4)", 4),
    ("nullif(1, 1)", None),
    ("nullif(2, 1)", 2),
    ("if(n > 0, 'yes', 'no')", "yes"),
    ("lower('Ä')", "ä"),
    ("upper('ä')", "Ä"),
    ("length('äb')", 2),
    ("trim('  a ')", "a"),
    ("substr('abcd', 2)", "bcd"),
    ("substr('abcd', 2, 2)", "bc"),
    ("substr('abcd', -2)", "cd"),
    ("substr('abcd', 0)", ""),
    ("substr('abcd', 2, 2147483647)", "bcd"),
    ("substr('abcd', NULL)", None),
    ("substr(CLASSIFIER(), 1, NULL)", None),
    ("concat('a', NULL, 1)", "a1"),
    ("'a' || 1", "a1"),
    ("'a' || NULL", None),
    ("starts_with('abc', 'ab')", True),
    ("starts_with('abc', NULL)", None),
    ("NOT starts_with(CLASSIFIER(), NULL)", None),
    ("'a.c' LIKE 'a.%'", True),
    ("'abc' LIKE 'a_'", False),
    ("'50%' LIKE '50!%' ESCAPE '!'", True),
    ("'abc' NOT LIKE '%b%'", False),
    ("year(t)", 2026),
    ("EXTRACT(hour FROM t)", 10),
    ("month(t) + day(t) + minute(t) + second(t)", 1 + 2 + 30 + 0),
    ("to_seconds(t - TIMESTAMP '2026-01-02 10:00:00')", 1800),
    ("to_milliseconds(INTERVAL '1.5' SECOND)", 1500),
    ("INTERVAL '2 hours'", timedelta(hours=2)),
    ("CAST('7' AS bigint)", 7),
    ("CAST(2.5 AS integer)", 3),
    ("CAST(true AS bigint)", 1),
    ("CAST(1 AS double)", 1.0),
    ("CAST('abc' AS varchar(2))", "ab"),
    ("CAST(12 AS varchar)", "12"),
    ("CAST(1 AS boolean)", True),
    ("CAST('2026-01-02 03:04:05' AS timestamp)", datetime(2026, 1, 2, 3, 4, 5)),
    ("CAST(t AS date)", date(2026, 1, 2)),
    ("DATE '2026-01-03' - DATE '2026-01-01'", timedelta(days=2)),
    ("DATE '2026-01-01' + INTERVAL '1' DAY", datetime(2026, 1, 2)),
    ("DATE '2026-01-02' < t", True),
    ("z >= TIMESTAMP '2026-01-02 10:30:00'", True),
    ("TIMESTAMP '2026-01-02 10:30:00' = z", True),
    ("INTERVAL '1' HOUR / 2", timedelta(minutes=30)),
    ("1e3 + .5", 1000.5),
    ("NOT NULL", None),
    ("+n", 1),
]
MOMENT = datetime(2026, 1, 2, 10, 30)
ONE = pa.table({"n": [1], "t": [MOMENT], "z": pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize("condition", BETWEEN_ROWS)
def test_an_operator_between_rows_is_that_of_the_reference(condition):
    query = (
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES CLASSIFIER() AS label "
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS "
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN (A C? B+) SUBSET U = (A, B) DEFINE B AS {condition}, C AS v > A.v)"
    )
    found = run_query(query, lambda _: pa.Table.from_pylist(ROWS, schema=SCHEMA))
    actual = [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]
    assert actual == row_patterns.run_clause(query, ROWS, SCHEMA.names)


@pytest.mark.parametrize(("expression", "value"), FUNCTIONS)
def test_a_function_of_one_row(expression, value):
    (row,) = run_query(
        f"SELECT x FROM t MATCH_RECOGNIZE (MEASURES {expression} AS x PATTERN (A))", lambda _: ONE
    ).to_pylist()
    assert row["x"] == value
    assert type(row["x"]) is type(value)


def test_room_for_results_and_branches_is_made_where_it_is_needed():
    size = 2_500
    table = pa.table({"n": list(range(size))})
    every = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c AFTER MATCH SKIP TO NEXT ROW PATTERN (A{1,3}))"
    assert run_query(f"SELECT * FROM t {every}", lambda _: table).num_rows == size
    empty = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A*?))"
    assert run_query(f"SELECT * FROM t {empty}", lambda _: table).num_rows == size
    unmatched = "MATCH_RECOGNIZE (ORDER BY n ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A) DEFINE A AS FALSE)"
    assert run_query(f"SELECT * FROM t {unmatched}", lambda _: table).num_rows == size
    deep = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN ((A | B)+) DEFINE A AS n >= FIRST(n))"
    assert run_query(f"SELECT * FROM t {deep}", lambda _: table).to_pylist() == [{"c": size}]


@pytest.mark.parametrize("value", ["x - y", "y - x", "x + d", "d + d", "y - d", "d * 3", "x - INTERVAL '1' DAY"])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_what_is_stored_under_a_null_is_not_added(value, unit):
    stored = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([5_000, -(2**63), 7_000], np.int64).tobytes())]
    x, d = (pa.Array.from_buffers(kind, 3, stored) for kind in (pa.timestamp(unit), pa.duration(unit)))
    table = pa.table({"id": [1, 2, 3], "x": x, "d": d, "y": pa.array([0, 2**62, 0], pa.timestamp(unit))})
    clause = f"MATCH_RECOGNIZE (ORDER BY id ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS id = 2 OR {value} IS NOT NULL)"
    found = run_query(f"SELECT {value} AS r FROM t {clause}", {"t": table}.get)["r"]
    assert found.is_null().to_pylist() == [False, True, False]
    assert found.type.unit == unit

"""The query around the clause, the columns of its result, and bounds of work."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from nfa import PatternRefused, RowPatternFailed, run_query

ROWS = pa.table({"k": ["a", "a", "b", "b"], "n": [1, 2, 1, 5], "X": [0.5, 1.5, None, 2.5]})
CLAUSE = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY n MEASURES B.n - A.n AS d, sum(X) AS s PATTERN (A B) DEFINE {x})"


def rows(query, table=ROWS, **options):
    return run_query(query, {"t": table}.get, **options).to_pylist()


def query(select="*", rest="", x="B AS n > A.n"):
    return f"SELECT {select} FROM t {CLAUSE.format(x=x)} {rest}"


def test_star_is_all_columns():
    assert rows(query()) == [{"k": "a", "d": 1, "s": 2.0}, {"k": "b", "d": 4, "s": 2.5}]
    assert rows(query("m.*", "AS m")) == rows(query())


def test_selected_expressions_have_names():
    assert rows(query("d * 10 AS tens, upper(k) big, d")) == [
        {"tens": 10, "big": "A", "d": 1},
        {"tens": 40, "big": "B", "d": 4},
    ]


def test_where_order_and_limit_apply_to_the_result():
    assert rows(query("k", "m WHERE m.d > 1")) == [{"k": "b"}]
    assert rows(query("k", "ORDER BY s DESC LIMIT 1")) == [{"k": "b"}]
    assert rows(query("k", "WHERE s IS NULL")) == []
    assert rows(query("k", "LIMIT 0")) == []


def test_a_whole_number_in_order_by_is_the_place_of_a_column_of_select():
    assert rows(query("k, d", "ORDER BY 2 DESC LIMIT 1")) == [{"k": "b", "d": 4}]
    assert rows(query("k, 0 - d AS x, m.k AS l", "AS m ORDER BY 2 LIMIT 1")) == [{"k": "b", "x": -4, "l": "b"}]
    assert rows(query("*", "ORDER BY 2 DESC LIMIT 1")) == [{"k": "b", "d": 4, "s": 2.5}], "* is all its columns"
    assert rows(query("m.*", "AS m ORDER BY 1 DESC, 2 LIMIT 1")) == [{"k": "b", "d": 4, "s": 2.5}]
    assert rows(query("1 AS one, d", "ORDER BY 1, 2 DESC")) == [{"one": 1, "d": 4}, {"one": 1, "d": 1}]


@pytest.mark.parametrize(
    ("select", "rest", "values"),
    [
        ("0 - d AS x", "ORDER BY x", [-4, -1]),
        ("0 - d AS x", "ORDER BY X DESC LIMIT 1", [-1]),
        ("0 - d AS x", "ORDER BY x + 1", [-4, -1]),
        ("0 - d AS x", "m ORDER BY m.d", [-1, -4]),
        ("0 - d AS d", "ORDER BY d", [-4, -1]),
        ("0 - d AS d", "ORDER BY abs(d)", [-1, -4]),
        ("0 - d AS d", "m ORDER BY m.d", [-1, -4]),
        ("0 - d", "ORDER BY _col0", [-4, -1]),
        ("1 AS one", "ORDER BY one", [1, 1]),
        ("0 - d AS x", "WHERE d > 1 ORDER BY x", [-4]),
    ],
)
def test_order_by_reads_a_column_of_select_by_its_alias_before_a_column_of_the_clause(select, rest, values):
    assert [value for row in rows(query(select, rest)) for value in row.values()] == values


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("ORDER BY y", "there is no column y; the columns are k, d, s"),
        ("ORDER BY m.x", "there is no column x; the columns are k, d, s"),
        ("WHERE x > 1", "there is no column x; the columns are k, d, s"),
    ],
)
def test_a_name_that_the_query_lacks_is_refused(rest, message):
    text = query("0 - d AS x", f"m {rest}")
    with pytest.raises(PatternRefused) as refused:
        rows(text)
    assert refused.value.message.endswith(message)


def test_an_ambiguous_alias_in_order_by_is_refused():
    with pytest.raises(PatternRefused, match="xX may be Xx or XX; write the exact name"):
        rows(query("d AS Xx, d AS XX", "ORDER BY xX"))


@pytest.mark.parametrize(
    ("select", "item", "message"),
    [
        ("k, d", "3", "ORDER BY 3 is not a column of SELECT; write a number from 1 to 2, or a name"),
        ("k, d", "0", "ORDER BY 0 is not a column of SELECT"),
        ("*", "4 DESC", "ORDER BY 4 is not a column of SELECT; write a number from 1 to 3, or a name"),
        ("*", "99999999999999999999", "ORDER BY has a constant"),
        ("k, d", "1 + 1", "ORDER BY has a constant, which orders nothing; write a column"),
        ("k, d", "-(1)", "ORDER BY"),
        ("k, d", "'d'", "ORDER BY has a constant"),
        ("k, d", "1.0", "ORDER BY has a constant"),
        ("k, d", "TRUE", "ORDER BY has a constant"),
        ("k, d", "NULL", "ORDER BY has a constant"),
    ],
)
def test_an_order_by_that_orders_nothing_is_refused(select, item, message):
    text = query(select, f"ORDER BY d, {item}")
    with pytest.raises(PatternRefused) as refused:
        rows(text)
    assert refused.value.reason == "order"
    assert f"line 1, column {text.rindex(item) + 1}: {message}" in refused.value.message


SHARED = "PARTITION BY g MEASURES A.v AS g, A.o AS o, A.x AS z"
CALLED = "PARTITION BY and measure 1 are both called g; give the measure another name with AS"


@pytest.mark.parametrize(
    ("select", "clause", "rest", "message"),
    [
        (
            "v, v",
            "MEASURES v AS v",
            "",
            "line 1, column 11: columns 1 and 2 of SELECT are both called v; give",
        ),
        (
            "v AS a, m.o AS b, o a",
            "MEASURES v AS v, o AS o",
            "m",
            "column 26: columns 1 and 3 of SELECT are both",
        ),
        ("o + 1, v AS _col0", "MEASURES v AS v, o AS o", "", "columns 1 and 2 of SELECT are both called _col0"),
        ("*", SHARED, "", f"line 1, column 58: a column of {CALLED}"),
        ("z, g", SHARED, "", CALLED),
        ("z", SHARED, "WHERE G > 1", CALLED),
        ("z", SHARED, "ORDER BY g", CALLED),
        ("m.*", "MEASURES A.v AS a, A.x AS a", "m", "measure 1 and measure 2 are both called a"),
        (
            "*",
            "ORDER BY o MEASURES A.v AS o ALL ROWS PER MATCH",
            "",
            "a column of ORDER BY and measure 1 are both",
        ),
        ("v", "MEASURES sum(v) AS v ALL ROWS PER MATCH", "", "a column of the table and measure 1 are both called v"),
    ],
)
def test_two_columns_of_one_name_are_refused(select, clause, rest, message):
    table = pa.table({"g": [1], "o": [1], "v": [10], "x": [3]})
    with pytest.raises(PatternRefused) as refused:
        rows(f"SELECT {select} FROM t MATCH_RECOGNIZE ({clause} PATTERN (A)) {rest}", table)
    assert refused.value.reason == "duplicate"
    assert message in refused.value.message


def test_columns_of_one_name_are_no_fault_where_the_query_reads_neither_or_both_are_one_column():
    table = pa.table({"g": [1], "o": [1], "v": [10], "x": [3]})
    assert rows(f"SELECT z FROM t MATCH_RECOGNIZE ({SHARED} PATTERN (A))", table) == [{"z": 3}]
    twice = "PARTITION BY g ORDER BY g, o, o DESC MEASURES v AS V ALL ROWS PER MATCH"
    (row,) = rows(f"SELECT * FROM t MATCH_RECOGNIZE ({twice} PATTERN (A)) ORDER BY 7", table)
    assert row == {"g": 1, "o": 1, "V": 10, "v": 10, "x": 3}


def test_names_of_columns_ignore_case():
    assert rows(query().replace("sum(X)", "sum(x)")) == rows(query())


TWICE = pa.table({"N": [1], "nn": [2], "NN": [3]})


def test_an_ambiguous_name_is_refused():
    with pytest.raises(PatternRefused, match="Nn may be nn or NN; write the exact name"):
        rows("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY Nn PATTERN (A))", TWICE)


def test_rows_keep_the_order_of_the_input_where_nothing_orders_them():
    found = rows("SELECT n FROM t MATCH_RECOGNIZE (MEASURES A.n AS n PATTERN (A))")
    assert [row["n"] for row in found] == [1, 2, 1, 5]


def test_many_partitions_by_two_columns_stay_apart():
    numbers = list(range(65_537))  # pairs are numbered up to 2**32
    table = pa.table({"p": numbers, "s": [number % 65_536 for number in numbers]})
    assert rows("SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY p, s MEASURES B.p AS q PATTERN (A B))", table) == []


def test_types_of_columns_are_kept():
    day = datetime(2026, 1, 1, tzinfo=UTC)
    kinds = pa.table(
        {
            "c": pa.array(["x", "y"]).dictionary_encode(),
            "t": pa.array([day, day + timedelta(hours=1)], pa.timestamp("ms", "UTC")),
            "d": [date(2026, 1, 1), date(2026, 1, 2)],
            "l": [[1], [2, 3]],
            "i": pa.array([1, 2], pa.int8()),
        }
    )
    clause = """MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(c) AS c, max(t) AS t, LAST(d) - FIRST(d) AS d, FIRST(l) AS l,
      sum(i) AS i, LAST(t) - FIRST(t) AS took PATTERN (A B)
      DEFINE B AS t > TIMESTAMP '2026-01-01 00:30:00' AND c = 'y' AND t - A.t < INTERVAL '2' HOUR AND A.c <> c)"""
    assert rows(f"SELECT * FROM t {clause}", kinds) == [
        {
            "c": "y",
            "t": day + timedelta(hours=1),
            "d": timedelta(days=1),
            "l": [1],
            "i": 3,
            "took": timedelta(hours=1),
        }
    ]


def test_within_is_exclusive():
    table = pa.table({"n": [0, 9, 10, 30]})
    clause = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A+) WITHIN 10)"
    assert [row["c"] for row in rows(f"SELECT * FROM t {clause}", table)] == [2, 1, 1]


@pytest.mark.parametrize("within", ["INTERVAL '1' HOUR", "0", "-1", "true"])
def test_a_within_that_does_not_fit_the_order_is_refused(within):
    with pytest.raises(PatternRefused, match="WITHIN takes a positive INTERVAL"):
        rows(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY n PATTERN (A+) WITHIN {within})")


def test_within_needs_a_value_on_every_row():
    with pytest.raises(PatternRefused, match="WITHIN needs a value of n on every row"):
        rows("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY n PATTERN (A+) WITHIN 1)", pa.table({"n": [1, None]}))


def test_the_work_of_a_partition_is_bounded():
    table = pa.table({"n": list(range(40))})
    exponential = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY n PATTERN ((A | B)+ C) DEFINE C AS FIRST(n) < 0)"
    with pytest.raises(RowPatternFailed, match="takes more than 1000 steps"):
        rows(exponential, table, max_steps=1000)


@pytest.mark.compiled
def test_a_search_without_history_is_linear():
    table = pa.table({"n": [1] * 20_000})
    clause = "MATCH_RECOGNIZE (MEASURES count(*) AS c PATTERN ((A+)+ B) DEFINE A AS n = 1, B AS n = 2)"
    assert rows(f"SELECT * FROM t {clause}", table, max_steps=400_000) == []


@pytest.mark.compiled
def test_long_matches_and_many_results_find_room():
    size = 50_000
    table = pa.table({"n": list(range(size))})
    one = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A+))"
    assert rows(f"SELECT * FROM t {one}", table) == [{"c": size}]
    every = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c AFTER MATCH SKIP TO NEXT ROW PATTERN (A{1,9}))"
    assert len(rows(f"SELECT * FROM t {every}", table)) == size
    back = "MATCH_RECOGNIZE (ORDER BY n MEASURES count(*) AS c PATTERN (A+) DEFINE A AS n >= FIRST(n))"
    assert rows(f"SELECT * FROM t {back}", table) == [{"c": size}]


def test_division_by_zero_is_null():
    table = pa.table({"n": [0, 2], "x": [0.0, 2.0]})
    found = rows("SELECT * FROM t MATCH_RECOGNIZE (MEASURES 6 / n AS n, 6 % x AS x, 7 / 2 AS w PATTERN (A))", table)
    assert found == [{"n": None, "x": None, "w": 3}, {"n": 3, "x": 0.0, "w": 3}]


def test_an_overflow_is_an_error():
    with pytest.raises(PatternRefused, match="its result is too large"):
        rows(query("d * 9223372036854775807"))


def test_the_value_beside_a_maximum_may_be_null():
    table = pa.table({"n": [1, 2, None], "s": ["x", None, "z"]})
    assert rows("SELECT * FROM t MATCH_RECOGNIZE (MEASURES max_by(s, n) AS s PATTERN (A+))", table) == [{"s": None}]


ORDERED = "SELECT r FROM t MATCH_RECOGNIZE (ORDER BY {order} MEASURES array_agg(id) AS r PATTERN (a+))"


@pytest.mark.parametrize(
    ("order", "values", "ids"),
    [
        ("x", [3.0, float("nan"), 1.0, None], [3, 1, 2, 4]),
        ("x DESC NULLS FIRST", [3.0, 4.0, float("nan"), 1.0], [3, 2, 1, 4]),
        ("x", pa.array([3.0, float("nan"), 1.0], pa.float32()).dictionary_encode(), [3, 1, 2]),
        ("x", pa.array([300, 200, 100, None], pa.timestamp("ns", "UTC")), [3, 2, 1, 4]),
        ("x DESC", pa.array([100, 200, 300], pa.duration("ns")), [3, 2, 1]),
        ("x", pa.array([3, 1, 2], pa.time64("ns")), [2, 3, 1]),
        ("x DESC", pa.array([3, 1, 2], pa.time32("s")), [1, 3, 2]),
        ("x", pa.array([2**62, 1, -(2**62)], pa.timestamp("s")), [3, 2, 1]),
        ("x DESC", pa.array([1, 2**64 - 1, None], pa.uint64()), [2, 1, 3]),
        ("x DESC", pa.array([False, True], pa.bool_()), [2, 1]),
        ("x DESC", pa.array([1, 3, 2], pa.date32()), [2, 3, 1]),
    ],
)
def test_rows_are_sorted_by_all_their_values(order, values, ids):
    table = pa.table({"id": range(1, len(values) + 1), "x": values})
    assert rows(ORDERED.format(order=order), table) == [{"r": ids}]


def test_rows_may_be_divided_by_intervals_of_months():
    months = pa.array([(1, 0, 0), (2, 0, 0), (1, 0, 0)], pa.month_day_nano_interval())
    found = rows(
        "SELECT c FROM t MATCH_RECOGNIZE (PARTITION BY m MEASURES count(*) AS c PATTERN (a+))", pa.table({"m": months})
    )
    assert [row["c"] for row in found] == [2, 1]


def test_nan_is_null():
    table = pa.table({"id": [1, 2, 3, 4], "x": [0.5, float("nan"), None, float("nan")]})
    each = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY x ORDER BY id MEASURES {} AS r {} PATTERN (a+))"
    assert rows(each.format("array_agg(id)", ""), table) == [{"x": 0.5, "r": [1]}, {"x": None, "r": [2, 3, 4]}]
    found = rows(each.format("x IS NULL AND sqrt(0 - id) IS NULL AND sqrt(-1) IS NULL", "ALL ROWS PER MATCH"), table)
    assert [(row["x"], row["r"]) for row in found] == [(0.5, False), (None, True), (None, True), (None, True)]
    infinite = pa.table({"x": [float("inf"), float("-inf"), 1.0]})
    clause = "MATCH_RECOGNIZE (MEASURES A.x AS x, sum(B.x) AS s, sum(x) AS t PATTERN (A B) DEFINE A AS A.x IS NOT NULL)"
    with np.errstate(invalid="ignore"):  # of which the kernel warns as plain Python
        found = rows(f"SELECT x, s, t FROM t {clause} ORDER BY t", infinite)
    assert found == [{"x": float("inf"), "s": float("-inf"), "t": None}]


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("x > PREV(x)", True),
        ("x > FIRST(a.x)", True),
        ("x - a.x > INTERVAL '1' SECOND", False),
        ("x - a.x < INTERVAL '0.000001' SECOND", True),
        ("x - a.x < INTERVAL '0' SECOND", False),
        ("a.x < TIMESTAMP '1970-01-01 00:00:00.000001' AND max(x) <> min(x)", True),
        ("x > d", True),
        ("a.d < x AND a.x > d", True),
    ],
)
def test_times_are_compared_to_the_nanosecond(condition, is_met):
    table = pa.table(
        {"id": [1, 2], "x": pa.array([100, 200], pa.timestamp("ns")), "d": pa.array([0, 0], pa.timestamp("s"))}
    )
    clause = f"MATCH_RECOGNIZE (ORDER BY id MEASURES max(x) = LAST(x) AS r PATTERN (a b) DEFINE b AS {condition})"
    assert rows(f"SELECT r FROM t {clause}", table) == [{"r": True}] * is_met


OUTSIDE = pa.table(
    {
        "id": [1, 2],
        "x": pa.array([100, 200], pa.timestamp("ns")),
        "late": pa.array([datetime(9999, 12, 31), datetime(9999, 12, 30)], pa.timestamp("us")),
        "early": pa.array([date(1, 1, 1), date(1, 1, 2)]),
        "span": [timedelta(days=150_000)] * 2,
        "ends": pa.array([2**63 - 1, 2**63 - 2], pa.timestamp("ns")),
    }
)
BETWEEN_ROWS = "SELECT r FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES id AS r PATTERN (a b) DEFINE b AS {})"


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("x < a.late AND x > a.early AND x > a.x", True),
        ("x BETWEEN a.early AND a.late", True),
        ("x < a.late AND late < a.late AND NOT late = a.late", True),
        ("x > a.early AND early <= a.early", False),
        ("max(late) > x AND min(early) < a.x AND max(late) > min(late)", True),
        ("x > a.x AND a.early < DATE '9999-12-31'", True),
        ("ends < a.ends AND ends < a.late AND NOT ends >= a.late AND ends > a.early", True),
        ("x - a.x < INTERVAL '150000' DAY AND late > a.x", True),
        ("x - a.x > INTERVAL '-150000' DAY", True),
        ("late - a.late < INTERVAL '0' DAY AND x > a.x", True),
        ("a.x + INTERVAL '1' DAY < late", True),
    ],
)
def test_times_outside_those_of_nanoseconds_are_compared(condition, is_met):
    assert rows(BETWEEN_ROWS.format(condition), OUTSIDE) == [{"r": 2}] * is_met


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("x < late", True),
        ("x >= late OR late <= x OR x = early OR NOT x <> late", False),
        ("x BETWEEN early AND DATE '9999-12-31'", True),
        ("x IN (late, early)", False),
        ("x IS DISTINCT FROM late AND nullif(x, late) = x", True),
        ("ends < late AND ends > early AND x - a.x < span", True),
        ("x - TIMESTAMP '1970-01-01 00:00:00' < span", True),
        ("CASE WHEN x < late THEN a.x < x END", True),
        ("to_seconds(ends - x) = 9223372036 AND (ends - x) / 2 > INTERVAL '53375' DAY", True),
        ("CAST(x AS timestamp) - late < INTERVAL '0' DAY", True),
    ],
)
def test_a_row_compares_times_outside_those_of_nanoseconds(condition, is_met):
    assert rows(BETWEEN_ROWS.format(condition), OUTSIDE) == [{"r": 2}] * is_met


WHOLE_MICROSECONDS = OUTSIDE.set_column(1, "x", pa.array([-1_000, 2_000], pa.timestamp("ns")))


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("late - x", datetime(9999, 12, 31) - datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        ("x + span", datetime(1969, 12, 31, 23, 59, 59, 999_999) + timedelta(days=150_000)),
        ("greatest(x, late)", datetime(9999, 12, 31)),
        ("CASE WHEN id = 1 THEN early ELSE x END", datetime(1, 1, 1)),
        ("x", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ],
)
def test_a_row_adds_times_outside_those_of_nanoseconds_if_all_are_whole_microseconds(value, result):
    assert rows(f"SELECT * FROM t MATCH_RECOGNIZE (MEASURES {value} AS r PATTERN (a))", WHOLE_MICROSECONDS)[0] == {
        "r": result
    }


@pytest.mark.parametrize("value", ["late - x", "x + span", "greatest(x, late)", "x - DATE '9999-12-31'"])
def test_a_row_whose_times_do_not_fit_into_nanoseconds_is_refused_with_what_would_be_right(value):
    with pytest.raises(PatternRefused, match=r"fails: beside nanoseconds, .* CAST\(… AS timestamp\)") as refused:
        rows(f"SELECT * FROM t MATCH_RECOGNIZE (MEASURES {value} AS r PATTERN (a))", OUTSIDE)
    assert refused.value.reason == "overflow"


@pytest.mark.parametrize("value", ["CAST(d AS timestamp)", "CAST(c AS timestamp)", "to_seconds(x)", "to_seconds(c)"])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_time_is_no_interval_and_an_interval_no_time(value, unit):
    kinds = {"x": pa.timestamp(unit), "d": pa.duration(unit), "c": pa.time64(unit)}
    table = pa.table({name: pa.array([1_500], kind) for name, kind in kinds.items()})
    with pytest.raises(PatternRefused) as refused:
        rows(f"SELECT * FROM t MATCH_RECOGNIZE (MEASURES {value} AS r PATTERN (a))", table)
    assert refused.value.reason == "type"


def test_a_cast_to_timestamp_rounds_nanoseconds_down():
    table = pa.table({"x": pa.array([-1, 1_999, -(2**63), None], pa.timestamp("ns"))})
    clause = "MATCH_RECOGNIZE (MEASURES CAST(x AS timestamp) AS r AFTER MATCH SKIP TO NEXT ROW PATTERN (a))"
    found = run_query(f"SELECT * FROM t {clause}", {"t": table}.get)["r"]
    assert found.type == pa.timestamp("us")
    assert found.cast(pa.int64()).to_pylist() == [-1, 1, -(2**63) // 1_000, None]


@pytest.mark.parametrize("condition", ["late - a.x > a.x - x", "sum(span) > x - a.x"])
def test_times_outside_those_of_nanoseconds_are_not_added(condition):
    with pytest.raises(PatternRefused) as refused:
        rows(BETWEEN_ROWS.format(condition), OUTSIDE)
    assert refused.value.reason == "overflow"
    assert "line 1, column 89: " in refused.value.message


@pytest.mark.parametrize(
    ("condition", "is_refused"),
    [
        ("x - a.x > INTERVAL '0' DAY", True),
        ("coalesce(x, max(x)) - least(x, a.x) > INTERVAL '0' DAY", True),
        ("a.x + span + span > x AND x - a.x > INTERVAL '0' DAY", True),
        ("a.x + span > a.x AND x > a.x", False),
        ("a.y - y < INTERVAL '0' DAY AND y - CASE WHEN y > a.y THEN a.y ELSE y END > INTERVAL '-1' DAY", False),
    ],
)
def test_a_difference_of_times_that_is_too_large_is_refused(condition, is_refused):
    extremes = pa.array([-9 * 10**18, 9 * 10**18 + 1], pa.timestamp("ns"))
    near = pa.array([9 * 10**18, 9 * 10**18 + 1], pa.timestamp("ns"))
    table = pa.table({"id": [1, 2], "x": extremes, "y": near, "span": [timedelta(days=1)] * 2})
    if not is_refused:
        assert rows(BETWEEN_ROWS.format(condition), table) == [{"r": 2}]
        return
    with pytest.raises(PatternRefused, match="a sum or difference of times in a condition between rows may be"):
        rows(BETWEEN_ROWS.format(condition), table)


def test_within_counts_nanoseconds():
    table = pa.table({"t": pa.array([100, 1_099, 1_100, 5_000], pa.timestamp("ns"))})
    clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS c PATTERN (A+) WITHIN INTERVAL '0.000001' SECOND)"
    assert [row["c"] for row in rows(f"SELECT * FROM t {clause}", table)] == [2, 1, 1]


@pytest.mark.parametrize("other", [pa.array([0, 2**62], pa.timestamp("s")), pa.array([0, 2**63], pa.uint64())])
def test_a_value_that_conditions_between_rows_cannot_hold_is_refused(other):
    table = pa.table({"id": [1, 2], "x": other})
    clause = "MATCH_RECOGNIZE (ORDER BY id MEASURES id AS r PATTERN (a b) DEFINE b AS x > FIRST(a.x))"
    with pytest.raises(PatternRefused, match="line 1, column 89: a value of a column is too large") as refused:
        rows(f"SELECT r FROM t {clause}", table)
    assert refused.value.reason == "overflow"


LEAST, MOST = -(2**63), 2**63 - 1
SUM_FAILS = "sum fails: its result is too large"
MEASURED = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES {} AS r PATTERN (a+))"


@pytest.mark.parametrize(
    ("measure", "values", "result"),
    [
        ("sum(x)", [MOST, 1, -1], MOST),
        ("sum(x)", [LEAST, MOST], -1),
        ("avg(x)", [2**62, 2**62, None], 2.0**62),
        ("avg(x)", [LEAST, LEAST, LEAST], -(2.0**63)),
        ("avg(x)", [2**53 + 1, 1], 2.0**52 + 1),
        ("x % (-1)", [LEAST], 0),
        ("mod(x, 0 - 1)", pa.array([-128], pa.int8()), 0),
        ("x / (-1)", [MOST], -MOST),
        ("CAST(x AS bigint)", [-(2.0**63)], LEAST),
        ("CAST(x AS bigint)", [float("nan")], None),
        ("sum(DISTINCT x)", pa.array([100, 101, 100], pa.int8()), 201),
        ("sum(DISTINCT x)", [0.5, 1.5, None, 0.5], 2.0),
        ("sum(DISTINCT x)", pa.array([5, 5, 1], pa.duration("us")), timedelta(microseconds=6)),
        ("avg(DISTINCT x)", [1, 1, 3], 2.0),
        ("count(DISTINCT x)", [0.0, -0.0, float("nan"), None], 1),
        ("count(DISTINCT x)", pa.array([1.0, 2.0, 1.0], pa.float16()), 2),
        ("count(DISTINCT x)", pa.array(["a", "b", "a"]).dictionary_encode(), 2),
        ("array_agg(DISTINCT x)", ["b", None, "a", "b", None], ["b", None, "a"]),
        ("max(DISTINCT x)", ["b", None, "a"], "b"),
        ("min(DISTINCT x)", [2, 1, 1], 1),
        ("min(x)", [[2], [1, 3]], [1, 3]),
        *(
            (f"{name}({distinct}x)", pa.array([None, 10**19 + 2, 10**19 + 1, 10**19 + 2], kind), value)
            for kind, number in ((pa.uint64(), int), (pa.decimal128(38, 0), Decimal), (pa.decimal256(50, 0), Decimal))
            for name, value in (("min", number(10**19 + 1)), ("max", number(10**19 + 2)))
            for distinct in ("", "DISTINCT ")
        ),
        ("max(x)", pa.array([None], pa.decimal128(38, 0)), None),
        ("(max(x) - min(x)) / min(x) * 100", pa.array([2, 3], pa.decimal128(38, 18)), 50.0),
        ("min(x) - max(x)", pa.array([2, 3], pa.uint64()), -1),
        ("sum(DISTINCT x)", [Decimal("0.5"), Decimal("0.50"), Decimal(2)], 2.5),
        ("arbitrary(DISTINCT x)", [None, "b", "a"], "b"),
        ("max_by(x, x)", pa.array([1, 3, 2], pa.time32("s")), time(0, 0, 3)),
    ],
)
def test_values_of_measures_are_exact(measure, values, result):
    (row,) = rows(MEASURED.format(measure), pa.table({"x": values}))
    assert row["r"] == result
    assert type(row["r"]) is type(result)


@pytest.mark.parametrize(
    ("measure", "values", "reason", "message"),
    [
        ("sum(x)", [2**62, 2**62], "overflow", f"{SUM_FAILS}, beyond 64 bits; avg(…) * count(…) gives it as a float"),
        ("sum(x)", pa.array([LEAST, -1], pa.duration("us")), "overflow", f"{SUM_FAILS}, beyond 292,000 years in"),
        ("sum(x)", pa.array([MOST, 1], pa.duration("ns")), "overflow", f"{SUM_FAILS}, beyond 292 years in"),
        ("sum(DISTINCT x)", [MOST, MOST, 1], "overflow", SUM_FAILS),
        ("x / (-1)", [LEAST], "overflow", "/ fails: its result is too large"),
        ("CAST(x AS bigint)", [1e30], "overflow", "bigint fails: its result is too large"),
        ("CAST(x AS bigint)", [2.0**63], "overflow", "bigint fails: its result is too large"),
        ("sum(x)", pa.array([2**63], pa.uint64()), "overflow", "a value of a column is too large"),
        ("sum(DISTINCT x)", ["a"], "aggregate", "sum does not take text"),
        ("sum(DISTINCT x)", [True], "aggregate", "sum does not take boolean"),
        ("sum(DISTINCT x)", [date(2026, 1, 1)], "type", "sum adds numbers, not times"),
        ("sum(DISTINCT x)", [[1]], "aggregate", "sum does not take DISTINCT of list"),
        ("count(DISTINCT x)", [[1]], "aggregate", "count does not take DISTINCT of list"),
        ("array_agg(DISTINCT x)", [{"a": 1}], "aggregate", "array_agg does not take DISTINCT of struct"),
        ("max_by(DISTINCT x, x)", [1], "aggregate", "max_by does not take DISTINCT"),
        ("max(x)", [{"a": 1}, {"a": 2}], "aggregate", "max does not order struct"),
    ],
)
def test_a_measure_that_has_no_value_is_refused_at_its_position(measure, values, reason, message):
    with pytest.raises(PatternRefused) as refused:
        rows(MEASURED.format(measure), pa.table({"x": values}))
    assert refused.value.reason == reason
    assert f"line 1, column 43: {message}" in refused.value.message


def test_a_running_sum_is_refused_where_it_is_shown_and_too_large():
    table = pa.table({"x": [MOST, 1, -1]})
    clause = "MATCH_RECOGNIZE (MEASURES {} sum(x) AS r ALL ROWS PER MATCH PATTERN (a+))"
    with pytest.raises(PatternRefused, match="sum fails: its result is too large"):
        rows(f"SELECT r FROM t {clause.format('')}", table)
    assert rows(f"SELECT r FROM t {clause.format('FINAL')}", table) == [{"r": MOST}] * 3


@pytest.mark.parametrize("distinct", ["", "DISTINCT "])
@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(38, 0)])
def test_running_extremes_of_large_numbers_are_exact(kind, distinct):
    values = [None, *(10**19 + n for n in (1, 0, 2, 5, 4))]
    table = pa.table({"k": [1, 1, 1, 1, 2, 2], "x": pa.array(values, kind)})
    clause = f"""MATCH_RECOGNIZE (PARTITION BY k MEASURES min({distinct}x) AS l, max({distinct}x) AS m,
      FINAL max({distinct}x) AS f ALL ROWS PER MATCH PATTERN (a+))"""
    found = rows(f"SELECT l, m, f FROM t {clause}", table)
    assert [tuple(None if value is None else int(value) - 10**19 for value in row.values()) for row in found] == [
        (None, None, 2),
        (1, 1, 2),
        (0, 1, 2),
        (0, 2, 2),
        (5, 5, 5),
        (4, 5, 5),
    ]
    empty = run_query(f"SELECT l, m, f FROM t {clause}", {"t": table.slice(0, 0)}.get)
    assert empty.schema.types == [kind] * 3


def test_running_aggregates_of_distinct_values_begin_anew_in_each_match():
    table = pa.table({"k": [1, 1, 1, 2, 2], "x": [3, 3, 4, 3, 3]})
    clause = """MATCH_RECOGNIZE (PARTITION BY k MEASURES sum(DISTINCT x) AS s, count(DISTINCT x) AS c,
      array_agg(DISTINCT x) AS l, FINAL sum(DISTINCT x) AS f ALL ROWS PER MATCH PATTERN (a+))"""
    found = rows(f"SELECT s, c, l, f FROM t {clause}", table)
    assert [tuple(row.values()) for row in found] == [
        (3, 1, [3], 7),
        (3, 1, [3], 7),
        (7, 2, [3, 4], 7),
        (3, 1, [3], 3),
        (3, 1, [3], 3),
    ]

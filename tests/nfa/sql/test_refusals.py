"""What is refused: by name, with line and column."""

import pyarrow as pa
import pytest

from nfa import PatternRefused, run_query

INTERVAL = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
TABLE = pa.table({"k": ["a"], "n": [1], "s": ["x"], "l": [[1]], "f": [True], "i": INTERVAL})
REFUSED = [
    # measures, pattern and define of a clause; reason; message
    ("n", "A", "A AS n", "type", "line 4, column 15: a condition is true or false, this one is int64"),
    ("n", "A", "A AS FIRST(n) + 1", "type", "a condition is true or false, this one is integer"),
    ("n", "A", "B AS TRUE", "unknown-variable", "line 4, column 10: the pattern has no variable B; it has A"),
    ("n", "A", "A AS TRUE, A AS FALSE", "duplicate", "line 4, column 21: A is defined twice"),
    ("B.n", "A", "A AS TRUE", "unknown-variable", "line 2, column 12: there is no variable B; there are A"),
    ("x", "A", "A AS TRUE", "column", "there is no column x; the columns are k, n, s, l, f, i"),
    ("foo(n)", "A", "A AS TRUE", "unknown-function", "there is no function foo; there are abs, "),
    ("abs(n, 1)", "A", "A AS TRUE", "function", "abs takes 1 operands, not 2"),
    ("round(1, 2, 3)", "A", "A AS TRUE", "function", "round takes 1 to 2 operands, not 3"),
    ("coalesce()", "A", "A AS TRUE", "function", "coalesce takes at least 1 operands, not 0"),
    ("abs(DISTINCT n)", "A", "A AS TRUE", "function", "DISTINCT belongs to aggregates, not to abs"),
    ("sum(*)", "A", "A AS TRUE", "aggregate", "sum(*) has no meaning; only count(*) has"),
    ("sum(n, n)", "A", "A AS TRUE", "function", "sum takes 1 operands, not 2"),
    ("sum(s)", "A", "A AS TRUE", "aggregate", "sum does not take text"),
    ("sum(LAST(n))", "A", "A AS TRUE", "nesting", "last cannot be inside sum"),
    ("LAST(PREV(n))", "A", "A AS TRUE", "nesting", "prev cannot be inside last here"),
    ("LAST(n, -1)", "A", "A AS TRUE", "offset", "the offset of last is a whole number from 0 on"),
    ("LAST(1)", "A", "A AS TRUE", "no-column", "last reads a column or CLASSIFIER"),
    ("LAST(A.n + B.n)", "A B", "A AS TRUE", "variables", "all columns inside last belong to one variable"),
    ("FINAL abs(n)", "A", "A AS TRUE", "semantics", "FINAL belongs to FIRST, LAST and aggregates, not to abs"),
    ("n", "A", "A AS FINAL LAST(n) > 1", "semantics", "FINAL has a meaning in MEASURES only"),
    ("CLASSIFIER(n + 1)", "A", "A AS TRUE", "classifier", "CLASSIFIER takes a variable or nothing"),
    ("match_number(1)", "A", "A AS TRUE", "function", "match_number takes 0 operands, not 1"),
    ("n < s", "A", "A AS TRUE", "type", "line 2, column 12: < fails: it does not take int64 and string"),
    ("starts_with(s, s)", "A", "A AS TRUE", "constant", "starts_with takes constants from operand 2 on"),
    ("CAST(n AS blob)", "A", "A AS TRUE", "type", "CAST to blob is not supported; there are BIGINT, "),
    ("EXTRACT(century FROM n)", "A", "A AS TRUE", "function", "EXTRACT of century is not supported"),
    ("INTERVAL '1' MONTH", "A", "A AS TRUE", "literal", "INTERVAL '1' MONTH is not supported; write for example"),
    ("INTERVAL '9999999999' DAY", "A", "A AS TRUE", "literal", "the interval '9999999999' is too long"),
    ("DATE '2026-13-01'", "A", "A AS TRUE", "literal", "'2026-13-01' is not valid; write for example DATE"),
    ("n", "()", "A AS TRUE", "no-variable", "the pattern names no variable"),
    ("n", "A B+ AFTER MATCH SKIP TO LAST B", "B AS TRUE", "skip", "line 3, column 17: AFTER MATCH SKIP is inside"),
    ("n", "(A | after match skip PAST B)", "B AS TRUE", "skip", "write it before PATTERN"),
    ("n", "A{2,1}", "A AS TRUE", "quantifier", "the upper bound is at least 1, and not below the lower one"),
    ("n", "A{1001}", "A AS TRUE", "too-large", "at most 1000 repetitions are allowed"),
    ("n", "(A{1000}){1000}", "A AS TRUE", "too-large", "steps with its repetitions; at most 10000"),
    ("n", "PERMUTE(A, B, C, D, E, F, G, H)", "A AS TRUE", "too-large", "PERMUTE of 8 parts has too many orders"),
    ("n", "A B", "B AS s || A.s = 'x'", "define", "|| of values from several rows of a match is supported in MEASURES"),
    ("n", "A B", "B AS count(DISTINCT n) > 1", "define", "count(DISTINCT ...) is supported in MEASURES only"),
    ("n", "A B", "B AS sum(A.s) > 1", "type", "sum adds numbers, not text"),
    ("n", "A B", "B AS A.n AND f", "type", "AND joins conditions, not integer"),
    ("n", "A B", "B AS A.n = s", "type", "= does not take integer and text"),
    ("n", "A B", "B AS A.s + s = 1", "type", "+ does not take text"),
    ("n", "A B", "B AS A.l = l", "type", "conditions between rows do not read list"),
]
TEXTS = [
    ("SELECT * FROM t", "line 1, column 16: the text ends; expected '.' or MATCH_RECOGNIZE"),
    ("SELECT * FROM t GROUP BY n", "line 1, column 17: unexpected 'GROUP'; GROUP BY is not supported here"),
    ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) GROUP BY n", "column 47: unexpected 'GROUP'; GROUP BY is not"),
    ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)) HAVING n > 1", "column 47: unexpected 'HAVING'; HAVING is not"),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) WITHIN INTERVAL '1' HOUR)",
        "line 1, column 46: WITHIN needs ORDER BY a time or a whole number",
    ),
    ("SELECT * FROM (SELECT 1)", "line 1, column 15: unexpected '('"),
    ("SELECT * FROM t MATCH_RECOGNIZE (INITIAL PATTERN (A))", "INITIAL is not supported: begin the pattern with ^"),
    ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS n == 1)", "unexpected '=='; equal is one ="),
    ("SELECT *, n FROM t MATCH_RECOGNIZE (PATTERN (A))", "unexpected ','"),
    ("SELECT m.*, n FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m", "column 8: write * alone, or name each column"),
    (
        "SELECT x.n FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m",
        "column 8: x is not the alias of the",
    ),
    ("SELECT sum(n) FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m", "column 8: sum outside MEASURES is not supported"),
    ("SELECT n FROM t MATCH_RECOGNIZE (PATTERN (A)) AS m", "column 8: there is no column n"),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY l PATTERN (A))",
        "column 47: l has lists or objects",
    ),
    ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i PATTERN (A))", "column 43: i has intervals of months"),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B) SUBSET A = (A, B))",
        "A has a meaning already",
    ),
    ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B) SUBSET U = (A, C))", "the pattern has no variable C; it has A, B"),
    (
        "SELECT * FROM t MATCH_RECOGNIZE (ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -}))",
        "an exclusion {- -} and WITH UNMATCHED ROWS contradict each other",
    ),
    ("SELECT * FROM t MATCH_RECOGNIZE (AFTER MATCH SKIP TO X PATTERN (A))", "column 34: the pattern has no variable X"),
]
CLAUSE = "MATCH_RECOGNIZE (MEASURES n AS n, s AS s PATTERN (A))"
PLACES = {
    "measures": "SELECT * FROM t MATCH_RECOGNIZE (\n  MEASURES {} AS m PATTERN (A))",
    "define": "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS\n  ({}) IS NULL)",
    "select": f"SELECT\n  {{}} FROM t {CLAUSE}",
    "where": f"SELECT * FROM t {CLAUSE}\n  WHERE ({{}}) IS NULL",
}
SIZES = "from -2147483647 to 2147483647, or NULL"
CONSTANTS = [
    ("substr(s, 'a')", "constant", f"operand 2 of substr must be a whole number {SIZES}"),
    ("substr(s, 1.5)", "constant", f"operand 2 of substr must be a whole number {SIZES}"),
    ("substr(s, TRUE)", "constant", f"operand 2 of substr must be a whole number {SIZES}"),
    ("substr(s, 99999999999999999999)", "constant", f"operand 2 of substr must be a whole number {SIZES}"),
    ("substr(s, -2147483648)", "constant", f"operand 2 of substr must be a whole number {SIZES}"),
    ("substr(s, NULL, 1.5)", "constant", f"operand 3 of substr must be a whole number {SIZES}"),
    ("substr(s, 2, 9223372036854775807)", "constant", f"operand 3 of substr must be a whole number {SIZES}"),
    ("substr(s, n)", "constant", "substr takes constants from operand 2 on"),
    ("substr(n, NULL)", "type", "substr fails: it does not take int64 and null"),
    ("starts_with(s, 1)", "constant", "operand 2 of starts_with must be a text or NULL"),
    ("round(n, 'a')", "constant", "operand 2 of round must be a whole number from -15 to 15, or NULL"),
    ("round(n, 1.0)", "constant", "operand 2 of round must be a whole number from -15 to 15, or NULL"),
    ("round(n, -16)", "constant", "operand 2 of round must be a whole number from -15 to 15, or NULL"),
    ("1e999", "literal", "the number 1e999 is larger than a float64 can hold; write a smaller one"),
    ("-1" + 400 * "0", "literal", "the number 100000000000000000000000000... is larger than a float64 can hold"),
    ("CAST(s AS VARCHAR(2147483648))", "type", "the length of VARCHAR is at most 2147483647"),
    (f"CAST(s AS VARCHAR({5_000 * '9'}))", "type", "the length of VARCHAR is at most 2147483647"),
    (f"INTERVAL '{5_000 * '9'}' DAY", "literal", "the interval '99999999999999999999999999... is too long"),
    (f"INTERVAL '-{5_000 * '9'}.5 days'", "literal", "the interval '-9999999999999999999999999... is too long"),
    ("s LIKE 'f%' ESCAPE 'ab'", "literal", "the escape of LIKE must be one character, not 'ab'"),
    ("s NOT LIKE 'f%' ESCAPE '!!'", "literal", "the escape of LIKE must be one character, not '!!'"),
    ("round(n, 99999999999)", "constant", "operand 2 of round must be a whole number from -15 to 15, or NULL"),
]


@pytest.mark.parametrize(("expression", "reason", "message"), CONSTANTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_constant_of_another_kind_or_size_is_refused(place, expression, reason, message):
    with pytest.raises(PatternRefused) as refused:
        run_query(PLACES[place].format(expression), lambda _: TABLE)
    assert refused.value.reason == reason
    assert refused.value.message.startswith("line 2, column ")
    assert message in refused.value.message


@pytest.mark.parametrize(("measure", "pattern", "define", "reason", "message"), REFUSED)
def test_a_clause_is_refused(measure, pattern, define, reason, message):
    query = f"SELECT * FROM t MATCH_RECOGNIZE (\n  MEASURES {measure} AS m\n  PATTERN ({pattern})\n  DEFINE {define})"
    with pytest.raises(PatternRefused) as refused:
        run_query(query, lambda _: TABLE)
    assert refused.value.reason == reason
    assert message in refused.value.message


def nested(form, depth):
    expression = "f"
    for _ in range(depth):
        expression = form.format(expression)
    return expression


@pytest.mark.parametrize(
    ("form", "depth", "column"),
    [
        ("({} BETWEEN true AND true)", 13, 3),
        ("(NOT ({} NOT BETWEEN true AND true))", 12, 7),
        ("CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END", 13, 6),
        ("CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 WHEN 5 THEN 6 END", 9, 6),
    ],
)
def test_operands_that_nesting_repeats_too_often_are_refused_at_their_position(form, depth, column):
    with pytest.raises(PatternRefused, match="BETWEEN and CASE repeat the operand that they compare") as refused:
        run_query(f"SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS\n{nested(form, depth)})", lambda _: TABLE)
    assert refused.value.reason == "too-large"
    assert (refused.value.position.line, refused.value.position.column) == (2, column)


def test_nested_in_lists_between_rows_are_refused_where_they_repeat_too_much():
    condition = nested("({} IN (true, A.f))", 16)
    with pytest.raises(PatternRefused, match="IN between rows of a match repeats its operand") as refused:
        run_query(f"SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS\n{condition})", lambda _: TABLE)
    assert refused.value.reason == "too-large"
    assert refused.value.position.line == 2


@pytest.mark.parametrize(("text", "message"), TEXTS)
def test_a_text_is_refused(text, message):
    with pytest.raises(PatternRefused) as refused:
        run_query(text, lambda _: TABLE)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["ann", "bob"], "text"), ([1.5, 2.5], "float"), (["1", "2"], "text"), ([True, False], "boolean")],
)
@pytest.mark.parametrize("length", ["INTERVAL '5' MINUTE", "5"])
def test_within_beside_a_column_that_is_neither_time_nor_whole_number_names_its_type(values, kind, length):
    clause = f"MATCH_RECOGNIZE (ORDER BY x MEASURES count(*) AS c PATTERN (A+) WITHIN {length})"
    with pytest.raises(PatternRefused, match="line 1, column 43: WITHIN takes a positive INTERVAL") as refused:
        run_query(f"SELECT * FROM t {clause}", lambda _: pa.table({"x": values}))
    assert refused.value.reason == "within"
    assert str(refused.value).endswith(f"here the column x has values of type {kind}")

"""Patterns of streams that are given as SQL find what the query finds over the same events, or are refused by name."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfa import PatternRefused, describe_pattern, parse_pattern, parse_patterns, run_query
from service.registering.strangers import strangers
from service.runs.stream_run import run_patterns
from streams import Event, EventBatch, StreamDeclaration

START = datetime(2026, 1, 1, tzinfo=UTC)
BODY = """PARTITION BY key ORDER BY time MEASURES FIRST(id) AS first, LAST(id) AS last, {measure} AS m {skip}
  PATTERN ({pattern}) {within} {define}"""
PATTERNS = ["A", "A B", "A B C", "A B{2}", "(A B){2}", "A{3}", "B A B"]
CONDITIONS = {
    "A": ["type = 'X'", "v > 1", "type IN ('X', 'Y') AND v > 0", "v IS NULL", "NOT v = 1", "w LIKE 'a%' OR v = 2"],
    "B": [
        "v > A.v",
        "v > PREV(v)",
        "type = 'Y' AND v <> FIRST(v)",
        "time - A.time < INTERVAL '2' SECOND",
        "w IN ('a', 'b')",
    ],
    "C": ["v >= LAST(B.v) AND type = 'X'", "v + A.v > 2", "coalesce(v, 0) = 0", "CLASSIFIER() = 'C'"],
}
MEASURES = ["LAST(v)", "FIRST(v) + 1", "CLASSIFIER()", "count(*)", "PREV(LAST(w), 0)", "upper(FIRST(w))", "LAST(v, 5)"]
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from("kl"),
            "type": st.sampled_from("XYZ"),
            "second": st.integers(0, 5),
            "v": st.none() | st.integers(0, 2),
            "w": st.sampled_from(["a", "ab", "b", None]),
        }
    ),
    max_size=10,
)


@st.composite
def bodies(draw):
    pattern = draw(st.sampled_from(PATTERNS))
    names = [name for name in "ABC" if name in pattern and draw(st.booleans())]
    usable = {
        name: [one for one in CONDITIONS[name] if "A." not in one or "A" in pattern.partition(name)[0]]
        for name in names
    }
    usable = {name: [one for one in found if "PREV" not in one or pattern[0] != name] for name, found in usable.items()}
    conditions = [f"{name} AS {draw(st.sampled_from(found))}" for name, found in usable.items() if found]
    return BODY.format(
        pattern=pattern,
        measure=draw(st.sampled_from(MEASURES)),
        skip=draw(st.sampled_from(["", "AFTER MATCH SKIP TO NEXT ROW"])),
        within=draw(st.sampled_from(["", "WITHIN INTERVAL '3' SECOND"])),
        define="DEFINE " + ", ".join(conditions) if conditions else "",
    )


def found_by_query(body, rows):
    columns = {
        "id": [f"e{place}" for place in range(len(rows))],
        "time": pa.array([START + timedelta(seconds=row["second"]) for row in rows], pa.timestamp("us", "UTC")),
        **{name: [row[name] for row in rows] for name in ("key", "type")},
        "v": pa.array([row["v"] for row in rows], pa.int64()),
        "w": pa.array([row["w"] for row in rows], pa.string()),
    }
    found = run_query(f"SELECT first, last, m FROM t MATCH_RECOGNIZE ({body})", lambda _: pa.table(columns))
    return sorted((row["first"], row["last"], str(row["m"])) for row in found.to_pylist())


def found_by_pattern(body, rows):
    events = [
        Event(
            id=f"e{place}",
            type=row["type"],
            time_us=round((START + timedelta(seconds=row["second"])).timestamp() * 1_000_000),
            key=row["key"],
            data={name: row[name] for name in ("v", "w")},
        )
        for place, row in enumerate(rows)
    ]
    ordered = EventBatch.from_events(sorted(events, key=lambda event: event.time_us))
    patterns = parse_patterns(f"PATTERN p MATCH_RECOGNIZE ({body})")
    report = run_patterns(patterns, ordered, None, StreamDeclaration(name="file", key="key"))
    returns = [one["returns"] for one in report.each_match()]
    return sorted((one["first"], one["last"], str(plain(one["m"]))) for one in returns)


def plain(value):
    return int(value) if isinstance(value, float) else value


@given(bodies(), ROWS)
def test_the_matches_are_those_of_the_query(body, rows):
    assert found_by_pattern(body, rows) == found_by_query(body, rows), body


def test_the_text_of_the_pattern():
    pattern = parse_pattern(
        """PATTERN over MATCH_RECOGNIZE (PARTITION BY key ORDER BY time MEASURES LAST(B.amount) - A.amount AS rise
        PATTERN (A B{2}) WITHIN INTERVAL '1' HOUR
        DEFINE A AS type = 'Order' AND amount > 10, B AS B.amount > PREV(B.amount))"""
    )
    own = parse_pattern(
        """PATTERN over EVENT SEQ(Order A [amount > 10], _ B_1 [amount > A.amount], _ B_2 [amount > B_1.amount])
        WHERE [key] WITHIN 1 h SELECT STRICT SKIP PAST LAST RETURN B_2.amount - A.amount AS rise"""
    )
    assert describe_pattern(pattern) == describe_pattern(own)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("PATTERN (A B)", "PATTERN (A B+)"), "a quantifier without a fixed number"),
        (("PATTERN (A B)", "PATTERN (A | B)"), "| or PERMUTE"),
        (("PATTERN (A B)", "PATTERN (^ A B)"), "an anchor"),
        (("PATTERN (A B)", "PATTERN (A B{64})"), "line 1, column 83: a pattern of 65 rows"),
        (("PATTERN (A B)", "ALL ROWS PER MATCH PATTERN (A B)"), "ALL ROWS PER MATCH"),
        (("PATTERN (A B)", "AFTER MATCH SKIP TO B PATTERN (A B)"), "AFTER MATCH SKIP TO a variable"),
        (("ORDER BY time", "ORDER BY time DESC"), "line 1, column 54: this order"),
        (("PARTITION BY key", ""), "a clause without PARTITION BY"),
        (("FIRST(id)", "MATCH_NUMBER()"), "line 1, column 68: MATCH_NUMBER()"),
        (("FIRST(id)", "sum(v)"), "line 1, column 68: sum"),
        (("FIRST(id)", "PREV(FIRST(id))"), "a row outside the match"),
        (("FIRST(id)", "v / 2"), "line 1, column 68: /"),
        (("DEFINE B AS v > 1", "DEFINE B AS NEXT(v) > 1"), "line 1, column 109: a row outside the match"),
        (
            ("DEFINE B AS v > 1", f"DEFINE B AS {10 * '('}v{10 * ' BETWEEN 1 AND 2)'}"),
            "line 1, column 83: a clause with conditions of this size",
        ),
        (("DEFINE B AS v > 1", "DEFINE B AS DATE '2026-01-01' > time"), "the constant 2026-01-01"),
    ],
)
def test_what_has_no_meaning_over_a_stream_is_refused_by_name(change, what):
    text = (
        "PATTERN p MATCH_RECOGNIZE (PARTITION BY key ORDER BY time MEASURES FIRST(id) AS m PATTERN (A B) "
        "DEFINE B AS v > 1)"
    )
    assert parse_pattern(text).name == "p"
    with pytest.raises(PatternRefused) as refused:
        parse_pattern(text.replace(*change))
    assert refused.value.reason == "stream-sql"
    assert f"{what}" in str(refused.value)
    assert "has no meaning as a pattern of a stream" in str(refused.value)


PLACED = """-- Two rows.
PATTERN p MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY time
  MEASURES FIRST(id) AS first,
           LAST(misspelt) AS m
  PATTERN (A B{2})
  DEFINE
    A AS w = 'a\nb' AND type = 'Orde',
    B AS type = 'Order' AND v > 1
     AND misspeld > A.v)"""


def test_positions_of_notices_are_those_of_the_text_in_sql():
    events = [Event(id="1", type="Order", time_us=0, key="k", data={"v": 1, "w": "x"})]
    notices = [notice.placed for _, notice in strangers(parse_patterns(PLACED), EventBatch.from_events(events))]
    found = {notice.partition(" (did")[0] for notice in notices}
    assert found == {
        "line 9, column 8: Orde",
        "line 11, column 10: no event of the type Order has misspeld, so it is null everywhere",
        "line 5, column 12: no event of the type Order has misspelt, so it is null everywhere",
    }


def test_positions_of_refusals_are_those_of_the_text_in_sql():
    with pytest.raises(PatternRefused, match="line 4, column 12: RETURN has two columns named m") as refused:
        parse_pattern(PLACED.replace("first,", "m,"))
    assert (refused.value.position.line, refused.value.position.column) == (4, 12)

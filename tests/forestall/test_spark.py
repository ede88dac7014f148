"""DataFrames of Spark give the results of the same events in memory."""

from __future__ import annotations

import pandas as pd
import pytest

import forestall
from tests.builders.frames import moment, table

pytestmark = pytest.mark.spark

ROWS = [
    {
        "id": f"e{number}",
        "type": "ABC"[number % 3],
        "time": moment(number * 7 % 40),
        "key": f"k{number % 5}",
        "v": None if number % 4 == 0 else number,
        "w": "é" if number % 2 else None,
        "x": number / 3,
        "is": number % 2 == 0,
    }
    for number in range(60)
]
PATTERN = (
    "PATTERN p EVENT SEQ(A a, B+ b [v > 3], C c [NOT is]) WITHIN 20 s "
    "RETURN a.v, max(b.x) AS x, c.w AS w, count(b) AS n"
)


def sorted_rows(found):
    return sorted((tuple(map(str, row.values())) for row in found), key=str)


@pytest.fixture(autouse=True)
def few_partitions(spark):
    """Two partitions by key, as each is a task."""
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", usual)


@pytest.fixture
def events(spark):
    columns = ["id", "type", "time", "key", "v", "w", "x", "is"]
    return spark.createDataFrame(table(ROWS).select(columns).to_pandas())


@pytest.mark.parametrize("output", ["matches", "terminations", "timeouts"])
def test_results_are_those_of_a_table_in_memory(events, output):
    patterns = [PATTERN, "PATTERN q EVENT SEQ(A a, A b) WITHIN 2 s EMIT TIMEOUTS"]

    def matched(frame):
        ends = {"end_events": ["C"]}
        return forestall.match(frame, patterns, constraints=["prior(A, B)"], stream=ends, outputs=[output])

    expected, found = matched(table(ROWS).to_pandas()), matched(events)
    rows = getattr(found, output).toArrow().to_pylist()
    assert sorted_rows(rows) == sorted_rows(expected.table(output).to_pylist())
    assert rows


def test_counts_are_added(events):
    found, expected = forestall.match(events, PATTERN).stats, forestall.match(table(ROWS), PATTERN).stats
    assert {name: found[name] for name in ("events", "matches")} == {
        name: expected[name] for name in ("events", "matches")
    }


def test_columns_are_typed_without_any_row(events):
    found = forestall.match(events.limit(0), PATTERN)
    types = {field.name: field.dataType.simpleString() for field in found.matches.schema}
    assert types["a.v"] == "double"  # a column with nulls that came from pandas
    assert (types["x"], types["w"], types["n"], types["b"]) == ("double", "string", "bigint", "array<string>")
    assert found.matches.count() == 0


def test_a_call_runs_no_job(events, spark):
    spark.sparkContext.setJobGroup("match", "")
    assert forestall.match(events, PATTERN).matches.columns[:2] == ["pattern", "key"]
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("match")


def test_other_names_of_columns(events):
    renamed = events.withColumnsRenamed({"id": "i", "type": "kind", "time": "at", "key": "order"})
    found = forestall.match(renamed, PATTERN, key="order", time="at", type="kind", id="i")
    assert sorted_rows(found.matches.toArrow().to_pylist()) == sorted_rows(
        forestall.match(table(ROWS).to_pandas(), PATTERN).table("matches").to_pylist()
    )


def test_rows_without_ids_get_numbers_and_keys_may_depend_on_the_type(events):
    renamed = events.drop("id").withColumn("it's", events["key"]).withColumnsRenamed({"key": "other"})
    key = {"A": "it's", "*": "other"}
    found = forestall.match(renamed, PATTERN, key=key, outputs=["matches", "terminations"], constraints=["prior(A, B)"])
    expected = forestall.match(table(ROWS).to_pandas(), PATTERN).table("matches")
    matches = found.matches.toArrow()
    shown = ["key", "start", "end", "a.v", "x", "w", "n"]
    assert sorted_rows(matches.select(shown).to_pylist()) == sorted_rows(expected.select(shown).to_pylist())
    assert str(matches.schema.field("a").type.value_type) == "int64"
    assert found.terminations.schema["event"].dataType.simpleString() == "bigint"


def test_what_cannot_be_partitioned_or_sent_is_refused(events):
    with pytest.raises(forestall.FrameRefused, match="leave out the further keys"):
        forestall.match(events, PATTERN, stream={"keys": {"customer": "w"}})
    with pytest.raises(forestall.FrameRefused, match="join their columns"):
        forestall.match(events, PATTERN, tables={"t": [{"a": "b"}]})


def test_lists_that_were_not_asked_for_are_refused(events):
    with pytest.raises(forestall.ResultsNotKept, match="timeouts were not kept"):
        _ = forestall.match(events, PATTERN, outputs=["matches"]).timeouts


def test_a_bad_row_names_its_column(spark):
    frame = spark.createDataFrame(pd.DataFrame({"id": ["1"], "type": [""], "time": [moment(0)], "key": ["k"]}))
    with pytest.raises(Exception, match="column 'type': row 0: null or empty; every event has a type"):
        forestall.match(frame, PATTERN).matches.collect()


QUERY = """SELECT key, began, n, total, mean, labels FROM rows MATCH_RECOGNIZE (PARTITION BY key ORDER BY time
  MEASURES FIRST(time) AS began, count(*) AS n, sum(x) AS total, avg(v) AS mean, array_agg(CLASSIFIER()) AS labels
  AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) DEFINE A AS type = 'A', B AS x > PREV(x))"""


def test_a_query_gives_the_rows_of_a_table_in_memory(events):
    found = forestall.sql(QUERY, rows=events).toArrow().to_pylist()
    expected = forestall.sql(QUERY, rows=table(ROWS)).to_pylist()
    assert sorted_rows(found) == sorted_rows(expected)
    assert expected


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (("PARTITION BY key", ""), "needs PARTITION BY"),
        (("x > PREV(x))", "x > PREV(x)) LIMIT 1"), "leave out ORDER BY"),
    ],
)
def test_a_query_that_cannot_be_divided_is_refused(events, change, advice):
    with pytest.raises(forestall.FrameRefused, match=advice):
        forestall.sql(QUERY.replace(*change), rows=events)

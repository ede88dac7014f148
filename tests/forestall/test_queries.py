"""``forestall.sql`` gives one answer over tables of every kind, in the kind of the table."""

from datetime import UTC, datetime, timedelta

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import forestall
from nfa import PatternRefused, RowPatternFailed

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [
    {"customer": customer, "at": START + timedelta(hours=place), "price": price}
    for place, (customer, price) in enumerate(
        [("ann", 9), ("bob", 5), ("ann", 7), ("bob", 6), ("ann", 8), ("ann", None)]
    )
]
QUERY = """SELECT customer, low, label FROM orders MATCH_RECOGNIZE (
    PARTITION BY customer ORDER BY at
    MEASURES min(price) AS low, CLASSIFIER() AS label
    PATTERN (A DOWN* UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""
EXPECTED = [{"customer": "ann", "low": 7, "label": "UP"}, {"customer": "bob", "low": 5, "label": "UP"}]


def test_lists():
    assert forestall.sql(QUERY, orders=ROWS) == EXPECTED
    assert forestall.sql(QUERY, other=[], ORDERS=ROWS) == EXPECTED


def test_arrow():
    table = pa.Table.from_pylist(ROWS)
    assert forestall.sql(QUERY, orders=table).to_pylist() == EXPECTED
    split = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert forestall.sql(QUERY, orders=split).to_pylist() == EXPECTED


def test_pandas_with_categories():
    frame = pd.DataFrame(ROWS).astype({"customer": "category", "price": "Int64"})
    found = forestall.sql(QUERY, orders=frame)
    assert isinstance(found, pd.DataFrame)
    assert found.to_dict("records") == EXPECTED


def test_categories_of_pandas_may_be_null():
    frame = pd.DataFrame({"kind": pd.Categorical(["a", None, "b"]), "n": [1, 2, 3]})
    query = (
        "SELECT kind, v FROM e MATCH_RECOGNIZE (ORDER BY n MEASURES X.kind AS v ALL ROWS PER MATCH PATTERN (X) "
        "DEFINE X AS n > 0)"
    )
    found = forestall.sql(query, e=frame)
    assert found["kind"].tolist() == found["v"].tolist() == ["a", None, "b"]


def test_duckdb():
    table = pa.Table.from_pylist(ROWS)
    with duckdb.connect() as connection:
        found = forestall.sql(QUERY, orders=connection.from_arrow(table))
        assert [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()] == EXPECTED


def test_an_empty_frame():
    empty = pa.Table.from_pylist(ROWS).slice(0, 0)
    found = forestall.sql(QUERY, orders=empty)
    assert found.num_rows == 0
    assert found.column_names == ["customer", "low", "label"]


def test_a_missing_table_is_refused():
    with pytest.raises(forestall.FrameRefused, match="the query reads orders; pass it by name, as orders"):
        forestall.sql(QUERY, order=ROWS)


def test_errors_name_their_place():
    with pytest.raises(PatternRefused, match="line 4, column 42: there is no column cost"):
        forestall.sql(QUERY.replace("price < PREV", "cost < PREV"), orders=ROWS)
    with pytest.raises(RowPatternFailed, match="takes more than 3 steps"):
        forestall.sql(QUERY, orders=ROWS, max_steps=3)

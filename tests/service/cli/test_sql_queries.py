"""``forestall match --sql``, called as a user calls it."""

import gzip
import subprocess
import sys
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest

QUERY = """SELECT id, label, began FROM orders MATCH_RECOGNIZE (
  PARTITION BY key ORDER BY time
  MEASURES FIRST(time) AS began, LAST(id) AS id, CLASSIFIER() AS label
  PATTERN (A B+) DEFINE B AS v > PREV(v))"""
LINES: list[dict[str, Any]] = [
    {"id": str(place), "type": "A", "time": f"2026-01-01T00:00:0{place}Z", "key": "k", "data": {"v": value}}
    for place, value in enumerate([1, 2, 3, 0])
]
EXPECTED = [{"id": "2", "label": "B", "began": "2026-01-01T00:00:00.000000Z"}]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.sql").write_text(QUERY)
    text = b"".join(orjson.dumps(line) + b"\n" for line in LINES)
    (tmp_path / "e.jsonl").write_bytes(text)
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(text))
    flat = [{**line["data"]} | {name: line[name] for name in ("id", "time", "key")} for line in LINES]
    times = pa.array([line["time"] for line in LINES]).cast(pa.timestamp("us", "UTC"))
    table = pa.Table.from_pylist(flat)
    table = table.set_column(table.column_names.index("time"), "time", times)
    pyarrow.parquet.write_table(table, tmp_path / "e.parquet")
    rows = ["id,time,key,v", *(f"{one['id']},{one['time']},{one['key']},{one['v']}" for one in flat)]
    (tmp_path / "e.csv").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.gz", "e.parquet"])
def test_rows_of_a_file_are_the_table_of_the_query(call, files, name):
    status, out, _ = call("match", "--sql", "q.sql", "--events", name, "--json")
    assert status == 0
    assert orjson.loads(out) == EXPECTED


def test_columns_of_csv_have_the_types_of_their_texts(call, files):
    status, out, _ = call("match", "--sql", "q.sql", "--events", "e.csv", "--json")
    assert status == 0
    assert orjson.loads(out) == [EXPECTED[0] | {"id": 2}]


def test_text_is_aligned(call, files):
    status, out, _ = call("match", "--sql", "q.sql", "--events", "e.jsonl")
    assert status == 0
    assert out.splitlines() == ["id  label  began", "2   B      2026-01-01T00:00:00.000000Z"]


def test_a_query_with_patterns_is_refused(call, files):
    status, _, error = call("match", "--sql", "q.sql", "--pattern", "q.sql", "--events", "e.jsonl")
    assert status == 2
    assert "not both" in error


def test_neither_query_nor_pattern_is_refused(call, files):
    status, _, error = call("match", "--events", "e.jsonl")
    assert status == 2
    assert "--sql" in error


def test_a_file_of_another_kind_is_refused(call, files):
    (files / "e.xes").write_text("<log/>")
    status, _, error = call("match", "--sql", "q.sql", "--events", "e.xes")
    assert status != 0
    assert "a query reads .csv, .jsonl and .parquet" in error


def test_a_refused_query_names_line_and_column(call, files):
    (files / "q.sql").write_text(QUERY.replace("PREV(v)", "PREV(w)"))
    status, _, error = call("match", "--sql", "q.sql", "--events", "e.jsonl")
    assert status != 0
    assert "line 4, column 39: there is no column w" in error


def test_a_query_imports_neither_pandas_nor_what_matches_patterns(files):
    code = (
        "import sys; from service.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "match", "--sql", "q.sql", "--events", "e.csv"]
    done = subprocess.run(words, cwd=files, capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "nfa.sql.query" in imported
    assert not imported & {"pandas", "service.runs", "nfa.lanes", "shards"}

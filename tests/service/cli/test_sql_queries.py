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


@pytest.mark.parametrize(
    ("name", "values", "examples"),
    [
        ("e.csv", ["2026-01-01 10:00:00", "2026-01-01T10:10:00Z", "2026-01-01 10:20:00"], (0, 1)),
        ("e.csv", ["9", "10", "x11"], (0, 2)),
        ("e.csv", ['"9,5"', '"10,5"', ""], (0, 1)),
        ("e.jsonl", ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5Z", "2026-01-01T10:20:00Z"], (0, 1)),
    ],
)
def test_a_column_that_mixed_forms_turn_into_text_is_noticed(call, files, name, values, examples):
    if name == "e.csv":
        text = "time,v\n" + "\n".join(f"{value},{place}" for place, value in enumerate(values))
    else:
        text = "\n".join(f'{{"time": "{value}", "v": {place}}}' for place, value in enumerate(values))
    (files / name).write_text(text)
    (files / "q.sql").write_text("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES count(*) AS n PATTERN (A+))")
    status, _, error = call("match", "--sql", "q.sql", "--events", name)
    assert status == 0
    what = "numbers" if "9" in values[0] else "times"
    assert f"notice: {name}: column time is read and sorted as text, as its values are not all {what}" in error
    assert " and ".join(repr(values[place].strip('"')) for place in examples) in error


@pytest.mark.parametrize("fraction", ["", ".5", ".123456"])
@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_columns_of_words_and_of_times_in_one_form_are_not_noticed(call, files, name, fraction):
    times = [f"2026-01-01T10:0{place}:00{fraction}Z" for place in range(3)]
    rows = [f"{time},{word}" for time, word in zip(times, ["x1", "", "7"], strict=True)]
    (files / "e.csv").write_text("time,w\n" + "\n".join(rows))
    (files / "e.jsonl").write_text("\n".join(f'{{"time": "{time}", "w": "7"}}' for time in times))
    (files / "q.sql").write_text("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES count(*) AS n PATTERN (A+))")
    status, _, error = call("match", "--sql", "q.sql", "--events", name)
    assert (status, error) == (0, "")

"""Tables against dictionaries: whatever was read, and whatever was changed since."""

import csv
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from streams.tables import (
    TableColumnUnknown,
    TableDeclaration,
    TableFiles,
    TableMissing,
    Tables,
    TableUnknown,
    fetching,
    keep_rows,
    keep_table,
    pieces_of_file,
    read_row,
    require_lookup,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\n"), min_size=1, max_size=12)
FEW = st.sampled_from(["", "a", "b", "ab", "ba", "1", "01", "é", "a:b", "1:a", ","])
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)
NO_TIMES = np.zeros(0, np.int64)


def written(folder, rows, kind, columns):
    """A file with some rows, in one of the formats."""
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.table({name: [row[at] for row in rows] for at, name in enumerate(columns)}), path)
    elif kind == "jsonl":
        path.write_bytes(b"".join(orjson.dumps(dict(zip(columns, row, strict=True))) + b"\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([["" if value is None else value for value in row] for row in rows])
    return path


def table(folder, rows, kind, columns=("key", "value"), key=("key",), **types):
    declaration = TableDeclaration(key=key, types={"value": "number", **types})
    version = keep_table(written(folder, rows, kind, columns), kind, declaration)
    return Tables().with_version(replace(version, name="t", version=1))


def found(tables, column, *keys):
    return tables.looked_up("t", column, [pa.array(key, pa.string()) for key in keys], NO_TIMES).to_pylist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@given(known=st.dictionaries(TEXTS | FEW.filter(bool), NUMBERS, min_size=1, max_size=30), sought=st.lists(TEXTS | FEW))
def test_a_lookup_is_that_of_a_dictionary(folder, kind, known, sought):
    tables = table(folder, list(known.items()), kind)
    keys = [*sought, *known, None]
    assert found(tables, "value", keys) == [known.get(key) for key in keys]
    assert found(tables, "key", keys) == [key if key in known else None for key in keys]
    is_there = [None if key in (None, "") else key in known for key in keys]
    assert found(tables, None, keys) == is_there


@given(
    known=st.dictionaries(st.tuples(FEW.filter(bool), st.integers(-3, 3)), NUMBERS, min_size=1),
    sought=st.lists(st.tuples(FEW, st.integers(-3, 3))),
)
def test_a_key_of_two_columns_is_that_of_a_dictionary(folder, known, sought):
    rows = [(*key, value) for key, value in known.items()]
    tables = table(folder, rows, "csv", ("a", "b", "value"), ("a", "b"), b="integer")
    texts, numbers = pa.array([one for one, _ in sought], pa.string()), pa.array([two for _, two in sought], pa.int64())
    assert tables.looked_up("t", "value", [texts, numbers], NO_TIMES).to_pylist() == [known.get(one) for one in sought]


@given(
    known=st.dictionaries(FEW.filter(bool), NUMBERS, min_size=1),
    changes=st.lists(st.tuples(FEW.filter(bool), st.none() | st.tuples(NUMBERS))),
)
def test_changed_rows_are_those_of_a_dictionary(folder, known, changes):
    tables, after = table(folder, list(known.items()), "csv"), dict(known)
    form = tables.forms["t"]
    for key, change in changes:
        own, row = read_row(form, [key], None if change is None else {"value": change[0]})
        tables = tables.with_row("t", own, row)
        after.pop(key, None)
        after |= {} if change is None else {key: change[0]}
    keys = [*known, *(key for key, _ in changes)]
    assert found(tables, "value", keys) == [after.get(key) for key in keys]
    assert found(tables, None, keys) == [key in after for key in keys]
    rows = tables.rows("t")
    assert {row["key"]: row["value"] for row in rows.to_pylist()} == after
    assert len(rows) == len(after)
    again = Tables.from_json(tables.to_json(), TableFiles())
    assert found(again, "value", keys) == found(tables, "value", keys)
    merged = replace(keep_rows(form, rows), name="t", version=2)
    assert found(tables.with_version(merged), "value", keys) == found(tables, "value", keys)


@given(rows=st.lists(st.tuples(NUMBERS, st.none() | TEXTS, st.none() | st.booleans()), min_size=1, max_size=20))
def test_equal_rows_have_one_digest_in_every_format(folder, rows):
    declaration = TableDeclaration(key=("key",), types={"value": "number", "text": "text", "flag": "boolean"})
    columns = ("key", *declaration.types)
    rows = [(str(number), *row) for number, row in enumerate(rows)]
    texts = [(*row[:3], None if row[3] is None else str(row[3]).lower()) for row in rows]
    first = table(folder, texts, "csv", columns, **declaration.types)
    again = table(folder, rows, "jsonl", columns, **declaration.types)
    parquet.write_table(pa.Table.from_batches([first.rows("t")]), folder / "copy.parquet")
    copy = keep_table(folder / "copy.parquet", "parquet", declaration)
    assert len({copy.digest, *(one.versions["t"][0].version.digest for one in (first, again))}) == 1


def test_a_number_is_the_key_of_its_digits(folder):
    tables = table(folder, [(7, 1.0), (8, 2.0)], "parquet")
    numbers = [pa.array([7, 9, None], pa.int64())]
    assert tables.looked_up("t", "value", numbers, NO_TIMES).to_pylist() == [1.0, None, None]


def test_of_versions_by_time_each_row_reads_the_one_of_its_time(folder):
    first = table(folder, [("a", 1.0)], "csv").versions["t"][0].version
    second = table(folder, [("a", 2.0), ("b", 3.0)], "csv").versions["t"][0].version
    tables = Tables().with_version(replace(first, since_us=10)).with_version(replace(second, since_us=20))
    keys, times = pa.array(["a", "a", "a", "b", "b"]), np.array([0, 19, 20, 19, 21])
    assert tables.looked_up("t", "value", [keys], times).to_pylist() == [1.0, 1.0, 2.0, None, 3.0]


def test_what_does_not_exist_is_null_in_a_shard_and_refused_before(folder):
    tables = table(folder, [("a", 1.0)], "csv")
    assert found(tables, "other", ["a"]) == [None]
    assert found(tables.without("t"), "value", ["a"]) == [None]
    with pytest.raises(TableUnknown, match=r"no table is called 'u'; tables are t"):
        require_lookup(tables.forms, "u", "value", 1)
    with pytest.raises(TableColumnUnknown, match=r"no column 'valu' \(did you mean value\?\); it has key, value"):
        require_lookup(tables.forms, "t", "valu", 1)
    with pytest.raises(TableUnknown):
        tables.with_row("u", "a", None)


def test_a_lookup_in_rows_with_another_separator_is_refused_with_advice():
    form = TableDeclaration(key=None).form(["key|value"], lambda _: "text")
    with pytest.raises(TableColumnUnknown, match=r"no column 'value' .the rows are probably separated by vertical"):
        form.require("t", "value", 1)


def test_a_missing_table_is_fetched_once_and_a_damaged_one_refused(folder, tmp_path, monkeypatch):
    version = replace(table(folder, [("a", 1.0)], "csv").versions["t"][0].version)
    pieces = list(pieces_of_file(TableFiles().path(version.digest)))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with pytest.raises(TableMissing, match=version.digest):
        TableFiles().open(version.digest)
    stored = {f"forestall:table:{version.digest}": pieces}

    def read(key, place):
        return stored[key][place] if place < len(stored.get(key, ())) else None

    fetched = TableFiles(fetching(read)).open(version.digest)
    assert fetched.column("value").to_pylist() == [1.0]
    stored.clear()
    assert TableFiles(fetching(read)).open(version.digest).column("key").to_pylist() == ["a"]
    (tmp_path / "tables" / f"{version.digest}.arrow").unlink()
    stored[f"forestall:table:{version.digest}"] = [next(pieces_of_file(written(tmp_path, [("b", 2.0)], "csv", "kv")))]
    with pytest.raises(TableMissing):
        TableFiles(fetching(read)).open(version.digest)

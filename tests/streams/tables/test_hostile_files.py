"""Files that no careful program writes: each is read, or refused with its place, in time that is linear in its size."""

import numpy as np
import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from streams.tables import TableDeclaration, TableForm, TableRefused, keep_table, read_row

NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, pa.array([b"y", b"\xff"]).buffers())
FIRST_BLOCK = b"".join(orjson.dumps({"key": str(row), "n": 1.5, "s": "x" * 60}) + b"\n" for row in range(55_000))


def read(folder, content, kind):
    path = folder / f"rows.{kind}"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        parquet.write_table(content, path)
    return keep_table(path, kind, TableDeclaration(key=("key",)))


@pytest.mark.parametrize("texts", [NOT_UTF8, NOT_UTF8.dictionary_encode()], ids=["plain", "dictionary"])
def test_texts_of_parquet_that_are_not_utf8_are_refused(tmp_path, texts):
    with pytest.raises(TableRefused, match=r"row 2, column 's': b'\\xff' is not a text"):
        read(tmp_path, pa.table({"key": ["a", "b"], "s": texts}), "parquet")


def test_columns_of_parquet_with_one_name_are_refused(tmp_path):
    column = pa.array(["a"])
    with pytest.raises(TableRefused, match="the column 'v' is named twice"):
        read(tmp_path, pa.Table.from_arrays([column] * 3, names=["key", "v", "v"]), "parquet")


@pytest.mark.parametrize(
    "line", [b'{"key": "a", "s": "\xff"}', b'{"key": "a", "n": NaN}', b'{"key": "a", "n": 1e999}'], ids=repr
)
def test_late_lines_of_json_are_checked_as_early_ones_are(tmp_path, line):
    assert len(FIRST_BLOCK) > 1 << 22
    with pytest.raises(TableRefused, match="line 55001: not JSON"):
        read(tmp_path, FIRST_BLOCK + line + b"\n", "jsonl")


@pytest.mark.parametrize("content", [b"key,n", b"key,n\n", b"key,n\r\n", b"\xef\xbb\xbfkey,n"], ids=repr)
def test_csv_may_end_after_its_first_line(tmp_path, content):
    version = read(tmp_path, content, "csv")
    assert (version.rows, list(version.form.columns)) == (0, ["key", "n"])


def test_quoted_fields_of_csv_may_have_line_breaks_anywhere(tmp_path):
    rows = b"".join(b'%d,"%s\n%s"\n' % (row, b"x" * 400, b"y" * 400) for row in range(6_000))
    assert read(tmp_path, b"key,s\n" + rows, "csv").rows == 6_000


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_very_many_columns_are_refused_at_once(tmp_path, kind, monkeypatch):
    names = ["key", *(f"c{at}" for at in range(5_000))]
    contents = {
        "csv": ",".join(names).encode() + b"\n" + b"," * 5_000 + b"\n",
        "jsonl": b"".join(b'{"%s": "a"}\n' % name.encode() for name in names),
        "parquet": pa.table({name: np.array([1]) for name in names}),
    }
    asked: list[object] = []
    monkeypatch.setattr("streams.tables.portions.type_of_texts", asked.append)
    monkeypatch.setattr("streams.tables.portions.type_of_values", asked.append)
    with pytest.raises(TableRefused, match="5001 columns; a table has at most 200"):
        read(tmp_path, contents[kind], kind)
    assert not asked


@pytest.mark.parametrize(("kind", "key"), [("text", "None"), ("integer", "None"), ("integer", "007")])
def test_a_row_has_the_key_of_its_address(kind, key):
    form = TableForm(key=("id",), columns={"id": kind})
    row = {"id": None} if key == "None" else {}
    with pytest.raises(TableRefused, match=f"the row has the id (None|7), and not that of its key '{key}'"):
        read_row(form, [key], row)

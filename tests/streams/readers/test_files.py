"""The choice of a reader, bounds, damage and progress."""

import gzip
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streams.errors import EventFileError
from streams.readers import Columns, ReaderOptions, read_batch, read_events, unread_members

LINE = b'{"id":"e%d","type":"A","time":%d,"key":"k"}\n'
CSV = b"id,type,time,key\ne1,A,0,k\n"
XES = (
    b'<log><trace><string key="concept:name" value="k"/><event><string key="concept:name" value="A"/>'
    b'<date key="time:timestamp" value="1970-01-01T00:00:00Z"/></event></trace></log>'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", LINE % (1, 0)),
        ("a.ndjson", LINE % (1, 0)),
        ("a.csv", CSV),
        ("a.xes", XES),
        ("A.2026.XES", XES),
        ("a.jsonl.gz", gzip.compress(LINE % (1, 0), mtime=0)),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)),
        ("a.xes.GZ", gzip.compress(XES, mtime=0)),
    ],
)
def test_the_suffix_chooses_the_reader(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert [(event.type, event.time_us, event.key) for event in read_events(str(path))] == [("A", 0, "k")]


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("a.jsonl", LINE % (1, 0), []),
        ("a.jsonl", b'{"id":"k:2","type":"A","time":0,"key":"k"}\n{"type":"A","time":1,"key":"k"}\n', ["k:1"]),
        ("a.csv", CSV, []),
        ("a.csv", b"type,time,key\nA,0,k\nA,1,k\n", ["k:1", "k:2"]),
        ("a.xes", XES, ["k:1"]),
    ],
)
def test_ids_that_are_made_from_positions_are_reported(
    tmp_path: Path, name: str, content: bytes, ids: list[str]
) -> None:
    path, numbered = tmp_path / name, list[str]()
    path.write_bytes(content)
    read_events(path, ReaderOptions(on_numbered=numbered.append))
    assert numbered == ids


def test_numbers_of_rows_that_are_ids_are_reported(tmp_path: Path) -> None:
    rows = {"type": ["A", "B"], "time": [0, 1], "key": ["k", "k"]}
    for columns, ids in ((rows, ["0", "1"]), ({**rows, "id": ["k:1", "k:2"]}, [])):
        numbered = list[str]()
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        read_events(tmp_path / "a.parquet", ReaderOptions(on_numbered=numbered.append))
        assert numbered == ids


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "a.json", "jsonl"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path: Path, name: str) -> None:
    with pytest.raises(EventFileError, match=r"must end in \.jsonl, \.ndjson, \.csv, \.xes"):
        read_events(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EventFileError, match=r"missing\.csv: cannot be opened: No such file"):
        read_events(tmp_path / "missing.csv")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(EventFileError, match=r"folder\.csv: cannot be opened"):
        read_events(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    "damage", [b"not gzip at all", gzip.compress(LINE % (1, 0), mtime=0)[:-9], b"\x1f\x8b\x08\x00" + b"\xff" * 40]
)
@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.xes.gz"])
def test_damaged_gzip_is_refused(tmp_path: Path, name: str, damage: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(damage)
    with pytest.raises(EventFileError, match="cannot be read") as caught:
        read_events(path)
    assert caught.value.message.startswith(str(path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.xes"])
def test_a_decompression_bomb_is_stopped_at_the_bound(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(b" " * 20_000_000))
    with pytest.raises(EventFileError, match="more than 1000000 bytes after decompression") as caught:
        read_events(path, ReaderOptions(max_bytes=1_000_000))
    assert caught.value.details["max_bytes"] == 1_000_000


def test_a_file_of_exactly_the_bound_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(CSV)
    assert len(read_events(path, ReaderOptions(max_bytes=len(CSV)))) == 1
    with pytest.raises(EventFileError, match="has more than"):
        read_events(path, ReaderOptions(max_bytes=len(CSV) - 1))


@pytest.mark.parametrize("is_compressed", [False, True])
def test_progress_rises_to_one(tmp_path: Path, is_compressed: bool) -> None:
    content = b"".join(LINE % (number, number * 7919 % 100_003) for number in range(40_000))
    path = tmp_path / ("a.jsonl.gz" if is_compressed else "a.jsonl")
    path.write_bytes(gzip.compress(content, 1) if is_compressed else content)
    shares: list[float] = []
    assert len(read_events(path, progress=shares.append)) == 40_000
    assert shares == sorted(shares)
    assert len(set(shares)) > 1
    assert 0.0 < shares[0] < 1.0
    assert shares[-1] == 1.0


def test_progress_of_an_empty_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"")
    shares: list[float] = []
    assert read_events(path, progress=shares.append) == []
    assert set(shares) == {1.0}


ROWS = [{"id": f"e{n}", "type": "AB"[n % 2], "time": 5 - n, "key": "k", "v": n, "w": f"t{n}"} for n in range(3)]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_files_of_columns_have_the_events_of_lines(tmp_path: Path, name: str) -> None:
    table, path, lines = pa.Table.from_pylist(ROWS), tmp_path / name, tmp_path / "a.jsonl"
    lines.write_bytes(b"".join(orjson.dumps({**row, "data": {"v": row["v"], "w": row["w"]}}) + b"\n" for row in ROWS))
    if name.endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    assert read_events(path) == read_events(lines)
    assert [one.data for one in read_batch(path, read=["w"]).to_events()] == [{"w": f"t{n}"} for n in (2, 1, 0)]
    with pytest.raises(EventFileError, match=rf"{name}: no column 'when'"):
        read_batch(path, ReaderOptions(columns=Columns(time="when")))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_damaged_files_of_columns_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EventFileError, match=rf"{name}: cannot be opened: No such file"):
        read_batch(tmp_path / name)
    (tmp_path / name).write_bytes(b"not a table, whatever its name")
    with pytest.raises(EventFileError, match=rf"{name}: not readable"):
        read_batch(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (ReaderOptions(), {"amount", "ticket"}),
        (ReaderOptions(key="ticket"), {"amount", "key"}),
        (ReaderOptions(columns=Columns(type="type")), set()),  # then every other member is an attribute
    ],
)
def test_members_beside_data_are_those_that_are_not_read(
    tmp_path: Path, options: ReaderOptions, expected: set[str]
) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(
        '\n{"id":"1","type":"A","time":1,"key":"k","ticket":"t","amount":5,"data":{"v":1}}\n[1]\nnot JSON\n'
    )
    assert unread_members(path, options) == expected
    assert unread_members(tmp_path / "e.csv", options) == set()

import gzip
import os

import orjson
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pipeline.errors import FeedFolderMissing, SourceOptionError
from pipeline.feeds.folder import FolderOptions, FolderReader, FolderSource
from pipeline.feeds.rows import from_table
from pipeline.sources.options import with_options
from streams import TimeForm
from streams.readers import Columns, ReaderOptions, RowLayout


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def options(folder, tmp_path):
    return FolderOptions(folder=folder, state=tmp_path / "state")


def put(folder, name, count=1, *, age=0, text=None):
    """A finished file, ``age`` seconds old."""
    lines = b"".join(orjson.dumps({"id": f"{name}-{n}"}) + b"\n" for n in range(count)) if text is None else text
    path = folder / name
    path.write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def read(reader, start, end):
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return from_table(pa.Table.from_batches(batches)) if batches else []


def files_of(rows):
    return list(dict.fromkeys(row.origin["file"] for row in rows))


def all_now(reader, start):
    return reader.latestOffset(start, ReadAllAvailable())


def test_new_files_are_taken_by_time_and_name_and_late_ones_after_them(options, folder):
    reader = FolderReader(options)
    start = reader.initialOffset()
    assert all_now(reader, start) == start
    put(folder, "b.jsonl", age=5)
    put(folder, "a.jsonl", age=5)
    put(folder, "c.jsonl.gz", age=9)
    middle = all_now(reader, start)
    first = read(reader, start, middle)
    assert files_of(first) == ["c.jsonl.gz", "a.jsonl", "b.jsonl"]
    put(folder, "late.jsonl", age=99)
    end = all_now(reader, middle)
    assert files_of(read(reader, middle, end)) == ["late.jsonl"]
    assert read(reader, start, middle) == first


def test_a_range_reads_the_same_after_a_restart_without_the_files(options, folder):
    reader = FolderReader(options)
    start = reader.initialOffset()
    path = put(folder, "a.jsonl", 1_500)
    end = all_now(reader, start)
    first = read(reader, start, end)
    assert (len(first), first[-1].place, first[-1].origin) == (1_500, 1_499, {"file": "a.jsonl", "row": 1_500})
    path.unlink()
    again = FolderReader(options)
    assert read(again, start, end) == first
    assert all_now(again, end) == end


def test_unfinished_files_and_folders_wait(options, folder):
    for name in ("_a.jsonl", ".b.jsonl", "c.jsonl.tmp", "D.TMP"):
        put(folder, name)
    (folder / "below.jsonl").mkdir()
    reader = FolderReader(options)
    start = reader.initialOffset()
    assert all_now(reader, start) == start
    (folder / "c.jsonl.tmp").rename(folder / "c.jsonl")
    assert files_of(read(reader, start, all_now(reader, start))) == ["c.jsonl"]


def test_a_micro_batch_has_at_most_its_rows(options, folder):
    for number in range(3):
        put(folder, f"{number}.jsonl", 1_500)
    reader = FolderReader(options)
    offset = reader.initialOffset()
    sizes = []
    while (end := reader.latestOffset(offset, ReadMaxRows(2_000))) != offset:
        sizes.append(len(read(reader, offset, end)))
        offset = end
    assert sum(sizes) == 4_500
    assert max(sizes) <= 2_000


def test_files_are_unpacked_when_they_are_needed(options, folder, tmp_path):
    for number in range(5):
        put(folder, f"{number}.jsonl", 1_000)
    reader = FolderReader(options)
    reader.latestOffset(reader.initialOffset(), ReadMaxRows(1_000))
    assert len(list((tmp_path / "state" / "spool").iterdir())) == 1


def test_a_bounded_run_takes_what_was_there_at_its_start(options, folder):
    put(folder, "a.jsonl")
    reader = FolderReader(options)
    reader.prepareForTriggerAvailableNow()
    put(folder, "b.jsonl")
    start = reader.initialOffset()
    assert files_of(read(reader, start, all_now(reader, start))) == ["a.jsonl"]


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_look(options, folder, monkeypatch):
    path = put(folder, "a.jsonl", 2, age=9)
    reader = FolderReader(options)
    rows_of = reader._rows

    def growing(read_path):
        yield from rows_of(read_path)
        put(folder, "a.jsonl", 3)

    monkeypatch.setattr(reader, "_rows", growing)
    start = reader.initialOffset()
    assert all_now(reader, start) == start
    monkeypatch.undo()
    assert len(read(reader, start, all_now(reader, start))) == 3
    assert path.exists()


def test_a_file_that_changes_later_is_told_of_once(options, folder):
    put(folder, "a.jsonl", 2, age=9)
    reader = FolderReader(options)
    end = all_now(reader, reader.initialOffset())
    put(folder, "a.jsonl", 5)
    after = all_now(reader, end)
    (row,) = read(reader, end, after)
    assert "has changed after it was read" in row.fault
    assert all_now(reader, after) == after


@pytest.mark.parametrize(
    ("name", "text", "count", "reason"),
    [
        ("a.txt", b"x", 0, "no kind of event file"),
        ("a.jsonl.gz", None, 0, "cannot be read"),
        ("a.csv", b'id,type\n1,A\n2,"B', 1, "not CSV"),
    ],
)
def test_what_cannot_be_read_is_a_row_with_a_fault_and_the_file(options, folder, name, text, count, reason):
    path = put(folder, name, text=text)
    if text is None:
        path.write_bytes(b"not gzip at all")
    reader = FolderReader(options)
    start = reader.initialOffset()
    rows = read(reader, start, all_now(reader, start))
    assert len(rows) == count + 1
    assert reason in rows[-1].fault
    assert rows[-1].origin["file"] == name


def test_a_format_stands_above_the_names(folder, tmp_path):
    put(folder, "a.log", text=b"id,type\n1,A\n")
    reader = FolderReader(FolderOptions(folder=folder, state=tmp_path / "state", kind="csv"))
    start = reader.initialOffset()
    (row,) = read(reader, start, all_now(reader, start))
    assert orjson.loads(row.body) == {"id": "1", "type": "A", "data": {}}


def test_a_commit_removes_what_is_behind_it(options, folder, tmp_path):
    put(folder, "a.jsonl")
    reader = FolderReader(options)
    end = all_now(reader, reader.initialOffset())
    reader.commit(end)
    assert list((tmp_path / "state" / "spool").iterdir()) == []
    reader.stop()
    assert all_now(reader, end) == end


def test_a_folder_that_goes_away_is_named(options, folder):
    folder.rmdir()
    reader = FolderReader(options)
    with pytest.raises(FeedFolderMissing, match="cannot be listed"):
        all_now(reader, reader.initialOffset())


def test_a_source_takes_its_options_to_other_processes(folder, tmp_path):
    mapping = ReaderOptions(key={"A": "k"}, columns=Columns(id="n", attributes=("a", "b")), clock=TimeForm(zone="UTC"))
    layout = RowLayout(top=None, texts=frozenset({"x"}), mapping=mapping, key={"A": "data.k", "*": "x"})
    options = FolderOptions(folder=folder, state=tmp_path, kind="csv", layout=layout, max_rows=5, max_bytes=6)
    source = cloudpickle.loads(cloudpickle.dumps(with_options(FolderSource, options)))
    assert (source.source_options, source.name()) == (options, FolderSource.name())
    assert source({}).schema().startswith("place BIGINT")
    assert source({}).streamReader(StructType()).initialOffset() == {"block": 0}


@pytest.mark.parametrize("change", [{"kind": "doc"}, {"max_rows": 0}, {"max_bytes": 0}])
def test_impossible_options_are_refused(folder, tmp_path, change):
    with pytest.raises(SourceOptionError):
        FolderOptions(folder=folder, state=tmp_path, **change)

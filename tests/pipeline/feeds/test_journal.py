import orjson
import pyarrow as pa
import pytest

from pipeline.errors import FeedDamaged
from pipeline.feeds.journal import FileVersion, Journal, read_part
from pipeline.feeds.rows import FeedRow, from_table


def rows(count, size=1, name="a"):
    return [FeedRow(place=0, body=b"x" * size, origin={"file": name, "row": n}) for n in range(count)]


def version(name="a", mtime_ns=1, size_bytes=1):
    return FileVersion(name=name, mtime_ns=mtime_ns, size_bytes=size_bytes)


def read(journal, start, end):
    found = []
    for part in journal.parts(start, end):
        found += from_table(pa.Table.from_batches(list(read_part(part))))
    return found


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path)


def test_blocks_are_bounded_in_rows_and_bytes(journal):
    journal.take(version("a"), rows(2_500))
    assert len(journal) == 3
    journal.take(version("b"), rows(5, size=600_000))
    assert len(journal) == 8


def test_places_grow_over_the_files_of_a_range(journal):
    journal.take(version("a"), rows(1_200, name="a"))
    journal.take(version("none"), [])
    journal.take(version("b"), rows(3, name="b"))
    found = read(journal, 1, 3)
    assert [row.place for row in found] == list(range(203))
    assert [row.origin["file"] for row in found] == ["a"] * 200 + ["b"] * 3


@pytest.mark.parametrize(
    ("max_rows", "max_bytes", "ends"),
    [(None, None, [4]), (2_000, None, [2, 4]), (1, None, [1, 2, 3, 4]), (9_999, 120_000, [2, 4])],
)
def test_a_micro_batch_is_bounded_but_never_empty(journal, max_rows, max_bytes, ends):
    for name in "ab":
        journal.take(version(name), rows(2_000))
    found = [0]
    while found[-1] < len(journal):
        found.append(journal.end_of(found[-1], max_rows, max_bytes))
    assert found[1:] == ends
    assert journal.end_of(4, max_rows, max_bytes) == 4


def test_a_journal_is_the_same_after_a_restart(journal, tmp_path):
    journal.take(version("a"), rows(1_500))
    before = read(journal, 0, 2)
    again = Journal(tmp_path)
    assert (len(again), again.latest("a"), again.latest("b")) == (2, version("a"), None)
    again.take(version("b"), rows(2, name="b"))
    assert read(again, 0, 2) == before
    assert [row.origin["file"] for row in read(again, 2, 3)] == ["b", "b"]


def test_a_crash_while_a_file_is_written_down_leaves_no_trace(journal, tmp_path):
    journal.take(version("a"), rows(2))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"format":1,"name":"b"')
    again = Journal(tmp_path)
    assert (len(again), again.latest("b")) == (1, None)
    again.take(version("b"), rows(3, name="b"))
    assert len(read(Journal(tmp_path), 0, 2)) == 5


def test_a_file_that_cannot_be_unpacked_is_not_written_down(journal, tmp_path):
    def failing():
        yield from rows(3)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        journal.take(version("a"), failing())
    assert (len(journal), len(Journal(tmp_path))) == (0, 0)
    journal.take(version("a"), rows(1))
    assert len(read(journal, 0, 1)) == 1


def test_spools_behind_an_offset_go_and_the_names_stay(journal, tmp_path):
    for name in "abc":
        journal.take(version(name), rows(1_500))
    journal.forget_spools(3)
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == ["00000001.arrow", "00000002.arrow"]
    assert Journal(tmp_path).latest("a") == version("a")
    assert len(read(journal, 2, 6)) == 3_000
    with pytest.raises(FeedDamaged, match=r"00000000\.arrow cannot be read"):
        read(journal, 0, 1)


def test_a_checkpoint_of_another_journal_is_refused(journal):
    with pytest.raises(FeedDamaged, match=r"at block 3 and .* knows of 0"):
        journal.parts(0, 3)


@pytest.mark.parametrize("line", [b"nonsense", b"[]", orjson.dumps({"format": 9}), orjson.dumps({"format": 1})])
def test_a_damaged_journal_is_refused_with_the_line(tmp_path, line):
    (tmp_path / "journal.jsonl").write_bytes(line + b"\n")
    with pytest.raises(FeedDamaged, match=r"journal\.jsonl: line 1"):
        Journal(tmp_path)

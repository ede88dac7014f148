import pytest

from pipeline.snapshots import FolderSnapshots


@pytest.fixture(params=[True, False], ids=["durable", "quick"])
def store(request, tmp_path):
    return FolderSnapshots(tmp_path / "states", is_durable=request.param)


def test_what_was_written_is_read_until_it_is_removed(store):
    assert store.read(3, "1-1") is None
    store.write(3, "1-1", b"old")
    store.write(3, "1-1", b"state")
    assert store.read(3, "1-1") == b"state"
    assert store.read(2, "1-1") is None
    store.remove(3, "1-1")
    store.remove(3, "1-1")
    assert store.read(3, "1-1") is None


def test_only_what_is_wanted_is_kept_unfinished_files_included(store, tmp_path):
    for position in ("1-1", "1-2", "2-1"):
        store.write(0, position, b"x")
    store.write(1, "1-1", b"of another shard")
    (tmp_path / "states" / "0" / "9-9.123.tmp").write_bytes(b"half")
    store.keep_only(0, ("1-2", "2-1"))
    assert sorted(store.positions(0)) == ["1-2", "2-1"]
    assert sorted(path.name for path in (tmp_path / "states" / "0").iterdir()) == ["1-2.state", "2-1.state"]
    assert store.positions(1) == ["1-1"]
    assert store.positions(7) == []

from unittest.mock import sentinel

from pipeline.snapshots import FolderSnapshots, RedisSnapshots, open_snapshots


def test_an_option_names_the_store(tmp_path):
    assert isinstance(open_snapshots("redis", sentinel.server), RedisSnapshots)
    folder = open_snapshots(str(tmp_path), sentinel.server)
    assert isinstance(folder, FolderSnapshots)
    folder.write(0, "1-1", b"x")
    assert (tmp_path / "0" / "1-1.state").read_bytes() == b"x"

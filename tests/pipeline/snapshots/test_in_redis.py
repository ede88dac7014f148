import pytest

from pipeline.snapshots import RedisSnapshots

pytestmark = pytest.mark.redis


def test_what_was_written_is_read_until_it_is_removed(server):
    store = RedisSnapshots(server.client)
    assert store.read(3, "1-1") is None
    store.write(3, "1-1", b"old")
    store.write(3, "1-1", b"state")
    assert store.read(3, "1-1") == b"state"
    assert store.read(2, "1-1") is None
    store.remove(3, "1-1")
    assert store.read(3, "1-1") is None

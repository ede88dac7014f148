import pytest

from pipeline.snapshots import SnapshotIndex

pytestmark = pytest.mark.redis


def test_the_newest_snapshot_up_to_a_position_is_found(server):
    index = SnapshotIndex(server.client)
    assert index.latest(0, "99-0") is None
    for position in ("10-0", "9-5", "9-11"):
        index.enter(0, position, 100)
    index.enter(1, "1-0", 100)
    assert index.positions(0) == ["9-5", "9-11", "10-0"]
    assert index.latest(0, "9-11") == "9-11"
    assert index.latest(0, "9-12") == "9-11"
    assert index.latest(0, "9-4") is None
    index.remove(0, "9-11")
    assert index.latest(0, "9-12") == "9-5"

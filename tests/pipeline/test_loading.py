import pytest

from pipeline.errors import QueryFailed
from pipeline.job import JobOptions
from pipeline.snapshots import SnapshotIndex
from pipeline.sources import EventLogOptions
from pipeline.step import load_states
from streams import StreamDeclaration, StreamOn
from tests.builders.shards import event, log_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def test_a_state_that_cannot_be_loaded_is_known_before_the_first_event_comes(spark, server, tmp_path):
    logs = log_of([StreamOn(StreamDeclaration(name="orders")), [event(1, "A", "k")]], shards=2)
    server.append(logs)
    log = EventLogOptions(redis_url=server.url, shards=2, snapshots=str(tmp_path / "snapshots"), results="matched")
    options = JobOptions(log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handover")
    load_states(spark, options.held)
    last = logs[0][-1].position
    server.client.hset("matched", "position:0", last)
    load_states(spark, options.held)
    SnapshotIndex(server.client).enter(0, last, 100, "/mnt/states")
    others = JobOptions(log=log, checkpoint=tmp_path / "other", handover=tmp_path / "others")  # hold no state yet
    with pytest.raises(QueryFailed, match=r"cannot be loaded: the snapshot of shard 0 .* set FORESTALL_SNAPSHOTS=/mnt"):
        load_states(spark, others.held)

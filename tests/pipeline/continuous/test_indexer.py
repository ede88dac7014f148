"""The indexer writes blocks, and removes those that are written."""

import threading
import weakref

import pytest

from pipeline.continuous import blocks
from pipeline.continuous.blocks import BlockWriter, Step, begin_at, to_bytes
from pipeline.continuous.indexer import Indexer
from pipeline.records import EPOCHS_KEY
from pipeline.sources import EventLogOptions
from pipeline.sources.log_reading import POSITIONS_KEY

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("others", [0, 1])
def test_a_step_does_not_wait_for_blocks_that_are_written(server, monkeypatch, others):
    """Few large blocks may wait, and one batch has all of them: no other note follows that would remove them."""
    monkeypatch.setattr(blocks, "_MOST_BYTES", 0)
    begin_at(server.client, {0: "0-0", 1: "0-0"})
    server.client.hset(EPOCHS_KEY, mapping={"0": 1, "1": 1})
    options = EventLogOptions(redis_url=server.url, shards=2, results=POSITIONS_KEY)
    writer, indexer = BlockWriter(server.client, 2), Indexer(options, lambda rows, number: None, lambda report: None)
    indexer.recover()

    def write(number, shard=0):
        step = Step(shard=shard, epoch=1, before=f"{number}-0", after=f"{number + 1}-0", rows=to_bytes([]))
        assert writer.write(step)

    for turn, numbers in enumerate((range(4), range(4, 7))):
        for number in numbers:
            writing = threading.Thread(target=write, args=(number,), daemon=True)
            writing.start()
            writing.join(300)
            assert not writing.is_alive()
        assert indexer.write_next(1)
        for _ in range(others):
            write(turn, shard=1)
            assert indexer.write_next(1)
    indexer.recover()
    assert indexer.afters == {0: "7-0", 1: f"{2 * others}-0"}


def test_an_indexer_that_was_not_started_needs_no_collector(server):
    indexer = Indexer(EventLogOptions(redis_url=server.url, shards=1), lambda rows, number: None, lambda report: None)
    removed = weakref.ref(indexer)
    del indexer
    assert removed() is None

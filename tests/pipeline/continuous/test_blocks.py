import threading
import time
from dataclasses import replace

import pytest
from redis.client import Pipeline

from pipeline.continuous import blocks
from pipeline.continuous.blocks import BlockWriter, Step, begin_at, positions, read_blocks, read_range, to_bytes
from pipeline.continuous.keys import blocks_key
from pipeline.records import EPOCHS_KEY
from pipeline.sources.log_reading import POSITIONS_KEY
from shards.rows import rows_of
from shards.state import ShardState
from streams import PatternOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step as LogStep
from tests.builders.shards import event, log_of

pytestmark = pytest.mark.redis


@pytest.fixture
def log(server):
    begin_at(server.client, {0: "0-0", 1: "0-0"})
    server.client.hset(EPOCHS_KEY, mapping={"0": 3, "1": 1})
    return server.client


def step(before, after, shard=0, epoch=3):
    return Step(shard=shard, epoch=epoch, before=before, after=after, rows=f"{before} {after}".encode())


def written(log, shard=0):
    return [block.rows.decode() for block in read_range(log, shard, "0-0", "9-9")]


def test_steps_move_the_position_one_after_the_other(log):
    writer = BlockWriter(log)
    for number in range(5):
        writer.put(step(f"{number}-0", f"{number + 1}-0"))
    writer.put(step("0-0", "7-1", shard=1, epoch=1))
    assert writer.flush() == set()
    assert written(log) == [f"{number}-0 {number + 1}-0" for number in range(5)]
    assert positions(log, 2) == ["5-0", "7-1"]


def test_the_thread_ends_after_the_last_step(log):
    before = threading.active_count()
    writer = BlockWriter(log)
    writer.put(step("0-0", "1-0"))
    writer.end()
    writer.flush()
    assert written(log) == ["0-0 1-0"]
    deadline = time.monotonic() + 60
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_former_owner_writes_nothing(log):
    writer = BlockWriter(log)
    writer.put(step("0-0", "1-0", epoch=2))
    writer.put(step("1-0", "2-0", epoch=2))
    assert writer.flush() == {(0, 2)}
    assert (written(log), positions(log, 1)) == ([], ["0-0"])
    assert writer.flush() == set()


def test_a_step_from_another_position_is_refused(log):
    writer = BlockWriter(log)
    writer.put(step("4-0", "5-0"))
    assert writer.flush() == {(0, 3)}
    assert written(log) == []


def test_a_step_whose_answer_was_lost_counts_as_written(log):
    for _ in range(2):
        writer = BlockWriter(log)
        writer.put(step("0-0", "1-0"))
        assert writer.flush() == set()
    assert written(log) == ["0-0 1-0"]


def test_a_server_that_has_forgotten_the_script_is_given_it_again(log, monkeypatch):
    writer, execute, forgets = BlockWriter(log), Pipeline._execute_pipeline, [True]

    def forgetting(self, *given, **options):
        if forgets.pop() if forgets else False:
            log.script_flush()
        return execute(self, *given, **options)

    monkeypatch.setattr(Pipeline, "_execute_pipeline", forgetting)
    writer.put(step("0-0", "1-0"))
    assert writer.flush() == set()
    assert written(log) == ["0-0 1-0"]


def test_steps_wait_while_the_indexer_is_behind(log, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_BLOCKS", 2)
    writer = BlockWriter(log)
    for number in range(4):
        writer.put(step(f"{number}-0", f"{number + 1}-0"))
    writer.put(step("0-0", "7-1", shard=1, epoch=1))
    flushing = threading.Thread(target=writer.flush)
    flushing.start()
    flushing.join(0.2)
    assert flushing.is_alive()
    assert (len(written(log)), len(written(log, 1))) == (2, 1)
    log.xtrim(blocks_key(0), maxlen=0, approximate=False)
    flushing.join(5)
    assert written(log) == ["2-0 3-0", "3-0 4-0"]
    assert writer.refused == set()


def test_steps_that_wait_are_not_sent_again_and_again(log, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_BLOCKS", 2)
    writer, counts = BlockWriter(log), []
    send = writer._sent

    def counted(steps):
        counts.append(len(steps))
        return send(steps)

    monkeypatch.setattr(writer, "_sent", counted)
    for number in range(8):
        writer.put(step(f"{number}-0", f"{number + 1}-0"))
    until_written(log, 2)
    time.sleep(0.3)
    log.xtrim(blocks_key(0), maxlen=0, approximate=False)
    until_written(log, 2)
    log.hincrby(EPOCHS_KEY, "0", 1)
    assert writer.flush() == {(0, 3)}
    assert sum(counts) <= 8 + 8 + 6


def test_few_large_blocks_wait(log, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_BYTES", 40)
    writer = BlockWriter(log)
    for number in range(8):
        writer.put(step(f"{number}-0", f"{number + 1}-0"))
    until_written(log, 40 // len("0-0 1-0"))
    log.hincrby(EPOCHS_KEY, "0", 1)
    assert writer.flush() == {(0, 3)}
    assert len(written(log)) == 40 // len("0-0 1-0")


def until_written(log, count):
    deadline = time.monotonic() + 60
    while len(written(log)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_write_raises_reaches_the_task(log):
    writer = BlockWriter(log)
    writer.put(replace(step("0-0", "1-0"), after="no position"))
    with pytest.raises(Exception, match="stream ID"):
        writer.flush()
    with pytest.raises(Exception, match="stream ID"):
        writer.put(step("1-0", "2-0"))


def test_rows_come_back_from_a_block(log):
    steps: list[LogStep] = [
        StreamOn(StreamDeclaration(name="orders")),
        PatternOn(name="pair", version=1, text="PATTERN pair EVENT SEQ(A a, U u)"),
        *([event(number, "AU"[number % 2], "k")] for number in range(200)),
    ]
    for few in (steps[:4], steps):
        found = ShardState(0).advance(log_of(few)[0])
        log.delete(blocks_key(0))
        log.hset(POSITIONS_KEY, "position:0", "0-0")
        writer = BlockWriter(log)
        writer.put(Step(shard=0, epoch=3, before="0-0", after="9-9", rows=to_bytes(found)))
        writer.flush()
        (block,) = read_blocks(log, {0: "0-0"}, 1)
        assert rows_as_text(block.to_rows()) == rows_as_text(rows_of(found))
        assert found


def rows_as_text(rows):
    return [(row.kind, row.stream, row.id, row.body, row.position, row.shard, row.subject) for row in rows]

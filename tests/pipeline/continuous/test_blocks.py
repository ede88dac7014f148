import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

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
    writer = BlockWriter(log, 2)
    assert all(writer.write(step(f"{number}-0", f"{number + 1}-0")) for number in range(5))
    assert writer.write(step("0-0", "7-1", shard=1, epoch=1))
    assert written(log) == [f"{number}-0 {number + 1}-0" for number in range(5)]
    assert positions(log, 2) == ["5-0", "7-1"]


def test_a_former_owner_writes_nothing(log):
    writer = BlockWriter(log, 2)
    assert not writer.write(step("0-0", "1-0", epoch=2))
    assert not writer.write(step("1-0", "2-0", epoch=2))
    assert (written(log), positions(log, 1)) == ([], ["0-0"])


def test_a_step_from_another_position_is_refused(log):
    assert not BlockWriter(log, 2).write(step("4-0", "5-0"))
    assert written(log) == []


def test_a_step_whose_answer_was_lost_counts_as_written(log):
    assert all(BlockWriter(log, 2).write(step("0-0", "1-0")) for _ in range(2))
    assert written(log) == ["0-0 1-0"]


def test_a_server_that_has_forgotten_the_script_is_given_it_again(log):
    writer = BlockWriter(log, 2)
    assert writer.write(step("0-0", "1-0"))
    log.script_flush()
    assert writer.write(step("1-0", "2-0"))
    assert written(log) == ["0-0 1-0", "1-0 2-0"]


def test_a_step_waits_while_the_indexer_is_behind(log, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 2)
    writer = BlockWriter(log, 2)
    outcomes: list[bool] = []
    assert all(writer.write(step(f"{number}-0", f"{number + 1}-0")) for number in range(2))
    assert writer.write(step("0-0", "7-1", shard=1, epoch=1))
    writing = writing_of(writer, step("2-0", "3-0"), outcomes)
    writing.join(0.2)
    assert (writing.is_alive(), len(written(log))) == (True, 2)
    log.xtrim(blocks_key(0), maxlen=0, approximate=False)
    writing.join(300)
    assert (written(log), outcomes) == (["2-0 3-0"], [True])


def test_a_step_that_waits_is_not_sent_again_and_again_and_is_refused_once_another_task_holds_the_shard(
    log, monkeypatch
):
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 2)
    writer, sent = BlockWriter(log, 2), []
    outcomes: list[bool] = []
    run = writer._run

    def counted(*given):
        sent.append(given)
        return run(*given)

    monkeypatch.setattr(writer, "_run", counted)
    assert all(writer.write(step(f"{number}-0", f"{number + 1}-0")) for number in range(2))
    writing = writing_of(writer, step("2-0", "3-0"), outcomes)
    time.sleep(0.3)
    log.hincrby(EPOCHS_KEY, "0", 1)
    writing.join(300)
    assert (len(written(log)), outcomes, len(sent)) == (2, [False], 2 + 2)


def test_few_large_blocks_wait(log, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_BYTES", 40)
    writer = BlockWriter(log, 2)
    outcomes: list[bool] = []
    most = 40 // len("0-0 1-0")
    assert all(writer.write(step(f"{number}-0", f"{number + 1}-0")) for number in range(most))
    writing = writing_of(writer, step(f"{most}-0", f"{most + 1}-0"), outcomes)
    writing.join(0.2)
    log.hincrby(EPOCHS_KEY, "0", 1)
    writing.join(300)
    assert (len(written(log)), outcomes) == (most, [False])


def writing_of(writer, one, outcomes):
    writing = threading.Thread(target=lambda: outcomes.append(writer.write(one)))
    writing.start()
    return writing


def test_what_a_write_raises_reaches_the_task(log):
    with pytest.raises(Exception, match="stream ID"):
        BlockWriter(log, 2).write(replace(step("0-0", "1-0"), after="no position"))


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
        assert BlockWriter(log, 2).write(Step(shard=0, epoch=3, before="0-0", after="9-9", rows=to_bytes(found)))
        (block,) = read_blocks(log, {0: "0-0"}, 1)
        assert rows_as_text(block.to_rows()) == rows_as_text(rows_of(found))
        assert found


def rows_as_text(rows):
    return [(row.kind, row.stream, row.id, row.body, row.position, row.shard, row.subject) for row in rows]


def test_few_large_blocks_are_read_at_once_the_oldest_first(log, monkeypatch):
    monkeypatch.setattr(blocks, "BATCH_BYTES", 10)
    writer = BlockWriter(log, 2)
    for shard, epoch, places in ((0, 3, "0258"), (1, 1, "0347")):
        for before, after in pairwise(places):
            assert writer.write(step(f"{before}-0", f"{after}-0", shard=shard, epoch=epoch))
    at, seen = {0: "0-0", 1: "0-0"}, []
    while found := read_blocks(log, at, None):
        assert len(found) <= 2
        at |= {block.shard: block.position for block in found}
        seen += [(block.shard, block.position) for block in found]
    assert seen == [(0, "2-0"), (1, "3-0"), (1, "4-0"), (0, "5-0"), (1, "7-0"), (0, "8-0")]

"""Blocks: the results of a step as one entry in Redis, written together with the shard's new position.

A block is an Arrow stream with the columns of ``pipeline.step.OUTPUT_DDL``. The position of a shard moves only in the
script ``commit``, which compares the lease's epoch and the position where the step began; so of all attempts at a step,
one is written.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import redis

from pipeline.continuous.keys import blocks_key
from pipeline.records import EPOCHS_KEY
from pipeline.sources.log_reading import POSITIONS_KEY, START
from pipeline.step import from_table, to_batch
from shards import OutputRow, RowBlock
from streams import position_order, read_script

_COMPRESSED_FROM = 4_096  # bytes of rows; smaller blocks are written as they are
_MOST_BLOCKS = 64  # of a shard that wait for the indexer; then its steps wait
_MOST_BYTES = 32_000_000  # about as many bytes wait
_LEAST_BLOCKS = 4  # wait in any case: two of them may be read already
_AHEAD = 16  # steps that a task is ahead of its writes
_PAUSE_S = 0.01
_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A finished step of a shard: the range of the log, and its rows as a block."""

    shard: int
    epoch: int
    before: str
    after: str
    rows: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A written block, as the indexer reads it."""

    shard: int
    after: str
    position: str
    rows: bytes

    def to_rows(self) -> list[OutputRow]:
        """The rows, by position."""
        return from_table(pa.ipc.open_stream(self.rows).read_all())


def to_bytes(rows: Iterable[RowBlock]) -> bytes:
    """The rows of a step as a block."""
    batch = to_batch(rows)
    compression = "lz4" if batch.nbytes >= _COMPRESSED_FROM else None
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)  # threads cost more than they save
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return cast(bytes, sink.getvalue().to_pybytes())


class BlockWriter:
    """Writes steps in their order from another thread; steps that wait are written together.

    ``refused`` has shards and epochs whose steps were not written, because another task holds the shard, or the server
    has lost the steps before them: what the task knows of such a shard is void.
    """

    def __init__(self, server: redis.Redis) -> None:
        self._server = server
        self._script = read_script("pipeline.continuous", "commit")
        self._run = server.register_script(self._script.text)
        self._steps: queue.Queue[Step | None] = queue.Queue(_AHEAD)  # None: the end
        self._error: Exception | None = None
        self.refused: set[tuple[int, int]] = set()
        threading.Thread(target=self._write_all, name="block-writer", daemon=True).start()

    def put(self, step: Step) -> None:
        """Write a step soon; waits while too many wait. Raises what an earlier write raised."""
        self._raise()
        self._steps.put(step)

    def flush(self) -> set[tuple[int, int]]:
        """Wait until all steps are written or refused; takes what was refused. Raises what a write raised."""
        self._steps.join()
        self._raise()
        refused, self.refused = self.refused, set()
        return refused

    def end(self) -> None:
        """End the thread; steps that wait are written first, where there is room for them."""
        with suppress(queue.Full):
            self._steps.put(None, timeout=_PATIENCE_S)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _write_all(self) -> None:
        is_over = False
        while not is_over:
            taken = [self._steps.get()]
            while not self._steps.empty():
                taken.append(self._steps.get())
            is_over = None in taken
            try:
                if self._error is None:
                    self._write([step for step in taken if step is not None])
            # house: allow broad-except: whatever it is, the task's own thread raises it
            except Exception as error:
                self._error = error
            for _ in taken:
                self._steps.task_done()

    def _write(self, steps: Sequence[Step]) -> None:
        left = sent = list(steps)
        while sent:
            done = self._sent(sent)
            is_full = len(done) < len(sent)
            left = [step for step in left if id(step) not in done]
            sent = list({step.shard: step for step in reversed(left)}.values())  # the first of each shard
            while is_full and all(self._is_full(step) for step in sent):
                time.sleep(_PAUSE_S)

    def _sent(self, steps: Sequence[Step]) -> set[int]:
        """Write steps; the ids of those that need not be sent again, because they are written or refused."""
        pipe = self._server.pipeline(transaction=False)
        for step in steps:
            self._run(*self._script.bind(_given(step)), client=pipe)
        try:
            answers = cast("list[tuple[bytes, bytes | None]]", pipe.execute())
        except redis.exceptions.NoScriptError:  # a server that was started again while it was asked
            return set()
        full: set[int] = set()
        done: set[int] = set()
        for step, (outcome, at) in zip(steps, answers, strict=True):
            if outcome == b"full" or (step.shard in full and outcome == b"moved"):
                full.add(step.shard)
                continue
            done.add(id(step))
            if outcome != b"written" and not _is_done(step, outcome, at):
                self.refused.add((step.shard, step.epoch))
        return done

    def _is_full(self, step: Step) -> bool:
        """Whether the step cannot be written yet, and need not be sent."""
        epoch = cast("bytes | None", self._server.hget(EPOCHS_KEY, str(step.shard)))
        is_owned = epoch is not None and int(epoch) == step.epoch
        return is_owned and self._server.xlen(blocks_key(step.shard)) >= _most_blocks(step)


def _given(step: Step) -> dict[str, Any]:
    return {
        "epochs": EPOCHS_KEY,
        "positions": POSITIONS_KEY,
        "blocks": blocks_key(step.shard),
        "shard": step.shard,
        "epoch": step.epoch,
        "before": step.before,
        "after": step.after,
        "most_blocks": _most_blocks(step),
        "rows": step.rows,
    }


def _most_blocks(step: Step) -> int:
    """The blocks of the shard that may wait, as if all had the size of this one."""
    return min(_MOST_BLOCKS, max(_LEAST_BLOCKS, _MOST_BYTES // max(1, len(step.rows))))


def _is_done(step: Step, outcome: bytes, at: bytes | None) -> bool:
    """Whether a step was written by an earlier attempt, whose answer was lost: only the owner moves a position."""
    return outcome == b"moved" and at is not None and position_order(at.decode()) >= position_order(step.after)


def positions(server: redis.Redis, shards: int) -> list[str]:
    """The position of each shard up to which results are in blocks."""
    found = server.hmget(POSITIONS_KEY, [f"position:{shard}" for shard in range(shards)])
    return [START if one is None else one.decode() for one in cast("list[bytes | None]", found)]


def begin_at(server: redis.Redis, starts: Mapping[int, str]) -> None:
    """Raise the positions of shards to where micro-batches or a resharding left them; no task may be running."""
    at = positions(server, max(starts) + 1)
    for shard, start in starts.items():
        server.hset(POSITIONS_KEY, f"position:{shard}", max(start, at[shard], key=position_order))


def read_blocks(server: redis.Redis, afters: Mapping[int, str], wait_ms: int) -> list[Block]:
    """The next block of each shard after a position, at most one each; waits up to ``wait_ms`` for the first."""
    keys = {blocks_key(shard): shard for shard in afters}
    streams: dict[Any, Any] = {key: afters[shard] for key, shard in keys.items()}
    found = cast("list[Any]", server.xread(streams, count=1, block=wait_ms or None) or [])
    return [_block(keys[key.decode()], *entries[0]) for key, entries in found]


def read_range(server: redis.Redis, shard: int, after: str, until: str) -> list[Block]:
    """The blocks of a shard after a position, up to and including another."""
    found = cast("list[Any]", server.xrange(blocks_key(shard), min=f"({after}", max=until))
    return [_block(shard, *entry) for entry in found]


def _block(shard: int, position: bytes, fields: Mapping[bytes, bytes]) -> Block:
    return Block(shard=shard, after=fields[b"after"].decode(), position=position.decode(), rows=fields[b"rows"])

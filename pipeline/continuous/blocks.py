"""Blocks: the results of a step as one entry in Redis, written together with derived events and the new position.

A small block is a line of JSON that has the size of each body in place of the body, followed by the bodies, because
columns would cost more for few rows. Any other block is an Arrow stream with the columns of
``pipeline.step.OUTPUT_DDL``. Only the script ``commit`` advances the position of a shard. The script first compares the
lease's epoch and the position at which the step began. So if a step is attempted several times, one attempt is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

import orjson
import pyarrow as pa
import redis

from pipeline.continuous.derived import NOTHING, Derived
from pipeline.continuous.keys import blocks_key
from pipeline.errors import QueryFailed
from pipeline.records import EPOCHS_KEY
from pipeline.sources.log_reading import POSITIONS_KEY, START
from pipeline.step import from_table, to_batch
from shards import OutputRow, RowBlock, rows_of
from streams import (
    APPENDED_KEY,
    DERIVED_PROMISES_KEY,
    LAYOUT_KEY,
    ROUTES_KEY,
    STREAM_TIMES_KEY,
    STREAMS_KEY,
    ScriptInput,
    position_order,
    read_script,
)

_FEW_ROWS, _FEW_BYTES = 64, 65_536
_ARROW = b"\xff\xff\xff\xff"  # the beginning of an Arrow stream
MOST_BLOCKS = 64  # unindexed blocks of a shard; at the limit its steps wait
_MOST_BYTES = 32_000_000  # approximate size of a shard's unindexed blocks
_LEAST_BLOCKS = 4  # allowed whatever their size: the indexer may have read two of them already
BATCH_BYTES = 4_000_000
"""Approximate limit of the bytes of blocks that are read at once."""

_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a task writes after it has matched a range of a shard's log: the results as a block, and the derived events.

    Attributes:
        epoch: Number of the lease under which the task owns the shard.
        before: Position after which the range begins.
        after: Position at which the range ends.
        rows: The results as a block, from ``to_bytes``.
    """

    shard: int
    epoch: int
    before: str
    after: str
    rows: bytes
    derived: Derived = NOTHING

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes that the step writes."""
        return len(self.rows) + self.derived.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The results of one step as the indexer reads them from Redis.

    Attributes:
        after: Position after which the step's range of the log begins.
        position: Position at which the range ends.
        rows: The results, as ``to_bytes`` has encoded them.
    """

    shard: int
    after: str
    position: str
    rows: bytes

    def to_rows(self) -> list[OutputRow]:
        """Return the rows, sorted by position."""
        if self.rows.startswith(_ARROW):
            return from_table(pa.ipc.open_stream(self.rows).read_all())
        heads, _, bodies = self.rows.partition(b"\n")
        rows, at = list[OutputRow](), 0
        for kind, stream, identity, length, *about in orjson.loads(heads):
            rows.append(OutputRow(kind, stream, identity, bodies[at : at + length], *about))
            at += length
        return rows


def to_bytes(blocks: Iterable[RowBlock]) -> bytes:
    """Encode the rows of a step as a block: few rows as JSON, and more rows as an Arrow stream."""
    row_blocks = list(blocks)
    if sum(map(len, row_blocks)) <= _FEW_ROWS:
        rows = sorted(rows_of(row_blocks), key=lambda row: position_order(row.position))
        heads = orjson.dumps([(*row[:3], len(row.body), *row[4:]) for row in rows])
        text = b"\n".join((heads, b"".join(row.body for row in rows)))
        if len(text) <= _FEW_BYTES:
            return text
    batch = to_batch(row_blocks)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # threads cost more than they save
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return cast(bytes, sink.getvalue().to_pybytes())


class BlockWriter:
    """Writes the steps of a task, in the task's own thread.

    In another thread, the write would wait for Python's lock while the task matches, which takes longer than the write.
    """

    def __init__(self, server: redis.Redis, shards: int) -> None:
        self._server = server
        self._shards = shards
        self._sinces: dict[str, str] = {}  # declaration time by derived stream
        self._script = read_script("pipeline.continuous", "commit")
        self._run = server.register_script(self._script.text)

    def write(self, step: Step) -> bool:
        """Write a step. Before, wait while too many blocks of the shard are not indexed.

        Return False if the write is refused, because another task owns the shard or the server has lost earlier steps.
        The task's state of the shard is then invalid. Raise ``QueryFailed`` if the log is being resharded, or was
        resharded since the job began.
        """
        while True:
            outcome, at = cast("tuple[bytes, Any]", self._run(*self._script.bind(self._script_inputs(step))))
            if outcome == b"declared":
                self._sinces |= {stream: since.decode() for stream, since in zip(step.derived.events, at, strict=True)}
            elif outcome == b"divided":
                raise QueryFailed("the log is being divided into other shards, or was since the pipeline began")
            elif outcome != b"full":
                return outcome == b"written" or _is_done(step, outcome, at)
            else:
                self._await_room(step)

    def _await_room(self, step: Step) -> None:
        while self._server.xlen(blocks_key(step.shard)) >= _most_blocks(step):
            epoch = cast("bytes | None", self._server.hget(EPOCHS_KEY, str(step.shard)))
            if epoch is None or int(epoch) != step.epoch:
                return
            time.sleep(_PAUSE_S)

    def _script_inputs(self, step: Step) -> dict[str, ScriptInput]:
        return {
            "layout": LAYOUT_KEY,
            "epochs": EPOCHS_KEY,
            "positions": POSITIONS_KEY,
            "blocks": blocks_key(step.shard),
            "appended": APPENDED_KEY,
            "times": STREAM_TIMES_KEY,
            "streams": STREAMS_KEY,
            "routes": ROUTES_KEY,
            "promises": DERIVED_PROMISES_KEY,
            "shard_count": self._shards,
            "shard": step.shard,
            "epoch": step.epoch,
            "before": step.before,
            "after": step.after,
            "most_blocks": _most_blocks(step),
            "rows": step.rows,
            **step.derived.script_inputs(step.shard, step.after, self._shards, self._sinces),
        }


def _most_blocks(step: Step) -> int:
    """Return how many blocks of a shard may wait for the indexer. The larger the step's block, the fewer."""
    return min(MOST_BLOCKS, max(_LEAST_BLOCKS, _MOST_BYTES // max(1, len(step.rows))))


def _is_done(step: Step, outcome: bytes, at: bytes | None) -> bool:
    """Check whether the step is already written, by an attempt whose reply was lost.

    ``outcome`` and ``at`` are the script's reply. The outcome ``moved`` means that the shard's position has become
    ``at``, and only the shard's owner can move the position.
    """
    return outcome == b"moved" and at is not None and position_order(at.decode()) >= position_order(step.after)


def positions(server: redis.Redis, shards: int) -> list[str]:
    """Return a position for each shard. Up to this position, the shard's results are in blocks."""
    fields = server.hmget(POSITIONS_KEY, [f"position:{shard}" for shard in range(shards)])
    return [START if position is None else position.decode() for position in cast("list[bytes | None]", fields)]


def begin_at(server: redis.Redis, starts: Mapping[int, str]) -> None:
    """Advance each shard's position to where micro-batches or a resharding ended. No task may be running."""
    at = positions(server, max(starts) + 1)
    for shard, start in starts.items():
        server.hset(POSITIONS_KEY, f"position:{shard}", max(start, at[shard], key=position_order))


def read_blocks(
    server: redis.Redis, afters: Mapping[int, str], wait_ms: int | None, most: int = MOST_BLOCKS
) -> list[Block]:
    """Read the blocks of several shards, oldest first. ``afters`` are the positions after which to read.

    The result has at most ``most`` blocks of a shard, and about ``BATCH_BYTES`` in all. The call waits up to
    ``wait_ms`` for the first block, or not at all if ``wait_ms`` is None.
    """
    keys = {blocks_key(shard): shard for shard in sorted(afters)}
    streams: dict[Any, Any] = {key: afters[shard] for key, shard in keys.items()}
    pages = cast("list[Any]", server.xread(streams, count=most, block=wait_ms) or [])
    blocks = [_block(keys[key.decode()], *entry) for key, entries in pages for entry in entries]
    blocks.sort(key=lambda block: position_order(block.position))
    befores = accumulate((len(block.rows) for block in blocks), initial=0)
    return [block for block, before in zip(blocks, befores, strict=False) if before < BATCH_BYTES]


def read_range(server: redis.Redis, shard: int, after: str, until: str) -> list[Block]:
    """Read the blocks of a shard after the position ``after``, up to and including ``until``."""
    entries = cast("list[Any]", server.xrange(blocks_key(shard), min=f"({after}", max=until))
    return [_block(shard, *entry) for entry in entries]


def _block(shard: int, position: bytes, fields: Mapping[bytes, bytes]) -> Block:
    return Block(shard=shard, after=fields[b"after"].decode(), position=position.decode(), rows=fields[b"rows"])

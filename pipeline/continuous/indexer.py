"""The indexer, which passes blocks on to the sink in batches. After a crash, the batches are the same.

Before the indexer writes a batch, it records the batch's number and the range of each shard in Redis. After a crash it
writes the recorded batch again under the same number, and the sink recognises the rows that it has already stored. A
batch has the blocks that arrived while the previous batch was written. Under load, it has several blocks of each shard.
The sink writes only the recorded batch, and batches are recorded in the order of their numbers. So a driver that was
suspended while another driver took over writes nothing.

If Redis does not answer, the indexer waits, and then writes the recorded batch again. A restarted server has another
run id, which ``note`` compares. The server may have lost its last writes, among them results and blocks that the
indexer has already passed on. The indexer therefore restarts at the positions that the server has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, cast

import orjson
import redis
import structlog

from pipeline.continuous.blocks import BATCH_BYTES, MOST_BLOCKS, Block, positions, read_blocks, read_range
from pipeline.continuous.keys import RANGE_KEY, blocks_key
from pipeline.errors import QueryFailed
from pipeline.progress import BatchMeter, BatchReport, SinkTime, fold, merged
from pipeline.sources.log_reader import EventLogReader
from pipeline.sources.log_reading import START, connect
from pipeline.sources.options import EventLogOptions
from shards import OutputRow
from streams import NOTED_KEY, ForestallError, ScriptInput, position_order, read_script

_Sink = Callable[[Sequence[OutputRow], int], None]


class IndexingSink(Protocol):
    """A sink that accepts the rows of micro-batches, and the rows of blocks.

    The two differ in derived events: those of blocks are already in the log.
    """

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int, /) -> None:
        """Write the rows of a micro-batch."""
        ...

    def index(self, rows: Sequence[OutputRow], epoch_id: int, /) -> None:
        """Write the rows of blocks."""
        ...


_WAIT_MS = 1_000
_GATHERED_S = 0.01  # longest wait for further blocks of a batch; never more than twice the time of the last batch
_SWEPT_S = 1.0
_ATTEMPTS = 3  # attempts to write a batch, if the sink or the server fails temporarily
_PAUSE_S = 0.2

log = structlog.get_logger(__name__)


class Indexer:
    """Writes the blocks of all shards (results of continuous tasks) from Redis to the sink, in its own thread.

    ``error`` is the exception that ended the thread.
    """

    def __init__(self, options: EventLogOptions, sink: _Sink, report: BatchReport) -> None:
        self._options = options
        self._server = connect(options)
        self._meter = BatchMeter(sink, report)
        self._report = report
        self._sink_time: SinkTime | None = None
        self._since = datetime.now(UTC)
        self._afters: dict[int, str] = {}
        self._kept: dict[int, str] = {}
        self._reader = EventLogReader(options)
        self._script = read_script("pipeline.continuous", "note")
        self._run_note = self._server.register_script(self._script.text)
        self._run_id = ""
        self._batch = 0
        self._took_s = 0.0  # seconds for the last batch
        self._block_bytes = 0  # average size of a block in the last batch
        self._swept = time.monotonic()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    def start(self) -> None:
        """Write the batch that a crash interrupted, then start the thread that writes new blocks."""
        self.recover()
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write all waiting blocks, then end the thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def afters(self) -> Mapping[int, str]:
        """Return a position for each shard. Up to this position, the sink has the shard's blocks."""
        return self._afters

    def recover(self) -> None:
        """Find where the last batch of blocks ended, and write this batch again, as a crash may have interrupted it."""
        self._run_id = self._server_run_id()
        noted = cast("bytes | None", self._server.get(RANGE_KEY))
        at = dict(enumerate(positions(self._server, self._options.shards)))
        batch: Any = {"number": 0, "afters": {}, "untils": {}} if noted is None else orjson.loads(noted)
        self._batch = batch["number"]
        blocks: list[Block] = []
        for shard in at:
            after = batch["afters"].get(str(shard), START)
            until = batch["untils"].get(str(shard))
            blocks += [] if until is None else read_range(self._server, shard, after, until)
            self._afters[shard] = until or after
        if blocks:
            self._write(blocks)
            self._note({}, after=self._batch)
        for shard, after in self._afters.items():
            if not self._server.xrange(blocks_key(shard), min=f"({after}", count=1):
                self._afters[shard] = max(after, at[shard], key=position_order)

    def write_next(self, wait_ms: int) -> bool:
        """Write the next blocks to the sink as one batch. Return False if no block arrived within ``wait_ms``.

        The next batch usually removes the blocks of this batch from Redis. If this batch has several blocks of a shard,
        they are removed at once. The shard's next step might otherwise wait for room, so that no next batch would
        arrive.
        """
        blocks = self._next_blocks(wait_ms)
        if not blocks:
            return False
        start_s = time.monotonic()
        self._batch += 1
        untils = _ends(blocks)
        is_known = self._note(untils, after=self._batch - 1)
        if is_known:
            self._write(blocks)
            self._afters.update(untils)
            is_known = len(blocks) == len(untils) or self._note({}, after=self._batch)
        if not is_known:
            self._begin_again()
        self._took_s = time.monotonic() - start_s
        return True

    def _next_blocks(self, wait_ms: int) -> list[Block]:
        most = max(1, min(MOST_BLOCKS, BATCH_BYTES // max(1, self._block_bytes * self._options.shards)))
        blocks = read_blocks(self._server, self._afters, wait_ms, most)
        if blocks and sum(len(block.rows) for block in blocks) < BATCH_BYTES // 2:
            self._over.wait(min(_GATHERED_S, 2 * self._took_s))
            blocks += read_blocks(self._server, self._afters | _ends(blocks), None, most)
        self._block_bytes = sum(len(block.rows) for block in blocks) // max(1, len(blocks))
        return blocks

    def _note(self, untils: Mapping[int, str], *, after: int) -> bool:
        """Record that the next batch, up to the positions ``untils``, follows the batch with the number ``after``.

        Also remove blocks that are already in the sink, of the shards in ``untils`` or, if it is empty, of all shards.
        Return False if the server has restarted. Raise ``QueryFailed`` if another driver has recorded a batch since.
        """
        batch = {
            "number": self._batch,
            "afters": {str(shard): position for shard, position in self._afters.items()},
            "untils": {str(shard): until for shard, until in untils.items()},
        }
        shards = untils or self._afters
        script_inputs: dict[str, ScriptInput] = {
            "range": RANGE_KEY,
            "noted": NOTED_KEY,
            "blocks": [blocks_key(shard) for shard in shards],
            "run_id": self._run_id,
            "before": after,
            "number": self._batch,
            "batch": orjson.dumps(batch),
            "afters": [self._afters[shard] for shard in shards],
        }
        answer = self._run_note(*self._script.bind(script_inputs))
        if answer < 0:
            raise QueryFailed("another driver has begun to write the results; this one was stopped, or cut off")
        return bool(answer)

    def _run(self) -> None:
        failures = 0
        while self.error is None:
            try:
                if failures:
                    self._over.wait(_PAUSE_S)
                    self._begin_again()
                if not self._turn():
                    self._note({}, after=self._batch)
                    return
                failures = 0
            # house: allow broad-except: whatever it is, the query's own thread raises it
            except Exception as error:
                failures += 1
                if failures == _ATTEMPTS or self._over.is_set() or not is_passing(error):
                    self.error = error

    def _turn(self) -> bool:
        is_over = self._over.is_set()
        is_found = self.write_next(1 if is_over else _WAIT_MS)
        if time.monotonic() > self._swept + _SWEPT_S:
            self.sweep()
        return is_found or not is_over

    def sweep(self) -> None:
        """Report the progress, remove log entries that no recovery needs, and notice if the server has restarted."""
        self._swept = time.monotonic()
        if self._sink_time is not None:
            self._report(fold(self._durations(self._sink_time), self._sink_time))
        self._sink_time, self._since = None, datetime.now(UTC)
        if self._server_run_id() != self._run_id:
            self._begin_again()
        if self._afters != self._kept:
            self._kept = dict(self._afters)
            self._reader.commit({str(shard): after for shard, after in self._afters.items()})

    def _server_run_id(self) -> str:
        return str(self._server.info("server")["run_id"])

    def _begin_again(self) -> None:
        """Continue at the positions that a restarted server has. The server may have lost its last writes."""
        log.warning("indexer-begins-again")
        self.recover()

    def _write(self, blocks: Sequence[Block]) -> None:
        self._meter([row for block in blocks for row in block.to_rows()], self._batch)
        sink_time = self._meter.take(self._batch)
        self._sink_time = sink_time if self._sink_time is None else merged(self._sink_time, sink_time)

    def _durations(self, sink_time: SinkTime) -> dict[str, Any]:
        """Return the duration of all batches since the last report, in the form of Spark's report on a batch."""
        spent_s = sum(report[name] for report in sink_time.reports for name in ("load_s", "match_s", "keep_s"))
        whole_ms = sink_time.sink_ms + 1_000 * spent_s
        durations = {"triggerExecution": whole_ms, "addBatch": whole_ms}
        return {"batchId": self._batch, "timestamp": self._since.isoformat(), "durationMs": durations}


def _ends(blocks: Sequence[Block]) -> dict[int, str]:
    return {block.shard: block.position for block in blocks}


def is_passing(error: Exception) -> bool:
    """Check whether an error is temporary, because the server does not answer now but may answer later."""
    if isinstance(error, ForestallError):
        return error.is_retryable and error.fault == "external"
    return isinstance(error, redis.ConnectionError | redis.TimeoutError)

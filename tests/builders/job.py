"""The job for tests: matches the log without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.job import JobOptions
from pipeline.sources.log_reader import EventLogReader, log_ends
from pipeline.sources.log_reading import connect, read_entries
from shards import OutputRow, rows_of


def match_log(options: JobOptions, sink: Callable[[Sequence[OutputRow], int], None]) -> None:
    """Do the job's work without Spark: from its checkpoint, a file of offsets, to the log's end."""
    held = HeldShards(HeldOptions(log=options.log, handover=options.handover, kinds=options.kinds))
    reader = EventLogReader(options.log)
    checkpoint = options.checkpoint / "offsets"
    begin = orjson.loads(checkpoint.read_bytes()) if checkpoint.exists() else reader.initialOffset()
    reader.check(begin)
    end = log_ends(options.log)
    server = connect(options.log)
    for shard, after in begin.items():
        reached = after
        for page in read_entries(server, int(shard), after, end[shard]):
            sink(rows_of(held.advance(int(shard), reached, page)), 0)
            reached = page[-1].position
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_bytes(orjson.dumps(end))
    reader.commit(end)
    reader.stop()
    server.close()
    held.close()

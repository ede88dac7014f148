"""The job as a process of its own that dies at a chosen moment; run by ``test_recovery``.

Arguments: data folder, URL of the log, number of shards, how to die, and at which non-empty micro-batch.
Rows go to the Redis hash ``rows``, by id, as the service's own store would keep them.
"""

import os
import signal
import sys
from pathlib import Path

import orjson
import redis

from pipeline import EventLogOptions, JobOptions, QueryFailed, SessionOptions, build_session, run_pipeline


class DyingSink:
    def __init__(self, client, session, manner, batches_left):
        self.client = client
        self.jvm = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self.manner = manner
        self.batches_left = batches_left

    def __call__(self, rows, epoch_id):
        rows = [row for row in rows if row.kind != "stats"]
        self.batches_left -= bool(rows)
        is_last = rows and self.batches_left == 0
        half = len(rows) // 2
        self.store(rows[:half])
        if is_last and self.manner == "between-rows":
            os.kill(os.getpid(), signal.SIGKILL)
        self.store(rows[half:])
        if is_last and self.manner == "jvm":
            os.kill(self.jvm, signal.SIGKILL)

    def store(self, rows):
        for row in rows:
            text = orjson.dumps([row.kind, row.stream, row.shard, row.body.decode()])
            if not self.client.hsetnx("rows", row.id, text):
                self.client.incr("repeated")
                assert self.client.hget("rows", row.id) == text


def main():
    folder, url, shards, manner, batches = sys.argv[1:]
    session = build_session(SessionOptions(data_folder=Path(folder), master="local[2]"))
    sink = DyingSink(redis.Redis.from_url(url), session, manner, int(batches))
    log = EventLogOptions(redis_url=url, shards=int(shards), max_entries=4, wait_ms=20)
    try:
        run_pipeline(session, JobOptions(log=log, checkpoint=Path(folder, "checkpoint"), is_bounded=True), sink)
    except QueryFailed as error:
        sys.exit(f"failed: {error}")


if __name__ == "__main__":
    main()

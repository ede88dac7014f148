"""The job as a process of its own that dies at a chosen moment; run by ``test_recovery``.

Arguments: data folder, URL of the log, number of shards, how to die (several: with commas), and at which non-empty
micro-batch. Under ``workers`` Spark's Python workers die after each micro-batch, under ``starting`` the first process.
Rows go to the Redis hash ``rows``, by id, as the service's own store would keep them.
"""

import itertools
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import orjson
import redis

from pipeline import EventLogOptions, JobOptions, QueryFailed, SessionOptions, build_session, run_pipeline


class DyingSink:
    def __init__(self, client, session, manner, batches_left):
        self.client = client
        self.jvm = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self.manners = manner.split(",")
        self.batches_left = batches_left

    def __call__(self, rows, epoch_id):
        rows = [row for row in rows if row.kind != "stats"]
        self.batches_left -= bool(rows)
        is_last = rows and self.batches_left == 0
        half = len(rows) // 2
        self.store(rows[:half])
        if is_last and "between-rows" in self.manners:
            os.kill(os.getpid(), signal.SIGKILL)
        self.store(rows[half:])
        if is_last and "jvm" in self.manners:
            os.kill(self.jvm, signal.SIGKILL)
        if is_last and "source" in self.manners:
            self.kill_source()
        if rows and "workers" in self.manners:
            threading.Thread(target=self.kill_workers, daemon=True).start()

    def kill_workers(self):
        """Kill the waiting workers, then the first worker that replaces them, which has just been given a task."""
        waiting = {worker for daemon in children_of(self.jvm) for worker in children_of(daemon)}
        for worker in waiting:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        self.kill_next("workers", waiting)

    def kill_first(self):
        """Kill the first Python process that Spark starts a task or a plan in."""
        self.kill_next("starting", set())

    def kill_source(self):
        """Kill the process that plans micro-batches, as the kernel does where memory is short."""
        for child in children_of(self.jvm):
            if b"python_streaming_source_runner" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)
                self.client.hincrby("killed", "source", 1)

    def kill_next(self, name, known):
        """Kill the next process that a daemon forks. Daemons are looked for less often: Java has a hundred threads."""
        for look in itertools.count():
            if look % 25 == 0:
                daemons = children_of(self.jvm)
            if fresh := {worker for daemon in daemons for worker in children_of(daemon)} - known:
                break
            time.sleep(0.002)
        with suppress(ProcessLookupError):
            os.kill(fresh.pop(), signal.SIGKILL)
            self.client.hincrby("killed", name, 1)

    def store(self, rows):
        for row in rows:
            text = orjson.dumps([row.kind, row.stream, row.shard, row.body.decode()])
            if not self.client.hsetnx("rows", row.id, text):
                self.client.incr("repeated")
                assert self.client.hget("rows", row.id) == text


def children_of(process):
    """The process ids of its children; none where it has ended meanwhile."""
    children: set[int] = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{process}/task").iterdir():
            children.update(int(child) for child in (task / "children").read_text().split())
    return children


def main():
    folder, url, shards, manner, batches = sys.argv[1:]
    session = build_session(SessionOptions(data_folder=Path(folder), master="local[2]", task_attempts=4))
    sink = DyingSink(redis.Redis.from_url(url), session, manner, int(batches))
    log = EventLogOptions(redis_url=url, shards=int(shards), max_entries=4, wait_ms=20)
    if "starting" in sink.manners:
        threading.Thread(target=sink.kill_first, daemon=True).start()
    try:
        run_pipeline(session, JobOptions(log=log, checkpoint=Path(folder, "checkpoint"), is_bounded=True), sink)
    except QueryFailed as error:
        sys.exit(f"failed: {error}")


if __name__ == "__main__":
    main()

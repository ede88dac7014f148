"""The job on a cluster, as a process of its own; run by ``test_cluster``.

Arguments: data folder, URL of the log, number of shards, master, folder on the workers, runtime.
Continuous tasks run until the key ``complete`` exists and the log is matched; micro-batches to the end of the log.
Rows go to the Redis hash ``rows``, by id; the processes that matched to the set ``processes``, by host and id; and each
micro-batch with rows is counted in ``batches``.
"""

import sys
from pathlib import Path

import orjson
import redis

from pipeline import (
    ClusterOptions,
    EventLogOptions,
    JobOptions,
    SessionOptions,
    await_machines,
    build_session,
    run_pipeline,
    start_continuous,
)
from streams import ForestallError
from tests.builders.spark import short_lived


class CountingSink:
    def __init__(self, client):
        self.client = client

    def __call__(self, rows, epoch_id):
        for row in rows:
            if row.kind == "stats":
                self.client.sadd("processes", orjson.dumps(orjson.loads(row.body)["process"]))
                continue
            text = orjson.dumps([row.kind, row.stream, row.shard, row.body.decode()])
            assert self.client.hsetnx("rows", row.id, text) or self.client.hget("rows", row.id) == text
        self.client.incr("batches", int(bool(rows)))


def main():
    folder, url, shards, master, worker_folder, runtime = sys.argv[1:]
    cluster = ClusterOptions(
        driver_host="127.0.0.1",
        worker_folder=Path(worker_folder),
    )
    executors = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": short_lived()}
    where = SessionOptions(
        data_folder=Path(folder), master=master, cluster=cluster, settings=executors, task_attempts=1_000
    )
    session = build_session(where)
    try:
        tasks = await_machines(session.sparkContext, cluster)
        log = EventLogOptions(
            redis_url=url, shards=int(shards), max_entries=2, wait_ms=20, tasks=tasks, snapshot_bytes=3_000
        )
        client = redis.Redis.from_url(url)
        # No handover: the workers are on one machine, and would share the folder as machines do not.
        options = JobOptions(log=log, checkpoint=Path(folder, "checkpoint"), is_bounded=True)
        if runtime == "micro-batch":
            run_pipeline(session, options, CountingSink(client))
            return
        query = start_continuous(session.sparkContext, options, CountingSink(client))
        while not client.exists("complete"):
            query.wait(timeout_s=0.1)
        query.drain()
        query.stop()
    except ForestallError as error:
        sys.exit(f"failed: {error}")
    finally:
        session.stop()


if __name__ == "__main__":
    main()

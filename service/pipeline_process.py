"""The pipeline as a process: ``python -m service.pipeline_process``.

It ends with status 1 when the streaming query fails, and is meant to be started again then: the checkpoint knows where
to go on.
"""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack

import structlog

from pipeline import EventLogOptions, JobOptions, SessionOptions, build_session, start_query, warm_up
from service.process import run_process, signals_held
from service.runtime import Stores, open_stores
from service.settings import Settings
from service.sink import AlertSink
from streams import SystemClock


def main() -> int:
    """Run the pipeline; the exit status is that of ``run_process``."""
    return run_process("pipeline", _run)


def _run(settings: Settings) -> None:
    with open_stores(settings) as stores:
        _match(settings, stores)


def _match(settings: Settings, stores: Stores) -> None:
    clock = SystemClock()
    stores.heartbeat.clear()
    with ExitStack() as ends:
        with signals_held():  # Spark's Java process would stay behind
            session = build_session(SessionOptions(data_folder=settings.data_dir, master=settings.spark_master))
            ends.callback(session.stop)
        warm_up(session)
        options = JobOptions(
            log=EventLogOptions(
                redis_url=stores.url,
                shards=stores.log.shards(),
                retain_entries=settings.log_retention_entries,
            ),
            checkpoint=settings.data_dir.resolve() / "checkpoint",
            trigger_interval_s=settings.trigger_interval_s,
        )
        query = start_query(session, options, AlertSink(stores, clock), lambda: stores.heartbeat.beat(clock.now_us()))
        for number in (signal.SIGTERM, signal.SIGINT):  # until here a signal ends the process at once
            signal.signal(number, lambda *_: query.request_stop())
        structlog.get_logger(__name__).info("pipeline-started", shards=options.log.shards)
        query.wait()


if __name__ == "__main__":
    sys.exit(main())

"""The pipeline as a process: ``python -m service.pipeline_process``.

It ends with status 1 when the streaming query fails, and is meant to be started again then: the checkpoint knows where
to go on.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import structlog

from pipeline import EventLogOptions, JobOptions, RunningQuery, SessionOptions, build_session, start_query, warm_up
from service.errors import SettingsInvalid
from service.lifetime import end_with_parent
from service.logs import configure_logs
from service.runtime import Stores, open_stores
from service.settings import Settings, load_settings
from service.sink import AlertSink
from streams import ForestallError, SystemClock

log = structlog.get_logger(__name__)


class _Stopped(KeyboardInterrupt):
    """A signal asks the process to end before there is a query to ask; py4j cleans up after this kind only."""


class _Signals:
    """What SIGTERM and SIGINT do: ask the query to stop once there is one, end the process before that."""

    def __init__(self) -> None:
        self.query: RunningQuery | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if self.query is None:
            raise _Stopped
        self.query.request_stop()


def main() -> int:
    """Run until stopped by a signal (0) or by a failure (1); 2 for settings that cannot be used."""
    try:
        settings = load_settings()
    except SettingsInvalid as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    configure_logs(settings.log_level)
    if settings.parent_pid is not None:
        end_with_parent(settings.parent_pid)
    try:
        with open_stores(settings) as stores:
            _match(settings, stores, _Signals())
    except _Stopped:
        pass
    except ForestallError as error:
        log.error("pipeline-failed", code=error.code, error=error.message)
        return 1
    log.info("pipeline-stopped")
    return 0


def _match(settings: Settings, stores: Stores, signals: _Signals) -> None:
    clock = SystemClock()
    session = build_session(SessionOptions(data_folder=settings.data_dir, master=settings.spark_master))
    try:
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
        signals.query = query
        log.info("pipeline-started", shards=options.log.shards)
        query.wait()
    finally:
        session.stop()


if __name__ == "__main__":
    sys.exit(main())

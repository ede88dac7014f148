"""The process of the pipeline: ``python -m service.processes.pipeline_process``.

The process ends with status 1 when the query fails. After a restart, it continues from its checkpoint.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import structlog

from pipeline import (
    BatchProgress,
    ClusterUnready,
    ExecutorWatch,
    await_machines,
    begin_continuous,
    begin_micro_batches,
    build_context,
    compiling_beside,
    end_session,
    is_local,
    prepared_daemon,
    warm_up,
)
from service.delivery.sink import AlertSink
from service.doctor import at_risk
from service.errors import StoreUnavailable
from service.migrations import bring_up_to_date
from service.observing.tracing import spans_of
from service.process import beside, life_sign, run_process, signals_held
from service.processes.cluster import forget_former, job_options, session_options
from service.processes.start_report import STUCK_S, StartReport
from service.processes.timekeeper import Timekeeper
from service.runtime import Stores, open_stores
from service.settings import Settings
from service.stores import ExecutorReport, server_facts
from shards import EXERCISES
from streams import ForestallError, SystemClock
from streams.compiling import progress_of

if TYPE_CHECKING:
    from service.observing.spans import Spans

_EXECUTORS_EVERY_S = 5.0


def main() -> int:
    """Run the pipeline. Returns the exit status of ``run_process``."""
    return run_process("pipeline", _run)


def _run(settings: Settings) -> None:
    with spans_of(settings.tracing, "pipeline") as spans, open_stores(settings) as stores:
        try:
            _match(settings, stores, spans)
        except ForestallError as error:
            with suppress(StoreUnavailable):
                stores.heartbeat.failed(error.message)
            raise


def _match(settings: Settings, stores: Stores, spans: Spans | None = None) -> None:
    clock = SystemClock()
    stores.heartbeat.clear()
    warn_of_risks(stores)
    stores.log.layout.require_settled()
    with ExitStack() as ends:
        ends.callback(_clear_heartbeat, stores)
        where = session_options(settings)
        report = StartReport(stores.heartbeat, life_sign(settings.life_dir, "pipeline"))
        needed = EXERCISES if is_local(where.master) else ()  # the machines of a cluster compile their own kernels
        ends.enter_context(beside(report.repeat, "start-report"))
        with compiling_beside(needed, report.compiling):
            report.begin("starting Spark", STUCK_S)
            if settings.is_continuous and is_local(where.master) and progress_of(EXERCISES).is_complete:
                where = ends.enter_context(prepared_daemon(where))
            with signals_held():  # otherwise a signal could leave Spark's Java process running
                context = build_context(where)
                ends.callback(end_session, context)
            report.begin("waiting for Spark's machines")
            tasks = await_machines(context, where.cluster)
        if not needed:
            report.begin("compiling kernels on the machines of the cluster")
            warm_up(context)
        elif not settings.is_continuous:
            report.begin("loading kernels", STUCK_S)
            warm_up(context)
        report.begin("reading the layout of the log")
        bring_up_to_date(stores.client)  # again, because a backup may have been restored since, or may still be
        layout = stores.log.layout.read()
        stores.log.layout.require_settled()
        forget_former(settings, layout, stores.url)
        options = job_options(settings, layout, stores.url, tasks)
        stores.pipeline_status.begin(clock.now_us())
        begin = begin_continuous if settings.is_continuous else begin_micro_batches
        query = begin(
            context,
            options,
            AlertSink(stores, clock, spans),
            lambda: report.beat(clock.now_us()),
            lambda progress: _keep(stores, progress),
            report.begin,
        )
        for number in (signal.SIGTERM, signal.SIGINT):  # before this line, a signal ends the process at once
            signal.signal(number, lambda *_: query.request_stop())
        ends.enter_context(beside(Timekeeper(stores).run, "timekeeper"))
        structlog.get_logger(__name__).info("pipeline-started", shards=options.log.shards, tasks=tasks)
        query.wait(look=_executor_reports(ExecutorWatch(context), stores, is_needed=not is_local(where.master)))


def _executor_reports(watch: ExecutorWatch, stores: Stores, *, is_needed: bool) -> Callable[[], None]:
    due = [0.0]

    def look() -> None:
        if not is_needed or time.monotonic() < due[0]:
            return
        due[0] = time.monotonic() + _EXECUTORS_EVERY_S
        with suppress(ClusterUnready, StoreUnavailable):  # the query reports these errors itself
            running, missing = watch.look()
            stores.pipeline_status.keep_executors(ExecutorReport(running=running, missing=tuple(missing)))

    return look


def warn_of_risks(stores: Stores) -> None:
    """Log a warning for each risk that the Redis server loses acknowledged data."""
    for finding in at_risk(server_facts(stores.client)):
        structlog.get_logger(__name__).warning("redis-at-risk", found=finding.found, advice=finding.advice)


def _clear_heartbeat(stores: Stores) -> None:
    """Delete the heartbeat. If Redis does not answer, the heartbeat soon counts as stale anyway."""
    with suppress(StoreUnavailable):
        stores.heartbeat.clear()


def _keep(stores: Stores, progress: BatchProgress) -> None:
    """Store the progress of a micro-batch. If Redis does not answer, the total times lack this micro-batch."""
    try:
        stores.pipeline_status.keep(progress.to_json())
    except StoreUnavailable as error:
        structlog.get_logger(__name__).warning("progress-not-kept", batch=progress.batch, error=error.message)


if __name__ == "__main__":
    sys.exit(main())

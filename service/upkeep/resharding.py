"""Divides the log of a stopped service into more shards (``forestall reshard``).

First, the job of the old layout matches the rest of the log and emits its results. Then the states are divided and
written beside the old ones, and one script makes the new layout valid. Until this script runs, the old layout remains
complete. So after a failure, the user can run the command again, or start the service with the old layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from pipeline import (
    EventLogOptions,
    HeldOptions,
    JobOptions,
    await_machines,
    build_session,
    divide_states,
    end_session,
    finish_blocks,
    log_ends,
    run_pipeline,
)
from service.delivery.sink import AlertSink
from service.errors import ReshardRefused, StoreUnavailable
from service.observing.overview import require_stopped
from service.processes.cluster import forget_former, job_options, session_options
from service.runtime import Stores
from service.settings import Settings
from service.stores import Layout
from streams import MAX_SHARDS, SystemClock

Telling = Callable[[str], None]

_SECOND_US = 1_000_000


def reshard(settings: Settings, stores: Stores, shards: int, tell: Telling) -> Layout:
    """Divide the log into ``shards`` shards, a multiple of the current number. Returns the new layout.

    If the last resharding made this number of shards, the log does not change. A log that a killed call still holds is
    released. ``tell`` is called with a description of each step. Raises ``ReshardRefused`` if the number is not
    possible, the pipeline runs, or no log exists.
    """
    if not stores.log.layout.exists():
        raise ReshardRefused(
            f"Redis has no log of a service with the data folder {settings.data_dir}: set FORESTALL_DATA_DIR and "
            "FORESTALL_REDIS_URL as for the service. FORESTALL_SHARDS is the number of shards of a new log"
        )
    layout = stores.log.layout.read()
    if shards == layout.shards and stores.log.layout.is_held():
        require_stopped(settings, stores, SystemClock(), ReshardRefused)
        tell("unlocking the log, which keeps its shards")
        stores.log.layout.release(stores.log.layout.hold())
    elif shards != layout.generation:
        _check_shards(layout.shards, shards)
        require_stopped(settings, stores, SystemClock(), ReshardRefused)
        layout = _divided(settings, stores, layout, shards, tell)
    forget_former(settings, layout, stores.url)
    return layout


def _divided(settings: Settings, stores: Stores, layout: Layout, shards: int, tell: Telling) -> Layout:
    if layout.unfinished not in (0, shards):
        forget_former(settings, layout, stores.url)
    token = stores.log.layout.hold(shards)
    try:
        tell("matching what the log holds")
        match_all(settings, stores, layout)
        tell(f"dividing the states of {layout.shards} shards among {shards}")
        options = job_options(settings, layout, stores.url, tasks=1)
        rows = list(divide_states(HeldOptions(log=options.log, handover=options.handover), shards))
        return stores.log.layout.switch(token, rows)
    finally:
        with suppress(StoreUnavailable):
            stores.log.layout.release(token)


def match_all(settings: Settings, stores: Stores, layout: Layout) -> None:
    """Match the log to its end, with the shards of a layout, and write the results."""
    spark_options = session_options(settings)
    session = build_session(spark_options)
    try:
        tasks = await_machines(session.sparkContext, spark_options.cluster)
        options: JobOptions = replace(job_options(settings, layout, stores.url, tasks), is_bounded=True)
        sink = AlertSink(stores, SystemClock())
        finish_blocks(options, sink)
        match_to_end(options.log, lambda: run_pipeline(session, options, sink))
    finally:
        end_session(session)


def match_to_end(log: EventLogOptions, match: Callable[[], None]) -> None:
    """Call ``match`` until the log no longer grows, because matching may append derived events to the log."""
    matched: Mapping[str, str] = {}
    while (ends := log_ends(log)) != matched:
        match()
        matched = ends


def _check_shards(shards: int, requested: int) -> None:
    if requested > shards and requested % shards == 0 and requested <= MAX_SHARDS:
        return
    fitting = [str(number) for number in range(2 * shards, min(MAX_SHARDS, 5 * shards) + 1, shards)]
    multiples = f"possible are {', '.join(fitting)} and other multiples up to {MAX_SHARDS}"
    advice = multiples if fitting else "no greater number is possible"
    raise ReshardRefused(
        f"the log has {shards} shards and cannot be divided into {requested}: their number can only be multiplied, up "
        f"to {MAX_SHARDS}; {advice}",
        shards=shards,
    )

"""One process a core, each with the keys of its shard: on the wall, from when all begin to when all are done."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from benchmarks.matcher_speed import EXPECTED, W, unguarded, workload_w
from benchmarks.scaling.points import Point

_EVENTS, _ROUNDS = 1_000_000, 7
_LARGER = 4  # so many times W, one after the other, so that beginning together does not weigh


def cores(*, is_quick: bool) -> Iterator[Point]:
    """Number of cores: processes over keys, divided by shard."""
    events, rounds = (_EVENTS // 5, 3) if is_quick else (_EVENTS, _ROUNDS)
    counts = [count for count in (1, 2, 4, 8) if count <= (os.cpu_count() or 1)]
    for count in counts:
        seconds, matches = _all_at_once(count, events, rounds)
        if not is_quick and matches != EXPECTED["all"]:
            raise SystemExit(f"{count} processes: {matches:,} matches instead of {EXPECTED['all']:,}")
        yield Point(
            plot="cores",
            series="one process each",
            at=count,
            rate=_LARGER * events / seconds,
            note=f"{matches:,} matches; load {os.getloadavg()[0]:.1f}",
        )


def _all_at_once(count: int, events: int, rounds: int) -> tuple[float, int]:
    """Least seconds of a round, and the matches of W in all processes."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    workers = [
        context.Process(target=_work, args=(there, shard, count, events), daemon=True)
        for shard, (_, there) in enumerate(pipes)
    ]
    ours = [here for here, _ in pipes]
    for worker in workers:
        worker.start()
    for _, there in pipes:
        there.close()  # so that a worker that has died is noticed
    matches = sum(int(here.recv()) for here in ours)
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for here in ours:
            here.send(True)
        for here in ours:
            here.recv()
        best = min(best, time.perf_counter() - begin)
    for here in ours:
        here.send(False)
    for worker in workers:
        worker.join()
    return best, matches


def _work(pipe: Connection, shard: int, shards: int, events: int) -> None:
    """Match the events of a shard whenever told to, warmed up."""
    batch = workload_w(events).split_by_shard(shards)[shard]
    pipe.send(unguarded(W, batch))
    while pipe.recv():
        for _ in range(_LARGER):
            unguarded(W, batch)
        pipe.send(True)

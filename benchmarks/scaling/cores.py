"""Speed on several cores: one process per core, each with the keys of its shard; wall-clock time until all finish."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from benchmarks.matcher_speed import EXPECTED, W, matches_in, unguarded, workload_w
from benchmarks.scaling.points import Point

_EVENTS, _ROUNDS = 1_000_000, 9
_LARGER = 4  # repetitions of W, so that differences between the starts are negligible


def cores(*, is_quick: bool) -> Iterator[Point]:
    """Measure by the number of cores. Groups of one, two and more processes take turns."""
    events, rounds = (_EVENTS // 5, 3) if is_quick else (_EVENTS, _ROUNDS)
    groups = [_Group(count, events) for count in (1, 2, 4, 8) if count <= (os.cpu_count() or 1)]
    found = [group.begun() for group in groups]
    best = [min(turn) for turn in zip(*([group.timed() for group in groups] for _ in range(rounds)), strict=True)]
    for group, matches, seconds in zip(groups, found, best, strict=True):
        group.end()
        if not is_quick and matches != EXPECTED["all"]:
            raise SystemExit(f"{group.count} processes: {matches:,} matches instead of {EXPECTED['all']:,}")
        yield Point(
            plot="cores",
            series="one process each",
            at=group.count,
            rate=_LARGER * events / seconds,
            note=f"{matches:,} matches; load of the machine {os.getloadavg()[0]:.1f}",
        )


class _Group:
    """Processes that match at the same time on request."""

    def __init__(self, count: int, events: int) -> None:
        self.count = count
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(count)]
        self._pipes = [ours for ours, _ in pipes]
        self._workers = [
            context.Process(target=_work, args=(theirs, shard, count, events), daemon=True)
            for shard, (_, theirs) in enumerate(pipes)
        ]
        for worker in self._workers:
            worker.start()
        for _, theirs in pipes:
            theirs.close()  # so that the exit of a worker is detected

    def begun(self) -> int:
        """Wait until all processes are warmed up. Return the number of matches of W in all of them."""
        return sum(int(pipe.recv()) for pipe in self._pipes)

    def timed(self) -> float:
        """Return the wall-clock seconds of one round."""
        begin = time.perf_counter()
        for pipe in self._pipes:
            pipe.send(True)
        for pipe in self._pipes:
            pipe.recv()
        return time.perf_counter() - begin

    def end(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(False)
        for worker in self._workers:
            worker.join()


def _work(pipe: Connection, shard: int, shards: int, events: int) -> None:
    """Run a worker: warm up, then match the events of a shard on request."""
    batch = workload_w(events).split_by_shard(shards)[shard]
    pipe.send(matches_in(unguarded(W), batch))
    while pipe.recv():
        for _ in range(_LARGER):
            matches_in(unguarded(W), batch)
        pipe.send(True)

"""Best times of runs that take turns, so that other load on the machine affects all runs alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Timed(NamedTuple):
    """The best thread time of a run in seconds, and its result."""

    seconds: float
    result: int


def taken(run: Callable[[], int]) -> Timed:
    """Run a function once and measure its time."""
    begin = time.thread_time()
    result = run()
    return Timed(time.thread_time() - begin, result)


def best_of(runs: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, Timed]:
    """Run each function in ``rounds`` rounds in turn, after a round that does not count.

    Return the fastest time of each.

    Raises:
        ValueError: A run does not return the same result every time.
    """
    found = {name: taken(run) for name, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            seconds, result = taken(run)
            if result != found[name].result:
                raise ValueError(f"{name}: {result:,} in one round and {found[name].result:,} in another")
            best[name] = min(best[name], seconds)
    return {name: Timed(best[name], timed.result) for name, timed in found.items()}

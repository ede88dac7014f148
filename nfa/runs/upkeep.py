"""What is done with runs between the rows of a batch, by name."""

from __future__ import annotations

from nfa.kernels.runs import upkeep as kernel
from nfa.kernels.runs.tables import Int, RunProgram, RunState


def rebuild_index(state: RunState) -> None:
    """Fill an empty index with the pairs of all traces."""
    kernel.arrange(state, kernel.REBUILD_INDEX, 0)


def unpark_all(state: RunState) -> None:
    """Move the parked runs of all pairs to their lists of runs, in their order."""
    kernel.arrange(state, kernel.UNPARK_ALL, 0)


def close_pair(state: RunState, pair: int) -> None:
    """Give back a pair and all its runs."""
    kernel.arrange(state, kernel.CLOSE_PAIR, int(pair))


def free_run(state: RunState, run: int) -> None:
    """Give back a run that is in no list."""
    kernel.arrange(state, kernel.FREE_RUN, int(run))


def fill_buckets(program: RunProgram, state: RunState) -> None:
    """Put the parked runs of all pairs into empty buckets, under the values that they have now."""
    kernel.ask(program, state, kernel.FILL_BUCKETS, 0, 0, 0)


def forget(program: RunProgram, state: RunState, pair: int, time_us: Int) -> None:
    """Forget what is over for a pair at a time; a pair of which nothing is left is closed."""
    kernel.ask(program, state, kernel.FORGET, int(pair), int(time_us), 0)


def deadline(program: RunProgram, state: RunState, run: int) -> int:
    """When the last of a complete match's trailing NOTs is decided; ``LATEST`` where one has no deadline."""
    return int(kernel.ask(program, state, kernel.DEADLINE, int(run), 0, 0))


def has_future(program: RunProgram, state: RunState, run: int, time_us: Int, order: Int) -> bool:
    """Whether some step of a run could be taken by an event of a time and order."""
    return bool(kernel.ask(program, state, kernel.HAS_FUTURE, int(run), int(time_us), int(order)))

"""Operations on runs outside of matching. Each function is one operation of the upkeep kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs import upkeep as kernel
from nfa.kernels.runs.tables import LATEST, Int, RunMatches, RunProgram, RunState
from streams import zeros_of

_NO_MATCHES = zeros_of(RunMatches, 0)


def rebuild_index(state: RunState) -> None:
    """Fill an empty index with the pairs of all traces."""
    kernel.arrange(state, kernel.REBUILD_INDEX, 0)


def unpark_all(state: RunState) -> None:
    """Move all parked runs to the lists of runs of their pairs, in order."""
    kernel.arrange(state, kernel.UNPARK_ALL, 0)


def close_pair(state: RunState, pair: int) -> None:
    """Release a pair and all its runs."""
    kernel.arrange(state, kernel.CLOSE_PAIR, int(pair))


def free_run(state: RunState, run: int) -> None:
    """Release a run that is in no list."""
    kernel.arrange(state, kernel.FREE_RUN, int(run))


def fill_buckets(program: RunProgram, state: RunState) -> None:
    """Put the parked runs of all pairs into empty buckets. The hash of each run is computed again."""
    kernel.attend(program, state, _NO_MATCHES, kernel.FILL_BUCKETS, _as_array(0), 0, 0, 0)


def forget(program: RunProgram, state: RunState, pair: int, time_us: Int) -> None:
    """Drop the times of leading NOTs that have expired in a pair. If the pair has no data left, it is closed."""
    kernel.attend(program, state, _NO_MATCHES, kernel.FORGET, _as_array(pair), 0, int(time_us), 0)


def deadline(program: RunProgram, state: RunState, run: int) -> int:
    """Return the time at which the last trailing NOT of a match is decided, or ``LATEST`` without a deadline."""
    return int(kernel.attend(program, state, _NO_MATCHES, kernel.DEADLINE, _as_array(run), 0, 0, 0)[1])


def finish(program: RunProgram, state: RunState, matches: RunMatches, pair: int, last_us: int) -> None:
    """Decide the matches of a pair that wait for the end of their trace, because the input has ended."""
    kernel.attend(program, state, matches, kernel.FINISH, _as_array(pair), 0, int(LATEST), last_us)


def time_out(program: RunProgram, state: RunState, matches: RunMatches, pair: int, time_us: Int) -> None:
    """Report the maximal partial matches of a pair whose WITHIN has passed at ``time_us``. Spent runs are dropped."""
    kernel.attend(program, state, matches, kernel.TIME_OUT, _as_array(pair), 0, int(time_us), 0)


def pass_time(
    program: RunProgram, state: RunState, matches: RunMatches, pairs: NDArray[np.int32], first: int, watermark_us: int
) -> tuple[Int, Int]:
    """Advance the time of due pairs to the watermark, starting at the index ``first`` in ``pairs``.

    Return (status, index), as the kernel's ``pass_time`` does.
    """
    return kernel.attend(program, state, matches, kernel.PASS_TIME, pairs, first, int(watermark_us), 0)


def _as_array(number: int) -> NDArray[np.int32]:
    return np.array([number], np.int32)

"""Results of the run engine: complete and partial matches as columns, early terminations, losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs import rows as kernel
from nfa.kernels.runs.tables import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRuns:
    """Bound events of some matches or partial matches, ragged: the events of one lie between two ``ends``.

    ``rows`` are the rows of the batch at which they were emitted; -1: as time passed. ``how`` has constants of
    ``nfa.kernels.runs.tables``. ``atoms`` are the numbers of the positive atoms of events.
    """

    patterns: NDArray[np.int32]
    rows: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    how: NDArray[np.int8]
    traces: NDArray[np.int32]
    ends: NDArray[np.int64]
    atoms: NDArray[np.int32]
    sequences: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """Results of one batch or of passing time; ``timeouts`` are the maximal partial matches that WITHIN ended.

    Attributes:
        corrections: Matches reported before their deadline that an event contradicts, possible only if the trace breaks
            a constraint; ``rows`` is the event.
        endings: (endings, 5): row, pattern, monitor before, monitor after, state.
        lost: (losses, 6): row, pattern, matches beyond the limit, runs beyond the limit, work for which the pattern was
            given up in the trace or 0, why this suspends the pattern or 0.
    """

    matches: FoundRuns
    corrections: FoundRuns
    timeouts: FoundRuns
    endings: NDArray[np.int64]
    lost: NDArray[np.int64]


@dataclass(slots=True)
class Collected:
    """Results of a call so far, in order."""

    parts: list[FoundRuns] = field(default_factory=list)
    corrections: list[FoundRuns] = field(default_factory=list)
    timeouts: list[FoundRuns] = field(default_factory=list)
    endings: list[NDArray[np.int64]] = field(default_factory=list)
    lost: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def output(self) -> RunOutput:
        if not (self.parts or self.corrections or self.timeouts or self.endings or self.lost):
            return NOTHING
        return RunOutput(
            matches=_joined(self.parts),
            corrections=_joined(self.corrections),
            timeouts=_joined(self.timeouts),
            endings=np.concatenate([np.zeros((0, 5), np.int64), *self.endings]),
            lost=np.concatenate([np.zeros((0, 6), np.int64), *self.lost]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Ends of chains of bound events, with the same columns as ``FoundRuns``."""

    nodes: NDArray[np.int32]
    patterns: NDArray[np.int32]
    rows: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    how: NDArray[np.int8]
    traces: NDArray[np.int32]

    def chosen(self, keep: NDArray[np.bool_]) -> Chains:
        return Chains(**{name: getattr(self, name)[keep] for name in Chains.__slots__})


def unrolled(state: RunState, chains: Chains, *, releases: bool) -> FoundRuns:
    """Bound events of chains; ``releases``: also drop one reference to each chain."""
    nodes = chains.nodes
    ends = np.cumsum(state.node_length[nodes], dtype=np.int64)
    size = int(ends[-1]) if len(ends) else 0
    atoms, sequences = np.zeros(size, np.int32), np.zeros(size, np.int64)
    kernel.unroll(state, nodes, ends, atoms, sequences, releases)
    return FoundRuns(
        patterns=chains.patterns,
        rows=chains.rows,
        detected_us=chains.detected_us,
        how=chains.how,
        traces=chains.traces,
        ends=ends,
        atoms=atoms,
        sequences=sequences,
    )


def _joined(parts: Sequence[FoundRuns]) -> FoundRuns:
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part.atoms) for part in parts)])

    def joined(name: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])

    ends = [part.ends + offset for part, offset in zip(parts, offsets, strict=False)]
    return FoundRuns(
        patterns=joined("patterns", np.int32),
        rows=joined("rows", np.int64),
        detected_us=joined("detected_us", np.int64),
        how=joined("how", np.int8),
        traces=joined("traces", np.int32),
        ends=np.concatenate([np.zeros(0, np.int64), *ends]),
        atoms=joined("atoms", np.int32),
        sequences=joined("sequences", np.int64),
    )


_NO_RUNS = _joined([])
NOTHING = RunOutput(
    matches=_NO_RUNS,
    corrections=_NO_RUNS,
    timeouts=_NO_RUNS,
    endings=np.zeros((0, 5), np.int64),
    lost=np.zeros((0, 6), np.int64),
)
"""The output of a call without results."""

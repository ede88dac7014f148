"""Results of the run engine: matches and timeouts as columns, early terminations, losses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.runs import rows as kernel
from nfa.kernels.runs.tables import RunState
from nfa.results.found import NO_MATCHES, MatchTable, joined


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """Results of the run engine for a batch, or for time that passes.

    In the match tables, ``aliases`` has numbers of positive atoms. ``found.of_runs`` converts them to alias numbers.

    Attributes:
        corrections: Matches that were emitted before their deadline, and are now contradicted by an event. This happens
            only in a trace that breaks a constraint. ``rows`` has the rows of these events.
        timeouts: The maximal partial matches whose WITHIN has passed.
        endings: Early terminations (endings, 5): row, pattern, monitor before, monitor after, state of the automaton.
        lost: Losses (losses, 6): row, pattern, matches beyond the limit, runs beyond the limit, work, reason. The work
            is 0 unless the pattern was given up for it in the trace. The reason is 0 unless the pattern was suspended.
    """

    matches: MatchTable
    corrections: MatchTable
    timeouts: MatchTable
    endings: NDArray[np.int64]
    lost: NDArray[np.int64]


@dataclass(slots=True)
class Collected:
    """The results that one call of the engine has collected so far, in order."""

    parts: list[MatchTable] = field(default_factory=list)
    corrections: list[MatchTable] = field(default_factory=list)
    timeouts: list[MatchTable] = field(default_factory=list)
    endings: list[NDArray[np.int64]] = field(default_factory=list)
    lost: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def output(self) -> RunOutput:
        if not (self.parts or self.corrections or self.timeouts or self.endings or self.lost):
            return NOTHING
        return RunOutput(
            matches=joined(self.parts),
            corrections=joined(self.corrections),
            timeouts=joined(self.timeouts),
            endings=np.concatenate([np.zeros((0, 5), np.int64), *self.endings]),
            lost=np.concatenate([np.zeros((0, 6), np.int64), *self.lost]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Chains of bound events, each given by its last node. The other columns are as in ``MatchTable``."""

    nodes: NDArray[np.int32]
    patterns: NDArray[np.int32]
    rows: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    how: NDArray[np.int8]
    traces: NDArray[np.int32]

    def chosen(self, keep: NDArray[np.bool_]) -> Chains:
        return Chains(**{name: getattr(self, name)[keep] for name in Chains.__slots__})


def unrolled(state: RunState, chains: Chains, *, releases: bool) -> MatchTable:
    """Return a table of matches from chains of bound events. With ``releases``, each chain loses one reference."""
    nodes = chains.nodes
    ends = np.cumsum(state.node_length[nodes], dtype=np.int64)
    size = int(ends[-1]) if len(ends) else 0
    atoms, sequences = np.zeros(size, np.int32), np.zeros(size, np.int64)
    kernel.unroll(state, nodes, ends, atoms, sequences, releases)
    return MatchTable(
        patterns=chains.patterns,
        rows=chains.rows,
        detected_us=chains.detected_us,
        how=chains.how,
        traces=chains.traces,
        ends=ends,
        aliases=atoms,
        sequences=sequences,
    )


NOTHING = RunOutput(
    matches=NO_MATCHES,
    corrections=NO_MATCHES,
    timeouts=NO_MATCHES,
    endings=np.zeros((0, 5), np.int64),
    lost=np.zeros((0, 6), np.int64),
)
"""The output of a call without results."""

"""A read-only view of the shared-node engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.kernels.shared import tables as kernel
from nfa.kernels.shared import viewing
from nfa.kernels.shared.tables import NIL, Output, Program, SharedState


def held_pairs(program: Program, state: SharedState, output: Output, now_us: int) -> NDArray[np.int64]:
    """Return the (trace, pattern) entries with partial matches. Expired partial matches do not count.

    The result (entries, 5) has these columns: trace number, pattern number, furthest state of the pattern's automaton,
    node of the newest event in this state, number of partial matches.
    """
    entries = np.zeros((int(state.counters[kernel.PAIRS]), 5), np.int64)
    room = len(state.nodes) if len(state.times) else 0
    scratch = output._replace(memo=np.zeros((room, 3), np.int64), filled=np.zeros_like(output.filled))
    count = int(viewing.held_pairs(program, state, scratch, now_us, entries))
    return entries[:count]


def newest_chain(state: SharedState, node: int, within_us: int, now_us: int) -> list[tuple[int, int]]:
    """Return the events of the newest partial match that ends at a node, each as (alias number, sequence number).

    The events are in order, oldest first. Expired partial matches do not count.
    """
    events: list[tuple[int, int]] = []
    while node != NIL:
        below, before = state.links[node, [kernel.BELOW, kernel.BEFORE]].tolist()
        if within_us:
            is_over = int(state.times[node]) + within_us <= now_us
            if below != NIL and (is_over or (before != NIL and state.nodes[before, kernel.MEASURE] <= now_us)):
                node = below
                continue
        word = int(state.nodes[node, kernel.EVENT])
        events.append(((word >> 1) & kernel.ALIAS_MASK, word >> kernel.EVENT_BITS))
        node = before
    return events[::-1]

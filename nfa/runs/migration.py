"""Migration of open traces' runs to the tables of other patterns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nfa.kernels.runs import tables
from nfa.kernels.runs.tables import NIL, RunState
from nfa.runs import state as run_state
from nfa.runs.program import CompiledRuns
from nfa.runs.upkeep import close_pair


def migrated(state: RunState, old: CompiledRuns, new: CompiledRuns, sources: Sequence[int]) -> RunState:
    """The state of the same traces for the tables of other patterns; runs of removed patterns are released.

    ``sources`` has for each new pattern its old number, or ``NIL``.
    """
    numbers = np.full(len(old.automata) + 1, NIL, np.int32)
    states = np.full(len(old.program.accepts), NIL, np.int32)
    steps = np.full(len(old.program.source), NIL, np.int32)
    for number, source in enumerate(sources):
        if source != NIL:
            numbers[source] = number
            for moved, of_compiled in ((states, _states_of), (steps, _steps_of)):
                first, last = of_compiled(old, source)
                target, _ = of_compiled(new, number)
                moved[first:last] = np.arange(target, target + last - first)
    for pair in np.flatnonzero(state.pair_pattern != NIL).tolist():
        if numbers[state.pair_pattern[pair]] == NIL:
            close_pair(state, pair)
    used = state.run_kind != NIL
    state.run_state[used] = states[state.run_state[used]]
    bound = state.node_references > 0
    state.node_step[bound] = steps[state.node_step[bound]]
    taken = state.pair_pattern != NIL
    state.pair_pattern[taken] = numbers[state.pair_pattern[taken]]
    leads = np.full((len(state.pair_next), new.leads, 2), tables.EARLIEST, np.int64)
    shared = min(new.leads, old.leads)
    leads[:, :shared] = state.pair_leads[:, :shared]
    kinds = np.zeros((len(state.event_next), len(new.columns)), np.uint8)
    values = np.zeros((len(state.event_next), len(new.columns)), np.int64)
    for number, leaf in enumerate(new.columns.leaves):
        if leaf in old.columns.leaves:
            kinds[:, number] = state.event_kinds[:, old.columns.number(leaf)]
            values[:, number] = state.event_values[:, old.columns.number(leaf)]
    scratch = np.zeros(new.width + 1, np.int64)
    state = state._replace(pair_leads=leads, event_kinds=kinds, event_values=values, scratch=scratch)
    return run_state.indexed(state)


def _states_of(compiled: CompiledRuns, pattern: int) -> tuple[int, int]:
    first, last = compiled.program.state_from[pattern : pattern + 2].tolist()
    return first, last


def _steps_of(compiled: CompiledRuns, pattern: int) -> tuple[int, int]:
    first, last = _states_of(compiled, pattern)
    steps = compiled.program.step_from
    return int(steps[first]), int(steps[last])

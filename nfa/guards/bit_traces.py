"""The traces under bit tables, and an index of the rows of liveness that they reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nfa.arena import grown, power_above
from nfa.kernels import bit_upkeep as upkeep
from nfa.kernels.bit_tables import FREE, FRESH, N_COUNTERS, N_SETS, NIL, SEEN, BitProgram, BitTraces
from streams import zeros_of

_LEAST_SLOTS = 64
_LEAST_ROWS = 64


class BitArena:
    """The memory of the traces under bit tables.

    Each trace has a slot with four sets of names (types and symbols): seen in the trace, certain to occur, excluded
    from the trace, and blocked from now on. The arrays are replaced as they grow.
    """

    def __init__(self, *, words: int = 1, columns: int = 0, traces: int = 0) -> None:
        self._traces = zeros_of(
            BitTraces,
            _LEAST_SLOTS,
            states=(_LEAST_SLOTS, N_SETS, words),
            slot_of=np.full(traces, NIL, np.int32),
            counters=N_COUNTERS,
            after=(N_SETS, words),
            row=columns,
        )

    @property
    def arrays(self) -> BitTraces:
        return self._traces

    @property
    def used(self) -> int:
        counters = self._traces.counters
        return int(counters[FRESH] - counters[FREE])

    @property
    def used_bytes(self) -> int:
        """Bytes of all arrays, including spare capacity."""
        return sum(array.nbytes for array in self._traces)

    def make_room(self) -> None:
        """Double the number of slots. Call this method if ``take_slot`` found no free slot."""
        traces = self._traces
        size = 2 * len(traces.free)
        self._traces = traces._replace(
            states=grown(traces.states, size), guard=grown(traces.guard, size), free=grown(traces.free, size)
        )

    def reach(self, traces: int) -> None:
        if traces > len(self._traces.slot_of):
            self._traces = self._traces._replace(slot_of=grown(self._traces.slot_of, traces, NIL))

    def fit(self, program: BitProgram) -> None:
        """Adapt the arrays to a new program, which may have more words or other columns. Slots keep their contents."""
        traces, words = self._traces, program.start.shape[2]
        states = traces.states
        if words > states.shape[2]:
            states = np.zeros((*states.shape[:2], words), np.uint64)
            states[:, :, : traces.states.shape[2]] = traces.states
        self._traces = traces._replace(
            states=states,
            after=np.zeros((N_SETS, states.shape[2]), np.uint64),
            row=np.zeros(program.base.shape[1], np.uint32),
        )

    def enter(self, program: BitProgram, trace: int, guard: int, seen: NDArray[np.uint64]) -> int:
        """Assign a slot to a trace and return the slot.

        The slot's sets are derived from the names ``seen`` in the trace.
        """
        slot = upkeep.take_slot(self._traces, trace, guard)
        if slot == NIL:
            self.make_room()
            slot = upkeep.take_slot(self._traces, trace, guard)
        upkeep.enter(program, guard, seen, self._traces.states[slot])
        return int(slot)

    def release(self, traces: NDArray[np.int32]) -> None:
        if self.used:
            for trace in traces[self._traces.slot_of[traces] != NIL].tolist():
                upkeep.release_slot(self._traces, trace)

    def slots(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        traces = np.flatnonzero(self._traces.slot_of != NIL).astype(np.int32)
        return traces, self._traces.slot_of[traces]

    def seen(self, slot: int) -> NDArray[np.uint64]:
        """Return the names seen in the trace of a slot, as words. The slot's other sets follow from these names."""
        seen: NDArray[np.uint64] = self._traces.states[slot, SEEN].copy()
        return seen

    def live_row(self, program: BitProgram, slot: int) -> NDArray[np.uint32]:
        row = np.zeros(program.base.shape[1], np.uint32)
        traces = self._traces
        upkeep.fill_live(program, int(traces.guard[slot]), traces.states[slot], row)
        return row


class RowIndex:
    """Two hash tables: from rows of liveness to their indices, and from pairs of monitor numbers to lists of kills.

    A row of liveness shows what can still complete. A list of kills shows what dies between two monitor states. See
    ``RowTables``.
    """

    def __init__(self) -> None:
        self._rows = np.zeros(2 * _LEAST_ROWS, np.int32)
        self._pairs = np.zeros((2 * _LEAST_ROWS, 3), np.int32)
        self._n_rows = 0
        self._n_pairs = 0

    @property
    def rows(self) -> NDArray[np.int32]:
        """The hash table in which ``find_row`` looks up rows of liveness. The array is replaced as it grows."""
        return self._rows

    @property
    def pairs(self) -> NDArray[np.int32]:
        """The hash table in which ``find_pair`` looks up pairs of monitor numbers.

        The array is replaced as it grows.
        """
        return self._pairs

    def add_row(self, live: NDArray[np.uint32], number: int) -> None:
        if 2 * (self._n_rows + 1) > len(self._rows):
            numbers = self._rows[self._rows != 0] - 1
            self._rows = np.zeros(power_above(4 * len(numbers), 2 * _LEAST_ROWS), np.int32)
            for old in numbers:
                upkeep.index_row(self._rows, live, int(old))
        upkeep.index_row(self._rows, live, number)
        self._n_rows += 1

    def add_pair(self, before: int, after: int, value: int) -> None:
        if 2 * (self._n_pairs + 1) > len(self._pairs):
            entries = self._pairs[self._pairs[:, 0] != 0]
            self._pairs = np.zeros((power_above(4 * len(entries), 2 * _LEAST_ROWS), 3), np.int32)
            for first, second, old in entries.tolist():
                upkeep.index_pair(self._pairs, first - 1, second, old)
        upkeep.index_pair(self._pairs, before, after, value)
        self._n_pairs += 1

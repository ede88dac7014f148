"""The buffers of a join, which forget arrivals by the measured closing keys of items.

Source: data-driven memory management for stream joins, section 3.2 of the specification. A host that divides a join by
hashes of keys gives each part its own buffers, and all parts the closing keys of the whole inputs (section 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised import tables as kernel
from literature.kernels.unsynchronised.buffers import fill_slots, join_arrivals
from literature.kernels.unsynchronised.tables import BufferState, Combined
from literature.unsynchronised.arrivals import Combinations

MOST_INPUTS = 16
_FORMAT = 1
_FIRST_ROOM = 64
_POLICIES = {"keys": kernel.BY_KEYS, "counts": kernel.BY_COUNTS, "sizes": kernel.BY_SIZES}


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferOptions:
    """Rules by which buffers forget arrivals.

    Attributes:
        policy: ``keys`` (P2): arrivals whose keys every other input has closed are forgotten; ``counts`` (P1): all but
            the newest, whose number the memory model counts; ``sizes``: all but a given number of the newest, which is
            a window join.
        sizes: Number of arrivals kept of each input; ``sizes`` only.
        drops_dead: Also drops arrivals whose key some input has closed without an arrival of the key; ``keys`` only.
        idle_us: An input without arrivals for this time closes the keys that all others have closed, so results may be
            lost; None: never.
        most_results: Greatest number of results of one arrival; results beyond are counted, and lost.
        traces: Whether sizes after each item are reported.
    """

    policy: str = "keys"
    sizes: Sequence[int] = ()
    drops_dead: bool = False
    idle_us: int | None = None
    most_results: int = 1_000_000
    traces: bool = False

    def __post_init__(self) -> None:
        if self.policy not in _POLICIES:
            raise ValueError(f"a policy is one of {', '.join(_POLICIES)}, not {self.policy!r}")
        if self.idle_us is not None and self.idle_us <= 0:
            raise ValueError(f"an input cannot be idle for {self.idle_us} us")


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStats:
    """Counts since the join began; ``resident`` and ``keys`` are current.

    Attributes:
        resident: Arrivals that may still join.
        keys: Keys that some input has not closed, or with a resident arrival.
        results: Combinations.
        capped: Combinations that were lost, as one arrival had too many.
        dead: Arrivals dropped, or not stored, as some input had closed their key without an arrival of the key.
        on_the_fly: Arrivals that were not stored, as every other input had closed their key.
        purged: Arrivals dropped as every other input closed their key.
        evicted: Arrivals that left a buffer of limited size.
        idle_closings: Number of closing keys that were raised because their input was idle.
    """

    resident: int
    keys: int
    results: int
    capped: int
    dead: int
    on_the_fly: int
    purged: int
    evicted: int
    idle_closings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferOfInput:
    """Counts of the buffer of one input.

    Attributes:
        arrivals: Number of arrivals so far.
        late: Arrivals with keys that the input had closed.
        closing_key: Closing key of the input; None: no key is closed.
        factor: Scrambling factor that was last used.
        resident: Arrivals in the buffer.
        most_resident: Greatest number of arrivals in the buffer after an item.
        resident_sum: Sum of ``resident`` over all items.
        predicted: Slots by the memory model (formula 4.1 in counts).
        multiplicity: Greatest number of arrivals of one key.
    """

    arrivals: int
    late: int
    closing_key: int | None
    factor: int
    resident: int
    most_resident: int
    resident_sum: int
    predicted: int
    multiplicity: int


_COUNTER_OF = {
    "resident": kernel.NODES,
    "keys": kernel.CLUSTERS,
    "results": kernel.RESULTS,
    "capped": kernel.CAPPED,
    "dead": kernel.DEAD,
    "on_the_fly": kernel.ON_THE_FLY,
    "purged": kernel.PURGED,
    "evicted": kernel.EVICTED,
    "idle_closings": kernel.IDLE_CLOSINGS,
}


class JoinBuffers:
    """Buffers of all inputs.

    Args:
        inputs: Number of inputs, 2 to ``MOST_INPUTS``.
        options: Rules of the buffers.
    """

    def __init__(self, inputs: int, options: BufferOptions | None = None) -> None:
        if not 2 <= inputs <= MOST_INPUTS:
            raise ValueError(f"a join has 2 to {MOST_INPUTS} inputs, not {inputs}")
        self.inputs, self._options = inputs, options or BufferOptions()
        if self._options.policy == "sizes" and len(self._options.sizes) != inputs:
            raise ValueError(f"{inputs} inputs need {inputs} sizes, not {len(self._options.sizes)}")
        self._rules = _rules_of(self._options)
        self._sizes = np.array([self._options.sizes or [0] * inputs], np.int64)
        self._state = _empty_state(inputs, _FIRST_ROOM, _FIRST_ROOM)
        self._output = _room(inputs, _FIRST_ROOM, 0, traces=self._options.traces)

    @property
    def stats(self) -> BufferStats:
        """Counts of all inputs."""
        return BufferStats(**{name: int(self._state.counters[place]) for name, place in _COUNTER_OF.items()})

    def of_input(self, number: int) -> BufferOfInput:
        """Counts of the buffer of an input."""
        side, ahead = self._state.sides[number], np.delete(self._state.ahead[number], number)
        closed = int(side[kernel.CLOSING_KEY])
        return BufferOfInput(
            arrivals=int(side[kernel.TAKEN]),
            late=int(side[kernel.LATE]),
            closing_key=None if closed == kernel.NEVER else closed,
            factor=int(side[kernel.SCRAMBLING]),
            resident=int(side[kernel.RESIDENT]),
            most_resident=int(side[kernel.MOST_RESIDENT]),
            resident_sum=int(side[kernel.RESIDENT_SUM]),
            predicted=max(1, int(side[kernel.SCRAMBLING]) + int(ahead.max())),
            multiplicity=int(side[kernel.MOST_OF_KEY]),
        )

    def push(self, items: NDArray[np.void], sizes: NDArray[np.int64] | None = None) -> Combinations:
        """Process items in order; results do not depend on how items are cut into calls.

        Args:
            items: Records of ``ITEM``.
            sizes: int64 (items, inputs): sizes that change with each item, in place of the sizes of the options.
        """
        if len(self._output.late) < len(items):
            self._output = _room(self.inputs, len(self._output.result_times), len(items), traces=self._options.traces)
        self._output.filled[:] = 0
        buffer_sizes = self._sizes if sizes is None else np.ascontiguousarray(sizes, np.int64)
        items, item = np.ascontiguousarray(items), np.int64(0)
        while True:
            status, item = join_arrivals(self._rules, self._state, items, buffer_sizes, self._output, item)
            if status == kernel.DONE:
                return _columns(self._output, len(items))
            if status == kernel.OUTPUT_FULL:
                self._output = _enlarged(self._output, int(self._state.counters[kernel.NEEDED]), self._options.traces)
            else:
                self._state = _grown(self._state, is_of_clusters=status == kernel.CLUSTERS_FULL)

    def held_sequences(self) -> NDArray[np.int64]:
        """Sequence numbers of the resident arrivals, ascending."""
        nodes = np.arange(int(self._state.counters[kernel.FRESH_NODES]))
        free = self._state.free_nodes[: int(self._state.counters[kernel.FREE_NODES])]
        return np.sort(self._state.nodes["sequence"][np.setdiff1d(nodes, free)])

    def drain(self) -> int:
        """Drop all arrivals and closing keys, as keys begin again; counts stay.

        Returns:
            The number of dropped arrivals.
        """
        old, dropped = self._state, int(self._state.counters[kernel.NODES])
        self._state = _empty_state(self.inputs, _FIRST_ROOM, _FIRST_ROOM)
        for place in (kernel.NOW, *_COUNTER_OF.values()):
            if place not in (kernel.NODES, kernel.CLUSTERS):
                self._state.counters[place] = old.counters[place]
        kept_counters = [kernel.TAKEN, kernel.LATE, kernel.LAST_TIME, kernel.MOST_RESIDENT, kernel.RESIDENT_SUM]
        self._state.sides[:, kept_counters] = old.sides[:, kept_counters]
        return dropped

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        arrays = self._state._asdict()
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        return {"format": _FORMAT, "shapes": shapes}, {name: array.tobytes() for name, array in arrays.items()}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for buffers with the same inputs and options.

        Raises:
            JoinStateError: The state is damaged, or has another form.
        """
        if head.get("format") != _FORMAT:
            raise JoinStateError(f"saved buffers of a join have the format {head.get('format')}, not {_FORMAT}")
        empty = self._state._asdict()
        try:
            loaded = {
                name: np.frombuffer(arrays[name], empty[name].dtype).reshape(head["shapes"][name]).copy()
                for name in BufferState._fields
            }
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"saved buffers of a join cannot be read: {error}") from error
        if len(loaded["sides"]) != self.inputs:
            raise JoinStateError(f"the saved join has {len(loaded['sides'])} inputs, this one has {self.inputs}")
        self._state = BufferState(**loaded)


def _rules_of(options: BufferOptions) -> NDArray[np.int64]:
    rules = np.zeros(kernel.N_BUFFER_RULES, np.int64)
    rules[kernel.POLICY] = _POLICIES[options.policy]
    rules[kernel.DROPS_DEAD] = options.drops_dead
    rules[kernel.IDLE_US] = options.idle_us or 0
    rules[kernel.MOST_RESULTS] = options.most_results
    rules[kernel.TRACES] = options.traces
    return rules


def _empty_state(inputs: int, clusters: int, nodes: int) -> BufferState:
    counters = np.zeros(kernel.N_COUNTERS, np.int64)
    counters[kernel.NOW] = kernel.NO_TIME
    sides = np.zeros((inputs, kernel.N_SIDE), np.int64)
    sides[:, kernel.CLOSING_KEY] = kernel.NEVER
    return BufferState(
        slots=np.zeros((2 * clusters, 2), np.uint64),
        keyed=np.zeros(clusters, kernel.KEYED),
        lists=np.zeros((clusters, inputs), kernel.LIST),
        free_clusters=np.zeros(clusters, np.int32),
        nodes=np.zeros(nodes, kernel.NODE),
        free_nodes=np.zeros(nodes, np.int32),
        heaps=np.zeros((inputs, clusters), kernel.HEAP),
        sides=sides,
        ahead=np.zeros((inputs, inputs), np.int64),
        counters=counters,
    )


def _grown(state: BufferState, *, is_of_clusters: bool) -> BufferState:
    """The state with twice the room for keys, or for arrivals."""
    clusters, nodes = len(state.keyed) << is_of_clusters, len(state.nodes) << (not is_of_clusters)
    grown = _empty_state(len(state.sides), clusters, nodes)
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(state)[1:], list(grown)[1:], strict=True)
    for old, new in pairs:
        new[tuple(slice(0, size) for size in old.shape)] = old
    is_used = state.slots[:, 1] != 0
    fill_slots(grown.slots, state.slots[is_used, 0], state.slots[is_used, 1])
    return grown


def _room(inputs: int, results: int, items: int, *, traces: bool) -> Combined:
    traced = items if traces else 0
    return Combined(
        members=np.zeros((results, inputs), np.int64),
        result_times=np.zeros(results, np.int64),
        late=np.zeros(items, np.int64),
        resident=np.zeros((traced, inputs), np.int64),
        predicted=np.zeros((traced, inputs), np.int64),
        filled=np.zeros(2, np.int64),
        cursors=np.zeros(inputs, np.int32),
    )


def _enlarged(output: Combined, needed: int, traces: bool) -> Combined:
    """The tables with more room, and the results written so far."""
    larger = _room(len(output.cursors), 2 * len(output.result_times) + needed, len(output.late), traces=traces)
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(list(output), list(larger), strict=True)
    for old, new in pairs:
        new[: len(old)] = old
    return larger


def _columns(output: Combined, items: int) -> Combinations:
    results, late = (int(number) for number in output.filled)
    return Combinations(
        members=output.members[:results].copy(),
        times_us=output.result_times[:results].copy(),
        late=output.late[:late].copy(),
        keyless=np.zeros(0, np.int64),
        resident=output.resident[:items].copy(),
        predicted=output.predicted[:items].copy(),
    )

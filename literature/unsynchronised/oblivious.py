"""The window-oblivious join: monitors, followed by buffers.

Source: data-driven memory management for stream joins (WO-Join), section 3.2 of the specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised import tables as kernel
from literature.unsynchronised.arrivals import Arrivals, Combinations, closing_item, items_of
from literature.unsynchronised.buffers import BufferOfInput, BufferOptions, BufferStats, JoinBuffers
from literature.unsynchronised.disk_buffers import DiskBuffers, SpillOptions
from literature.unsynchronised.lags import LagMonitor
from literature.unsynchronised.memory_model import STRATEGIES, Slots, Strategy
from literature.unsynchronised.monitors import Disorder, DisorderMonitor, DisorderOptions
from literature.unsynchronised.sorting import SortBuffers

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObliviousStats:
    """Counts of a join.

    Attributes:
        arrivals: Arrivals, including those without a key.
        keyless: Arrivals without a key.
        epochs: Number of times that keys began again.
        drained: Arrivals dropped as keys began again.
        late: Arrivals with keys that their input had closed.
        estimated_accuracy: 1 less the share of late arrivals among those with a key: a cheap estimate of the share of
            results that were found.
        buffers: Counts of the buffers.
    """

    arrivals: int
    keyless: int
    epochs: int
    drained: int
    late: int
    estimated_accuracy: float
    buffers: BufferStats


class ObliviousJoin:
    """An equijoin of inputs whose keys rise roughly, without a window.

    With known and true factors, every combination is found, once, at its last arrival. With monitored factors, an
    arrival with a larger disorder than any before it may miss combinations.

    Args:
        inputs: Disorder options of each input.
        options: Rules of the buffers.
        strategy: Strategy that saves memory: ``sort`` (memory-sort first), ``disk`` (disk-buffer first), ``hybrid``
            (both).
        spill: Options of waiting on disk; with ``disk`` and ``hybrid`` only, which need the policy ``keys``.
        measures_lags: Whether lags between inputs are measured, for predictions.
    """

    def __init__(
        self,
        inputs: Sequence[DisorderOptions],
        options: BufferOptions | None = None,
        *,
        strategy: Strategy = "plain",
        spill: SpillOptions | None = None,
        measures_lags: bool = False,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"a strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
        spills = strategy in ("disk", "hybrid")
        if spills != (spill is not None):
            raise ValueError(
                f"the strategies disk and hybrid need a folder, plain and sort take none; this is {strategy}"
            )
        if spills and options is not None and options.policy != "keys":
            raise ValueError(f"the strategy {strategy} needs the policy keys, not {options.policy}")
        self._lags = LagMonitor(len(inputs)) if measures_lags else None
        self._sorting = SortBuffers(len(inputs)) if strategy in ("sort", "hybrid") else None
        self._disk = DiskBuffers(len(inputs), spill) if spill else None
        self._buffers = JoinBuffers(len(inputs), options)
        self._monitor = DisorderMonitor(inputs)
        self._sequence = self._keyless = self._epochs = self._drained = 0
        self._now_us = kernel.NO_TIME

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self._buffers.inputs

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next arrival."""
        return self._sequence

    @property
    def stats(self) -> ObliviousStats:
        """Counts since the join began."""
        late = sum(self.buffer_of(number).late for number in range(self.inputs))
        keyed = self._sequence - self._keyless
        return ObliviousStats(
            arrivals=self._sequence,
            keyless=self._keyless,
            epochs=self._epochs,
            drained=self._drained,
            late=late,
            estimated_accuracy=1 - late / keyed if keyed else 1.0,
            buffers=self._buffers.stats,
        )

    def disorder_of(self, number: int) -> Disorder:
        """The measured disorder of an input."""
        return self._monitor.of_input(number)

    def buffer_of(self, number: int) -> BufferOfInput:
        """Counts of the buffer of an input."""
        return self._buffers.of_input(number)

    def lags(self) -> NDArray[np.float64] | None:
        """Lags between inputs, before sorting, as ``LagMonitor.lags``; None unless they are measured."""
        return self._lags.lags() if self._lags else None

    def held_of(self, number: int) -> Slots:
        """Retained arrivals of an input: in the buffer of the join and not yet on disk, to be sorted, and on disk."""
        join = self.buffer_of(number).resident
        sort = int(self._sorting.sizes()[number]) if self._sorting else 0
        gathered, disk = (self._disk.in_memory()[number], self._disk.on_disk()[number]) if self._disk else (0, 0)
        return Slots(join=join + gathered, sort=sort, disk=disk)

    def spilled_of(self, number: int) -> int:
        """The number of arrivals of an input that have waited on disk so far."""
        return self._disk.spilled()[number] if self._disk else 0

    def held_sequences(self) -> NDArray[np.int64]:
        """Sequence numbers of the arrivals that may still join, ascending; the host has to keep their payloads.

        Reads arrivals that wait on disk.
        """
        parts = [self._buffers.held_sequences()]
        if self._sorting:
            parts.append(self._sorting.held["sequence"])
        if self._disk:
            parts.append(self._disk.waiting_sequences())
        return np.sort(np.concatenate(parts))

    def push(self, arrivals: Arrivals) -> Combinations:
        """Process arrivals in order; results do not depend on how arrivals are cut into calls."""
        items = items_of(arrivals, self._sequence)
        keyless = self._sequence + np.flatnonzero(~arrivals.keyed_rows())
        parts, first = [], 0
        while first < len(items):
            last = self._monitor.observe(items, first)
            parts.append(self._join(items[first:last]))
            if last < len(items):
                self._begin_epoch()
            first = last
        self._sequence += len(arrivals)
        self._keyless += len(keyless)
        self._now_us = max(self._now_us, int(items["time"].max(initial=kernel.NO_TIME)))
        return replace(Combinations.joined(parts, self.inputs), keyless=keyless)

    def end(self, number: int) -> Combinations:
        """End an input, so that the others drop the arrivals kept because of it."""
        return self.close(number, kernel.FOREVER)

    def close(self, number: int, key: int) -> Combinations:
        """Close the keys of an input up to ``key``, as the input announced."""
        item = closing_item(number, key, 0, self._now_us)
        self._monitor.observe(item)
        return self._join(item)

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        scalars = {name: getattr(self, f"_{name}") for name in ("sequence", "keyless", "epochs", "drained", "now_us")}
        parts = {name: stage.dump() for name, stage in self._stages().items()}
        heads = {name: head for name, (head, _) in parts.items()}
        arrays = {
            f"{name}/{array_name}": array
            for name, (_, stage_arrays) in parts.items()
            for array_name, array in stage_arrays.items()
        }
        return {"format": _FORMAT, **scalars, **heads}, arrays

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for a join with the same inputs and options.

        Raises:
            JoinStateError: The state is damaged, or has another form.
        """
        if head.get("format") != _FORMAT:
            raise JoinStateError(f"the saved join has the format {head.get('format')}, not {_FORMAT}")
        try:
            scalars = [int(head[name]) for name in ("sequence", "keyless", "epochs", "drained", "now_us")]
            for name, stage in self._stages().items():
                stage.load(head[name], _part(arrays, f"{name}/"))
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved join cannot be read: {error}") from error
        self._sequence, self._keyless, self._epochs, self._drained, self._now_us = scalars

    def _stages(self) -> dict[str, DisorderMonitor | LagMonitor | SortBuffers | DiskBuffers | JoinBuffers]:
        """The stages that arrivals pass through, in order."""
        stages = {
            "monitor": self._monitor,
            "lags": self._lags,
            "sorting": self._sorting,
            "disk": self._disk,
            "buffers": self._buffers,
        }
        return {name: stage for name, stage in stages.items() if stage is not None}

    def _join(self, items: NDArray[np.void]) -> Combinations:
        if self._lags:
            self._lags.observe(items)
        if self._sorting:
            items = self._sorting.push(items)
        if self._disk:
            items = self._disk.push(items)
        return self._buffers.push(items)

    def _begin_epoch(self) -> None:
        self._monitor.begin_epoch()
        self._lags = LagMonitor(self.inputs) if self._lags else None
        for stage in (self._sorting, self._disk, self._buffers):
            self._drained += stage.drain() if stage else 0
        self._epochs += 1


def _part(arrays: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

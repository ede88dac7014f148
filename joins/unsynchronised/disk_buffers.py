"""Disk-buffer first: arrivals that are so far ahead that nothing can match them yet wait on disk.

Source: data-driven memory management for stream joins (DBF), section 3.6 of the specification. An arrival waits while
its key is above the highest of some other input; a result on a key needs all inputs to have brought it, so everything
up to that key has been read back by then. Of the reserve C, a quarter each is for what is kept in memory ahead, the
block that is being gathered, and the one read last; so the whole stays below C.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from joins.kernels.unsynchronised.tables import ARRIVAL, CLOSING, FOREVER, ITEM, NEVER
from joins.unsynchronised.memory_model import RESERVE
from joins.unsynchronised.spilling import Block, Segments, block_bytes, items_in
from streams import Clock

_ON, _OFF = 3.0, 1.5  # times an input-output, in the lead
_RATE_SPAN_US = 2_000_000
_LATEST = 0.25  # weight of the latest input-output in the moving average


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOptions:
    """How arrivals wait on disk.

    Attributes:
        folder: An existing one, for this join alone.
        reserve: Arrivals of each input kept in memory ahead of the others (C), at least 8.
        segment_rows: Arrivals in a file.
        io_us: How long writing and reading a block takes, as a first estimate.
        clock: Measures that; None: the estimate stays.
    """

    folder: Path
    reserve: int = RESERVE
    segment_rows: int = 4096
    io_us: float = 2_000.0
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if self.reserve < 8:
            raise ValueError(f"the reserve of a disk buffer is at least 8, not {self.reserve}")


@dataclass(slots=True)
class _Input:
    """What is known of one input."""

    segments: Segments
    highest: int = NEVER  # key that has arrived
    closing: int = NEVER
    factor: int = 0
    is_on: bool = False
    ahead: list[int] = field(default_factory=list)  # heap: keys handed on that are above all of some other input
    gathered: list[Any] = field(default_factory=list)  # items of the block that is not written yet
    times: deque[int] = field(default_factory=deque)
    spilled: int = 0  # arrivals so far
    lowest: int = FOREVER  # key that waits

    @property
    def waiting(self) -> int:
        return len(self.gathered) + self.segments.rows

    @property
    def usable_closing(self) -> int:
        """Up to which key nothing more is handed on."""
        return self.closing if self.lowest == FOREVER else min(self.closing, self.lowest - 1)

    def note_lowest(self) -> None:
        """Find the lowest key that waits, after some have been read back."""
        keys = [int(item["key"]) for item in self.gathered]
        self.lowest = min([*keys, *(block.lowest for block in self.segments.blocks)], default=FOREVER)


class DiskBuffers:
    """Arrivals of each input that wait on disk.

    Args:
        inputs: How many there are.
        options: Where and how.
    """

    def __init__(self, inputs: int, options: SpillOptions) -> None:
        self._options = options
        self._io_us = options.io_us
        self._share = options.reserve // 4
        self._inputs = [
            _Input(Segments(options.folder, f"input-{number}", options.segment_rows)) for number in range(inputs)
        ]

    @property
    def io_us(self) -> float:
        """How long writing and reading a block takes."""
        return self._io_us

    def in_memory(self) -> list[int]:
        """Of each input, arrivals of the block that is not written yet."""
        return [len(one.gathered) for one in self._inputs]

    def on_disk(self) -> list[int]:
        """Of each input, arrivals in files."""
        return [one.segments.rows for one in self._inputs]

    def spilled(self) -> list[int]:
        """Of each input, arrivals that waited, so far."""
        return [one.spilled for one in self._inputs]

    def waiting_sequences(self) -> NDArray[np.int64]:
        """Sequence numbers of all that wait, ascending; reads the files."""
        found = [item["sequence"] for one in self._inputs for item in one.gathered]
        blocks = [
            items_in(block_bytes(block), block.rows)["sequence"]
            for one in self._inputs
            for block in one.segments.blocks
        ]
        return np.sort(np.concatenate([np.array(found, np.int64), *blocks]))

    def push(self, items: NDArray[np.void]) -> NDArray[np.void]:
        """What is handed on: items, those read back in front of the item that needs them.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        out: list[NDArray[np.void]] = []
        for place in range(len(items)):
            self._take(items[place : place + 1], out)
        handed_on, first = np.zeros(sum(map(len, out)), ITEM), 0
        for part in out:
            handed_on[first : first + len(part)] = part
            first += len(part)
        return handed_on

    def drain(self) -> int:
        """Drop everything, as keys begin again.

        Returns:
            How many arrivals were dropped.
        """
        dropped = sum(one.waiting for one in self._inputs)
        for number, one in enumerate(self._inputs):
            one.segments.remove()
            self._inputs[number] = _Input(one.segments, spilled=one.spilled)
        return dropped

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name; what is on disk is in it, so that it depends on no file."""
        heads, arrays = [], {}
        for number, one in enumerate(self._inputs):
            blocks = [[block.rows, block.lowest, block.highest] for block in one.segments.blocks]
            plain = ("highest", "closing", "factor", "is_on", "spilled")
            heads.append(
                {name: getattr(one, name) for name in plain}
                | {"ahead": one.ahead, "times": list(one.times), "blocks": blocks}
                | {"written": one.segments.written, "read": one.segments.read}
            )
            arrays[f"{number}/gathered"] = np.array(one.gathered, ITEM).tobytes()
            for place, block in enumerate(one.segments.blocks):
                arrays[f"{number}/block/{place}"] = block_bytes(block)
        return {"io_us": self._io_us, "inputs": heads}, arrays

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Take what ``dump`` gave; files that are in the folder are removed.

        Raises:
            JoinStateError: It is damaged.
        """
        try:
            for number, (one, saved) in enumerate(zip(self._inputs, head["inputs"], strict=True)):
                one.segments.remove()
                for name in ("highest", "closing", "factor", "is_on", "spilled"):
                    setattr(one, name, saved[name])
                one.ahead, one.times = list(saved["ahead"]), deque(saved["times"])
                one.gathered = list(np.frombuffer(arrays[f"{number}/gathered"], ITEM).copy())
                for place, (rows, lowest, highest) in enumerate(saved["blocks"]):
                    one.segments.write_bytes(arrays[f"{number}/block/{place}"], rows, lowest, highest)
                one.note_lowest()
                one.segments.written, one.segments.read = saved["written"], saved["read"]
            self._io_us = head["io_us"]
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved disk buffer cannot be read: {error}") from error

    def _take(self, item: NDArray[np.void], out: list[NDArray[np.void]]) -> None:
        """Take one item: read back what it needs, then hand it on, or let it wait."""
        number, time_us = int(item["input"][0]), int(item["time"][0])
        own, is_arrival = self._inputs[number], item["kind"][0] == ARRIVAL
        key = int(item["key" if is_arrival else "closing"][0])
        own.closing, own.factor = max(own.closing, int(item["closing"][0])), int(item["factor"][0])
        if key > own.highest:
            own.highest = key
            for other in range(len(self._inputs)):
                if other != number:
                    self._read_back(other, time_us, out)
        if is_arrival and self._waits(number, key, time_us):
            own.spilled += 1
            own.lowest = min(own.lowest, key)
            own.gathered.append(item[0].copy())
            if len(own.gathered) >= self._share:
                self._write(own)
            out.append(self._closing(number, time_us))
            return
        if is_arrival and key > self._reach(number):
            heappush(own.ahead, key)
        item = item.copy()
        item["closing"] = own.usable_closing
        out.append(item)

    def _reach(self, number: int) -> int:
        """The highest key that every other input has reached."""
        return min(one.highest for other, one in enumerate(self._inputs) if other != number)

    def _waits(self, number: int, key: int, time_us: int) -> bool:
        """Whether an arrival waits on disk."""
        own = self._inputs[number]
        own.times.append(time_us)
        while own.times[0] <= time_us - _RATE_SPAN_US:
            own.times.popleft()
        lead_us = (len(own.ahead) + own.waiting) * _RATE_SPAN_US / len(own.times)
        own.is_on = lead_us >= (_OFF if own.is_on else _ON) * self._io_us
        return own.is_on and key > self._reach(number) and len(own.ahead) >= self._share

    def _read_back(self, number: int, time_us: int, out: list[NDArray[np.void]]) -> None:
        """Hand on what the others have reached, and read ahead."""
        own, reach = self._inputs[number], self._reach(number)
        while own.ahead and own.ahead[0] <= reach:
            heappop(own.ahead)
        if own.lowest > reach and (own.lowest == FOREVER or len(own.ahead) >= self._share):
            return
        found = list(self._read(own, lambda block: block.lowest <= reach))
        if any(item["key"] <= reach for item in own.gathered):
            found.append(np.array(own.gathered, ITEM))
            own.gathered.clear()
        missing = self._share - len(own.ahead) - sum(int((one["key"] > reach).sum()) for one in found)
        while missing > 0 and own.waiting:
            found.append(self._next(own))
            missing -= len(found[-1])
        for block in found:
            items = block[np.argsort(block["key"], kind="stable")]
            own.ahead += items["key"][items["key"] > reach].tolist()
            items["time"], items["closing"] = time_us, NEVER
            out.append(items)
        if found:
            heapify(own.ahead)
            own.note_lowest()
            out.append(self._closing(number, time_us))

    def _next(self, own: _Input) -> NDArray[np.void]:
        """The next block in the order of keys."""
        if not own.segments.blocks:
            items = np.array(own.gathered, ITEM)
            own.gathered.clear()
            return items
        lowest = min(own.segments.blocks, key=lambda block: block.lowest)
        return self._read(own, lambda block: block is lowest)[0]

    def _closing(self, number: int, time_us: int) -> NDArray[np.void]:
        item, own = np.zeros(1, ITEM), self._inputs[number]
        item["kind"], item["input"], item["closing"] = CLOSING, number, own.usable_closing
        item["factor"], item["time"] = own.factor, time_us
        return item

    def _write(self, own: _Input) -> None:
        begun_us = self._now_us()
        own.segments.write(np.array(own.gathered, ITEM))
        own.gathered.clear()
        self._note(begun_us)

    def _read(self, own: _Input, is_wanted: Callable[[Block], bool]) -> list[NDArray[np.void]]:
        begun_us = self._now_us()
        found = list(own.segments.take(is_wanted))
        if found:
            self._note(begun_us)
        return found

    def _now_us(self) -> int:
        return self._options.clock.now_us() if self._options.clock else 0

    def _note(self, begun_us: int) -> None:
        """Take an operation into the average: a write and a read are twice one of them."""
        if self._options.clock:
            self._io_us += _LATEST * (2 * (self._now_us() - begun_us) - self._io_us)

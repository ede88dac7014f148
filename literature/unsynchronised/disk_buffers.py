"""Disk-buffer first: arrivals so far ahead that no other arrival can match them yet wait on disk.

Source: data-driven memory management for stream joins (DBF), section 3.6 of the specification. An arrival waits while
its key is above the highest key of some other input. A result needs an arrival of its key from every input, and by then
everything up to this key has been read back. Of the reserve C, a quarter each is for arrivals kept in memory ahead, the
block that is being gathered, and the block read last; so the whole stays below C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.block_files import BlockFiles
from literature.kernels.unsynchronised import diverting as kernel
from literature.kernels.unsynchronised.diverting import WaitingState, divert
from literature.kernels.unsynchronised.tables import CLOSING, FOREVER, HEAP, ITEM, NEVER
from literature.unsynchronised.memory_model import RESERVE
from literature.unsynchronised.spilling import Block, WaitingBlocks
from streams import Clock

_LATEST = 0.25  # weight of the latest operation in the moving average


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOptions:
    """Options of waiting on disk, which starts when an input leads by three times the duration of a write and a read.

    Attributes:
        folder: Folder of this join alone.
        reserve: Number of arrivals of each input kept in memory ahead of the others (C), at least 8.
        io_us: First estimate of the duration of writing and reading a block.
        clock: Clock that measures the duration; None: the estimate stays.
    """

    folder: Path
    reserve: int = RESERVE
    io_us: float = 2_000.0
    clock: Clock | None = None

    def __post_init__(self) -> None:
        if self.reserve < 8:
            raise ValueError(f"the reserve of a disk buffer is at least 8, not {self.reserve}")


class DiskBuffers:
    """Arrivals of each input that wait on disk.

    Args:
        inputs: Number of inputs.
        options: Options of waiting.
    """

    def __init__(self, inputs: int, options: SpillOptions) -> None:
        self._options, self._share = options, options.reserve // 4
        self._io_us = options.io_us
        self._state = self._empty(inputs)
        self._files = BlockFiles(options.folder)
        self._waiting = [WaitingBlocks(self._files) for _ in range(inputs)]

    @property
    def io_us(self) -> float:
        """The duration of writing and reading a block."""
        return self._io_us

    def in_memory(self) -> list[int]:
        """The number of arrivals of each input in the block that is not written yet."""
        return [int(size) for size in self._state.numbers[:, kernel.GATHERED]]

    def on_disk(self) -> list[int]:
        """The number of arrivals of each input in files."""
        return [waiting.rows for waiting in self._waiting]

    def spilled(self) -> list[int]:
        """The number of arrivals of each input that have waited so far."""
        return [int(size) for size in self._state.numbers[:, kernel.SPILLED]]

    def waiting_sequences(self) -> NDArray[np.int64]:
        """Sequence numbers of all waiting arrivals, ascending; reads the files."""
        gathered = [self._gathered(number)["sequence"] for number in range(len(self._waiting))]
        blocks = [waiting.items_of(block) for waiting in self._waiting for block in waiting.blocks]
        return np.sort(np.concatenate([*gathered, *(block["sequence"] for block in blocks)]))

    def push(self, items: NDArray[np.void]) -> NDArray[np.void]:
        """The items to pass on: arrivals read back come before the item that needs them.

        Raises:
            JoinStateError: A file is missing or damaged.
        """
        items, item, parts = np.ascontiguousarray(items), np.int64(0), []
        out, first = np.zeros(len(items), ITEM), 0
        self._state.counters[kernel.OUT] = 0
        while True:
            self._make_room(len(items) - int(item))
            self._state.counters[kernel.IO_NS] = round(self._io_us * 1_000)
            status, item = divert(self._state, items, out, item)
            last = int(self._state.counters[kernel.OUT])
            parts.append(out[first:last])
            first = last
            number = int(self._state.counters[kernel.INPUT])
            if status == kernel.DONE:
                return _joined(parts)
            if status == kernel.WRITE:
                self._write(number)
            else:
                parts += self._read_back(number, int(items["time"][item]))

    def drain(self) -> int:
        """Drop all waiting arrivals, as keys begin again.

        Returns:
            The number of dropped arrivals.
        """
        old, dropped = self._state, sum(self.in_memory()) + sum(self.on_disk())
        self._state = self._empty(len(self._waiting))
        self._state.numbers[:, kernel.SPILLED] = old.numbers[:, kernel.SPILLED]
        for waiting in self._waiting:
            waiting.remove()
        return dropped

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name; includes the content of the files and depends on none."""
        arrays = {name: array.tobytes() for name, array in self._state._asdict().items()}
        inputs = []
        for number, waiting in enumerate(self._waiting):
            blocks = [[block.rows, block.lowest, block.highest] for block in waiting.blocks]
            inputs.append({"blocks": blocks, "written": waiting.written, "read": waiting.read})
            arrays |= {
                f"block/{number}/{place}": self._files.read(block.file).to_pybytes()
                for place, block in enumerate(waiting.blocks)
            }
        shapes = {name: list(array.shape) for name, array in self._state._asdict().items()}
        return {"io_us": self._io_us, "shapes": shapes, "inputs": inputs}, arrays

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for the same inputs and options; files in the folder are removed.

        Raises:
            JoinStateError: The state is damaged, or of other inputs.
        """
        empty = self._state._asdict()
        try:
            loaded = {
                name: np.frombuffer(arrays[name], empty[name].dtype).reshape(head["shapes"][name]).copy()
                for name in WaitingState._fields
            }
            if any(loaded[name].shape != empty[name].shape for name in ("numbers", "gathered", "counters")):
                raise JoinStateError("a saved disk buffer is of other inputs or options")
            self._files.clear()
            for number, (waiting, saved) in enumerate(zip(self._waiting, head["inputs"], strict=True)):
                waiting.blocks, waiting.rows = [], 0
                for place, (rows, lowest, highest) in enumerate(saved["blocks"]):
                    waiting.write_content(arrays[f"block/{number}/{place}"], rows, lowest, highest)
                waiting.written, waiting.read = saved["written"], saved["read"]
            self._io_us = head["io_us"]
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved disk buffer cannot be read: {error}") from error
        self._state = WaitingState(**loaded)

    def _empty(self, inputs: int) -> WaitingState:
        numbers = np.zeros((inputs, kernel.N_WAITING), np.int64)
        numbers[:, kernel.HIGHEST] = numbers[:, kernel.CLOSED] = NEVER
        numbers[:, kernel.LOWEST] = FOREVER
        return WaitingState(
            numbers=numbers,
            gathered=np.zeros((inputs, self._share), ITEM),
            ahead=np.zeros((inputs, 0), HEAP),
            times=np.zeros((inputs, 0), np.int64),
            counters=np.zeros(kernel.N_COUNTERS, np.int64),
        )

    def _make_room(self, items: int) -> None:
        """Make room for further keys ahead and times; times before the span of rates are dropped."""
        state, numbers = self._state, self._state.numbers
        sizes = numbers[:, kernel.END_OF_TIMES] - numbers[:, kernel.FIRST_TIME]
        if int(numbers[:, kernel.END_OF_TIMES].max()) + items > state.times.shape[1]:
            times = np.zeros((len(numbers), 2 * (int(sizes.max()) + items)), np.int64)
            for number, (size, first) in enumerate(zip(sizes, numbers[:, kernel.FIRST_TIME], strict=True)):
                times[number, :size] = state.times[number, first : first + size]
            numbers[:, kernel.FIRST_TIME], numbers[:, kernel.END_OF_TIMES] = 0, sizes
            self._state = self._state._replace(times=times)
        ahead = int(numbers[:, kernel.AHEAD].max()) + items
        if ahead > state.ahead.shape[1]:
            grown = np.zeros((len(numbers), 2 * ahead), HEAP)
            grown[:, : state.ahead.shape[1]] = state.ahead
            self._state = self._state._replace(ahead=grown)

    def _gathered(self, number: int) -> NDArray[np.void]:
        gathered: NDArray[np.void] = self._state.gathered[number, : self._state.numbers[number, kernel.GATHERED]]
        return gathered

    def _read_back(self, number: int, time_us: int) -> list[NDArray[np.void]]:
        """Pass on the waiting arrivals that the other inputs have reached, and read ahead."""
        numbers, waiting = self._state.numbers[number], self._waiting[number]
        reach = int(np.delete(self._state.numbers[:, kernel.HIGHEST], number).min())
        parts = self._read(waiting, lambda block: block.lowest <= reach)
        if (self._gathered(number)["key"] <= reach).any():
            parts.append(self._taken_gathered(number))
        missing = (
            self._share - int(numbers[kernel.AHEAD]) - sum(int((records["key"] > reach).sum()) for records in parts)
        )
        while missing > 0 and (waiting.blocks or numbers[kernel.GATHERED]):
            parts += self._next(number)
            missing -= len(parts[-1])
        parts = [block[np.argsort(block["key"], kind="stable")] for block in parts]
        for items in parts:
            items["time"], items["closing"] = time_us, NEVER
        self._note_ahead(number, np.concatenate([records["key"][records["key"] > reach] for records in parts]))
        keys = [*self._gathered(number)["key"].tolist(), *(block.lowest for block in waiting.blocks)]
        numbers[kernel.LOWEST], numbers[kernel.ON_DISK] = min(keys, default=FOREVER), waiting.rows
        return [*parts, self._closing(number, time_us)]

    def _next(self, number: int) -> list[NDArray[np.void]]:
        """Take the next block in the order of keys."""
        waiting = self._waiting[number]
        if not waiting.blocks:
            return [self._taken_gathered(number)]
        lowest = min(waiting.blocks, key=lambda block: block.lowest)
        return self._read(waiting, lambda block: block is lowest)

    def _taken_gathered(self, number: int) -> NDArray[np.void]:
        items = self._gathered(number).copy()
        self._state.numbers[number, kernel.GATHERED] = 0
        return items

    def _note_ahead(self, number: int, keys: NDArray[np.int64]) -> None:
        """Add keys to the heap of keys ahead."""
        self._make_room(len(keys))
        size = int(self._state.numbers[number, kernel.AHEAD])
        ahead = self._state.ahead[number]
        ahead["key"][size : size + len(keys)] = keys
        ahead["key"][: size + len(keys)] = np.sort(ahead["key"][: size + len(keys)])  # a sorted array is a heap
        self._state.numbers[number, kernel.AHEAD] = size + len(keys)

    def _closing(self, number: int, time_us: int) -> NDArray[np.void]:
        item, numbers = np.zeros(1, ITEM), self._state.numbers[number]
        lowest, closed = int(numbers[kernel.LOWEST]), int(numbers[kernel.CLOSED])
        item["kind"], item["input"], item["time"] = CLOSING, number, time_us
        item["closing"], item["factor"] = (
            closed if lowest == FOREVER else min(closed, lowest - 1),
            numbers[kernel.FACTOR],
        )
        return item

    def _write(self, number: int) -> None:
        begun_us = self._now_us()
        self._waiting[number].write(self._taken_gathered(number))
        self._state.numbers[number, kernel.ON_DISK] = self._waiting[number].rows
        self._note(begun_us)

    def _read(self, waiting: WaitingBlocks, is_wanted: Callable[[Block], bool]) -> list[NDArray[np.void]]:
        begun_us = self._now_us()
        parts = list(waiting.take(is_wanted))
        if parts:
            self._note(begun_us)
        return parts

    def _now_us(self) -> int:
        return self._options.clock.now_us() if self._options.clock else 0

    def _note(self, begun_us: int) -> None:
        """Add an operation to the average; a write and a read take twice as long as one operation."""
        if self._options.clock:
            self._io_us += _LATEST * (2 * (self._now_us() - begun_us) - self._io_us)


def _joined(parts: list[NDArray[np.void]]) -> NDArray[np.void]:
    """Several arrays of items as one; ``np.concatenate`` would compare their fields each time."""
    whole, first = np.zeros(sum(map(len, parts)), ITEM), 0
    for part in parts:
        whole[first : first + len(part)] = part
        first += len(part)
    return whole

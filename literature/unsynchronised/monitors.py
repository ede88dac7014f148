"""Monitors of inputs: disorder of the keys, closing key and rate.

Source: data-driven memory management for stream joins, sections 2.3 and 3.1 of the specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised import tables as kernel
from literature.kernels.unsynchronised.disorder import fill_slots, observe, unscrambled
from literature.kernels.unsynchronised.tables import DisorderRules, DisorderState

WARM_UP = 1024
_FIRST_RECORDS = 64
_FIRST_COUNTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DisorderOptions:
    """Options of the disorder of an input, which is known or monitored.

    Attributes:
        factor: Known scrambling factor; None: the factor is monitored.
        headroom: Multiplier of a monitored factor, at least 1, in steps of a thousandth.
        blocks: Number of newest blocks whose largest disorder is the monitored factor.
        block_rows: Number of arrivals in a block.
        is_exact: Keeps every record, so that no disorder is a lower bound; memory grows with the stream.
        most: Disorder beyond which keys count as begun again; None: keys never begin again.
        warm_up: Number of first arrivals during which a monitored factor closes no key.
    """

    factor: int | None = None
    headroom: float = 1.0
    blocks: int = 8
    block_rows: int = 4096
    is_exact: bool = False
    most: int | None = None
    warm_up: int = WARM_UP

    def __post_init__(self) -> None:
        has_valid_factor = self.factor is None or self.factor >= 0
        if not has_valid_factor or self.headroom < 1 or self.blocks < 1 or self.block_rows < 1 or self.warm_up < 0:
            raise ValueError(f"a factor is at least 0, headroom, blocks and their rows at least 1: {self}")
        if self.most is not None and self.most < max(self.factor or 0, 1):
            raise ValueError(f"keys cannot begin again at a disorder of {self.most}: it is within the factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disorder:
    """The measured disorder of an input.

    Attributes:
        arrivals: Number of arrivals in this epoch.
        factor: Largest disorder so far; the exact scrambling factor where ``underflows`` is 0.
        used_factor: Factor from which the closing key is computed.
        multiplicity: Greatest number of arrivals of one key.
        closing_key: Key up to which no arrival is expected; None: no key is closed.
        highest_key: Highest key so far; None before the first arrival.
        underflows: Number of arrivals whose disorder is only a lower bound.
        records: Number of retained records.
    """

    arrivals: int
    factor: int
    used_factor: int
    multiplicity: int
    closing_key: int | None
    highest_key: int | None
    underflows: int
    records: int


class DisorderMonitor:
    """Monitors of several inputs, fed with items in the order in which they arrive.

    Args:
        options: Options of each input.
    """

    def __init__(self, options: Sequence[DisorderOptions]) -> None:
        self._options = tuple(options)
        self._rules = DisorderRules(np.array([_numbers_of(input_options) for input_options in options], np.int64))
        self._state = self._empty(_FIRST_RECORDS, _FIRST_COUNTS)

    def observe(self, items: NDArray[np.void], first: int = 0) -> int:
        """Note items from a place on, and write ``closing`` and ``factor`` into each.

        Args:
            items: Records of ``ITEM``, changed in place.
            first: Place of the first item.

        Returns:
            Place after the last noted item: the number of items, or the place of an item that begins a new epoch
            (``begin_epoch``).
        """
        item = np.int64(first)
        while True:
            status, item = observe(self._rules, self._state, items, item)
            if status in (kernel.DONE, kernel.EPOCH_BEGINS):
                return int(item)
            self._grow(is_of_records=status == kernel.RECORDS_FULL)

    def begin_epoch(self) -> None:
        """Reset the monitors, as keys have begun again."""
        self._state = self._empty(_FIRST_RECORDS, _FIRST_COUNTS)

    def of_input(self, number: int) -> Disorder:
        """The measured disorder of an input."""
        numbers = self._state.numbers[number]
        first, end = int(numbers[kernel.FIRST_RECORD]), int(numbers[kernel.END_OF_RECORDS])
        closed = int(numbers[kernel.CLOSED])
        return Disorder(
            arrivals=int(numbers[kernel.ARRIVALS]),
            factor=int(numbers[kernel.FACTOR]),
            used_factor=int(numbers[kernel.USED_FACTOR]),
            multiplicity=int(numbers[kernel.MULTIPLICITY]),
            closing_key=None if closed == kernel.NEVER else closed,
            highest_key=int(self._state.records[number, end - 1]["key"]) if end else None,
            underflows=int(numbers[kernel.UNDERFLOWS]),
            records=end - first,
        )

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        head = {name: list(array.shape) for name, array in self._state._asdict().items()}
        return head, {name: array.tobytes() for name, array in self._state._asdict().items()}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for monitors with the same options.

        Raises:
            JoinStateError: The state is damaged, or of other inputs.
        """
        empty = self._state._asdict()
        try:
            loaded = DisorderState(
                **{
                    name: np.frombuffer(arrays[name], empty[name].dtype).reshape(head[name]).copy()
                    for name in DisorderState._fields
                }
            )
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"saved monitors of a join cannot be read: {error}") from error
        if loaded.numbers.shape != self._state.numbers.shape or loaded.blocks.shape != self._state.blocks.shape:
            raise JoinStateError("saved monitors of a join are of other inputs or options")
        self._state = loaded

    def _empty(self, records: int, counts: int) -> DisorderState:
        inputs = len(self._options)
        numbers = np.zeros((inputs, kernel.N_NUMBERS), np.int64)
        numbers[:, kernel.HIGHEST_DROPPED] = numbers[:, kernel.CLOSED] = kernel.NEVER
        numbers[:, kernel.USED_FACTOR] = [input_options.factor or 0 for input_options in self._options]
        return DisorderState(
            records=np.zeros((inputs, records), kernel.RECORD),
            numbers=numbers,
            blocks=np.zeros((inputs, max(input_options.blocks for input_options in self._options)), np.int64),
            counts=np.zeros((inputs, counts, 2), np.uint64),
        )

    def _grow(self, *, is_of_records: bool) -> None:
        """Make room for records; or for counts of keys, where counts of closed keys are dropped."""
        old = self._state
        if is_of_records:
            grown = self._empty(2 * old.records.shape[1], 1)
            grown.records[:, : old.records.shape[1]] = old.records
            self._state = old._replace(records=grown.records)
            return
        open_counts = [self._open_counts(number) for number in range(len(old.numbers))]
        slots = old.counts.shape[1]
        while 4 * max(len(rows) for rows in open_counts) >= slots:
            slots *= 2
        counts = np.zeros((len(old.numbers), slots, 2), np.uint64)
        for number, rows in enumerate(open_counts):
            _fill(counts[number], rows)
            old.numbers[number, kernel.COUNTED] = len(rows)
        self._state = old._replace(counts=counts)

    def _open_counts(self, number: int) -> NDArray[np.uint64]:
        counts = self._state.counts[number]
        used = counts[counts[:, 1] != 0]
        keys = np.zeros(len(used), np.int64)
        unscrambled(np.ascontiguousarray(used[:, 0]), keys)
        open_rows: NDArray[np.uint64] = used[keys > self._state.numbers[number, kernel.CLOSED]]
        return open_rows


def scrambling_factor(keys: NDArray[np.int64]) -> int:
    """The exact scrambling factor of a whole stream: ``max(PI(s) - PI(s'))`` over ``s.A <= s'.A``."""
    if not len(keys):
        return 0
    highest = np.maximum.accumulate(keys)
    return int(np.max(np.arange(len(keys)) - np.searchsorted(highest, keys, side="left")))


def rate_at(times_us: NDArray[np.int64], now_us: int, span_us: int = 2_000_000) -> float:
    """Arrivals per second in the span up to a time, from ascending arrival times; for prediction only."""
    first, last = np.searchsorted(times_us, [now_us - span_us, now_us], side="right")
    return float(last - first) * 1e6 / span_us


def _numbers_of(options: DisorderOptions) -> list[int]:
    numbers = [0] * kernel.N_RULES
    numbers[kernel.GIVEN] = kernel.NIL if options.factor is None else options.factor
    numbers[kernel.BLOCK_ROWS] = options.block_rows
    numbers[kernel.BLOCKS] = options.blocks
    numbers[kernel.IS_EXACT] = int(options.is_exact)
    numbers[kernel.HEADROOM] = round(options.headroom * 1000)
    numbers[kernel.MOST] = kernel.NIL if options.most is None else options.most
    numbers[kernel.WARM_UP] = options.warm_up
    return numbers


def _fill(slots: NDArray[np.uint64], rows: NDArray[np.uint64]) -> None:
    fill_slots(slots, np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1]))

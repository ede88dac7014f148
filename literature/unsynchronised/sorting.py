"""Memory-sort first: a reorder buffer before a join, which releases each input in the order of its keys.

Source: data-driven memory management for stream joins (MSF), section 3.5 of the specification. A buffered arrival is
released once its input has closed its key: at least as early as by counting, and in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised.tables import ARRIVAL, ITEM, NEVER


class SortBuffers:
    """A reorder buffer for each input.

    Args:
        inputs: Number of inputs.
    """

    def __init__(self, inputs: int) -> None:
        self._held = np.zeros(0, ITEM)
        self._last_keys = np.full(inputs, NEVER, np.int64)
        self._runs = np.zeros(inputs, np.int64)  # arrivals with the last key
        self._multiplicities = np.ones(inputs, np.int64)
        self._late = 0

    @property
    def held(self) -> NDArray[np.void]:
        """The waiting items."""
        return self._held

    @property
    def late(self) -> int:
        """The number of arrivals released out of order, as their input had closed their key."""
        return self._late

    def sizes(self) -> NDArray[np.int64]:
        """The number of waiting arrivals of each input."""
        counts: NDArray[np.int64] = np.bincount(self._held["input"], minlength=len(self._runs))
        return counts

    def push(self, items: NDArray[np.void]) -> NDArray[np.void]:
        """Process items; return the released ones, sorted by key at each item that releases some.

        Args:
            items: Items completed by a monitor.
        """
        arrivals = np.concatenate([self._held, items[items["kind"] == ARRIVAL]])
        came = np.concatenate([np.full(len(self._held), -1), np.flatnonzero(items["kind"] == ARRIVAL)])
        released = np.full(len(arrivals), len(items))  # place of the item that releases it
        for number in range(len(self._runs)):
            is_of_input, rows = arrivals["input"] == number, np.flatnonzero(items["input"] == number)
            closing = np.searchsorted(items["closing"][rows], arrivals["key"][is_of_input], side="left")
            released[is_of_input] = np.maximum(np.append(rows, len(items))[closing], came[is_of_input])
        self._held = arrivals[released == len(items)].copy()
        return self._released(items, arrivals, released)

    def drain(self) -> int:
        """Drop all waiting arrivals, as keys begin again.

        Returns:
            The number of dropped arrivals.
        """
        dropped = len(self._held)
        self._held = self._held[:0]
        self._last_keys[:], self._runs[:], self._multiplicities[:] = NEVER, 0, 1
        return dropped

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        head = {
            "last_keys": self._last_keys.tolist(),
            "runs": self._runs.tolist(),
            "multiplicities": self._multiplicities.tolist(),
            "late": self._late,
        }
        return head, {"held": self._held.tobytes()}

    def load(self, head: Mapping[str, Any], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned.

        Raises:
            JoinStateError: The state is damaged.
        """
        try:
            self._held = np.frombuffer(arrays["held"], ITEM).copy()
            self._last_keys = np.array(head["last_keys"], np.int64)
            self._runs = np.array(head["runs"], np.int64)
            self._multiplicities = np.array(head["multiplicities"], np.int64)
            self._late = int(head["late"])
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved sort buffer cannot be read: {error}") from error

    def _released(
        self, items: NDArray[np.void], arrivals: NDArray[np.void], released: NDArray[np.int64]
    ) -> NDArray[np.void]:
        """The items for the join: released arrivals, and the closings among the items."""
        is_closing = items["kind"] != ARRIVAL
        out = np.concatenate([arrivals[released < len(items)], items[is_closing]])
        by = np.concatenate([released[released < len(items)], np.flatnonzero(is_closing)])
        order = np.lexsort((out["sequence"], out["key"], out["kind"], by))
        out, by = out[order], by[order]
        is_last = np.append(by[1:] != by[:-1], True) if len(by) else np.zeros(0, np.bool_)
        out["closing"] = np.where(is_last, items["closing"][by], NEVER)
        out["time"] = items["time"][by]
        for number in range(len(self._runs)):
            rows = np.flatnonzero((out["input"] == number) & (out["kind"] == ARRIVAL))
            out["factor"][rows] = self._multiplicity_of(number, out["key"][rows]) - 1
            closings = np.flatnonzero((out["input"] == number) & (out["kind"] != ARRIVAL))
            out["factor"][closings] = self._multiplicities[number] - 1
        return out

    def _multiplicity_of(self, number: int, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The multiplicity so far at each key of a sorted input."""
        if not len(keys):
            return keys
        before = np.append(self._last_keys[number], keys[:-1])
        self._late += int(np.count_nonzero(keys < before))
        starts = np.where(keys != before, np.arange(len(keys)), -self._runs[number])
        runs = np.arange(len(keys)) - np.maximum.accumulate(starts) + 1
        multiplicities = np.maximum.accumulate(np.append(self._multiplicities[number], runs))[1:]
        self._last_keys[number], self._runs[number], self._multiplicities[number] = (
            keys[-1],
            runs[-1],
            multiplicities[-1],
        )
        return multiplicities

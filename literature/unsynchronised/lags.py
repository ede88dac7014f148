"""By how many arrivals an input leads another one, measured while they arrive.

Source: data-driven memory management for stream joins, sections 2.2 and 3.3 of the specification. The definition needs
arrivals that are yet to come; what can be known is the lag when the other input brought its last arrival that nothing
can precede any more, ``k_j`` arrivals ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised.tables import ARRIVAL

_FORGETTING = 1024  # arrivals; at fixed places, so that cuts change nothing where factors turn out too small


class LagMonitor:
    """Lags between all pairs of inputs; any cut of items into calls gives the same.

    Args:
        inputs: How many there are.
    """

    def __init__(self, inputs: int) -> None:
        self._arrived = np.zeros(inputs, np.int64)
        self._factors = np.zeros(inputs, np.int64)  # used last
        self._most_factors = np.zeros(inputs, np.int64)
        self._dropped_rows = np.zeros(inputs, np.int64)
        self._rows = [np.zeros((0, inputs), np.int64) for _ in range(inputs)]  # arrivals of all, at each own arrival
        self._dropped_keys = np.zeros(inputs, np.int64)
        self._keys = [np.zeros(0, np.int64) for _ in range(inputs)]  # ascending

    def observe(self, items: NDArray[np.void]) -> None:
        """Note items, as a monitor of disorder has completed them."""
        items = items[items["kind"] == ARRIVAL]
        first = _FORGETTING - int(self._arrived.sum()) % _FORGETTING
        for part in np.split(items, range(first, len(items), _FORGETTING)):
            self._observe(part)
            if int(self._arrived.sum()) % _FORGETTING == 0:
                self._forget_keys()

    def lags(self) -> NDArray[np.float64]:
        """(inputs, inputs): ``L[i, j]`` arrivals of i by which i leads j; negative: it lags; NaN: not known yet.

        Where i may still bring keys that j has passed, it is an upper bound.
        """
        inputs = len(self._arrived)
        found = np.full((inputs, inputs), np.nan)
        for other in range(inputs):
            rank = self._rank(other)
            if rank <= 0:
                continue
            row = max(rank - 1 - int(self._dropped_rows[other]), 0)
            for number in range(inputs):
                passed = np.searchsorted(self._keys[number], self._rank_key(other), side="right")
                found[number, other] = self._rows[other][row, number] - self._dropped_keys[number] - passed
        np.fill_diagonal(found, 0)
        return found

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        names = ("arrived", "factors", "most_factors", "dropped_rows", "dropped_keys")
        arrays = {f"rows/{number}": rows.tobytes() for number, rows in enumerate(self._rows)}
        arrays |= {f"keys/{number}": keys.tobytes() for number, keys in enumerate(self._keys)}
        return {name: getattr(self, f"_{name}").tolist() for name in names}, arrays

    def load(self, head: Mapping[str, Sequence[int]], arrays: Mapping[str, bytes]) -> None:
        """Take what ``dump`` gave of as many inputs.

        Raises:
            JoinStateError: It is damaged.
        """
        inputs = len(self._arrived)
        try:
            for name in ("arrived", "factors", "most_factors", "dropped_rows", "dropped_keys"):
                setattr(self, f"_{name}", np.array(head[name], np.int64).reshape(inputs))
            for number in range(inputs):
                self._rows[number] = np.frombuffer(arrays[f"rows/{number}"], np.int64).reshape(-1, inputs)
                self._keys[number] = np.frombuffer(arrays[f"keys/{number}"], np.int64)
        except (KeyError, ValueError, TypeError) as error:
            raise JoinStateError(f"a saved monitor of lags cannot be read: {error}") from error

    def _observe(self, items: NDArray[np.void]) -> None:
        inputs = len(self._arrived)
        is_of = items["input"][:, None] == np.arange(inputs)
        counts = self._arrived + np.cumsum(is_of, axis=0)
        for number in range(inputs):
            own = is_of[:, number]
            if own.any():
                self._note(number, items[own], counts[own])
        self._arrived = self._arrived + is_of.sum(axis=0)

    def _note(self, number: int, items: NDArray[np.void], counts: NDArray[np.int64]) -> None:
        """Note arrivals of one input; of what was noted before, what its factor can still reach is kept."""
        most = np.maximum.accumulate(np.append(self._most_factors[number], items["factor"]))[1:]
        dropped = max(int(self._dropped_rows[number]), int((counts[:, number] - most - 2).max()))
        rows = np.concatenate([self._rows[number], counts])
        self._rows[number] = rows[dropped - int(self._dropped_rows[number]) :]
        self._dropped_rows[number], self._most_factors[number] = dropped, most[-1]
        self._factors[number] = items["factor"][-1]
        self._keys[number] = np.sort(np.concatenate([self._keys[number], items["key"]]), kind="stable")

    def _rank(self, number: int) -> int:
        """How many of the lowest keys of an input are known for good."""
        return int(self._arrived[number] - self._factors[number])

    def _rank_key(self, number: int) -> int:
        """The last of those keys."""
        place = self._rank(number) - 1 - int(self._dropped_keys[number])
        return int(self._keys[number][max(place, 0)])

    def _forget_keys(self) -> None:
        """Count keys that every input has passed in place of keeping them; what the largest factor reaches is kept."""
        ranks = self._arrived - self._most_factors
        if (ranks <= 0).any():
            return
        lowest = min(
            int(keys[max(int(rank) - 1 - int(dropped), 0)])
            for keys, rank, dropped in zip(self._keys, ranks, self._dropped_keys, strict=True)
        )
        for number, keys in enumerate(self._keys):
            passed = int(np.searchsorted(keys, lowest, side="left"))
            self._keys[number] = keys[passed:]
            self._dropped_keys[number] += passed

"""Lags between inputs, measured as they arrive: the number of arrivals by which an input leads another.

Source: data-driven memory management for stream joins, sections 2.2 and 3.3 of the specification. The definition needs
future arrivals; the known lag is the one ``k_j`` arrivals of the other input ago, at its last arrival that no later one
can precede.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinStateError
from literature.kernels.unsynchronised.tables import ARRIVAL

_FORGETTING = 1024  # arrivals; at fixed places, so that results do not depend on cuts even if factors are too small


class LagMonitor:
    """Lags between all pairs of inputs; they do not depend on how items are cut into calls.

    Args:
        inputs: Number of inputs.
    """

    def __init__(self, inputs: int) -> None:
        self._arrived = np.zeros(inputs, np.int64)
        self._factors = np.zeros(inputs, np.int64)  # last used
        self._most_factors = np.zeros(inputs, np.int64)
        self._dropped_rows = np.zeros(inputs, np.int64)
        self._rows = [np.zeros((0, inputs), np.int64) for _ in range(inputs)]  # arrivals of all, at each own arrival
        self._dropped_keys = np.zeros(inputs, np.int64)
        self._keys = [np.zeros(0, np.int64) for _ in range(inputs)]  # ascending

    def observe(self, items: NDArray[np.void]) -> None:
        """Note items that a monitor of disorder has completed."""
        items = items[items["kind"] == ARRIVAL]
        first = _FORGETTING - int(self._arrived.sum()) % _FORGETTING
        for part in np.split(items, range(first, len(items), _FORGETTING)):
            self._observe(part)
            if int(self._arrived.sum()) % _FORGETTING == 0:
                self._forget_keys()

    def lags(self) -> NDArray[np.float64]:
        """(inputs, inputs): ``L[i, j]`` arrivals of i by which i leads j; negative: i lags; NaN: not known yet.

        The value is an upper bound where i may still bring keys that j has passed.
        """
        inputs = len(self._arrived)
        lags = np.full((inputs, inputs), np.nan)
        for other in range(inputs):
            rank = self._rank(other)
            if rank <= 0:
                continue
            row = max(rank - 1 - int(self._dropped_rows[other]), 0)
            for number in range(inputs):
                passed = np.searchsorted(self._keys[number], self._rank_key(other), side="right")
                lags[number, other] = self._rows[other][row, number] - self._dropped_keys[number] - passed
        np.fill_diagonal(lags, 0)
        return lags

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and arrays by name."""
        names = ("arrived", "factors", "most_factors", "dropped_rows", "dropped_keys")
        arrays = {f"rows/{number}": rows.tobytes() for number, rows in enumerate(self._rows)}
        arrays |= {f"keys/{number}": keys.tobytes() for number, keys in enumerate(self._keys)}
        return {name: getattr(self, f"_{name}").tolist() for name in names}, arrays

    def load(self, head: Mapping[str, Sequence[int]], arrays: Mapping[str, bytes]) -> None:
        """Load a state that ``dump`` returned for the same number of inputs.

        Raises:
            JoinStateError: The state is damaged.
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
            is_of_input = is_of[:, number]
            if is_of_input.any():
                self._note(number, items[is_of_input], counts[is_of_input])
        self._arrived = self._arrived + is_of.sum(axis=0)

    def _note(self, number: int, items: NDArray[np.void], counts: NDArray[np.int64]) -> None:
        """Note arrivals of one input; earlier rows are kept as far as its factor can reach back."""
        most = np.maximum.accumulate(np.append(self._most_factors[number], items["factor"]))[1:]
        dropped = max(int(self._dropped_rows[number]), int((counts[:, number] - most - 2).max()))
        rows = np.concatenate([self._rows[number], counts])
        self._rows[number] = rows[dropped - int(self._dropped_rows[number]) :]
        self._dropped_rows[number], self._most_factors[number] = dropped, most[-1]
        self._factors[number] = items["factor"][-1]
        self._keys[number] = np.sort(np.concatenate([self._keys[number], items["key"]]), kind="stable")

    def _rank(self, number: int) -> int:
        """The number of lowest keys of an input that later arrivals cannot change."""
        return int(self._arrived[number] - self._factors[number])

    def _rank_key(self, number: int) -> int:
        """The highest of the keys counted by ``_rank``."""
        place = self._rank(number) - 1 - int(self._dropped_keys[number])
        return int(self._keys[number][max(place, 0)])

    def _forget_keys(self) -> None:
        """Replace keys that every input has passed by their number; keys within the largest factor are kept."""
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

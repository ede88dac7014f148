"""Columns of the input and output of unsynchronised joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.errors import JoinRefused
from literature.kernels.unsynchronised.tables import ARRIVAL, CLOSING, FOREVER, ITEM, NEVER

_LARGEST_EXACT = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Arrivals of all inputs, in order.

    Attributes:
        inputs: uint8: input of each arrival.
        keys: int64; ignored in rows without a key. The lowest and the highest 64-bit integer are no keys.
        times_us: int64: time of each arrival.
        has_key: bool; None: each arrival has a key.
    """

    inputs: NDArray[np.uint8]
    keys: NDArray[np.int64]
    times_us: NDArray[np.int64]
    has_key: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int | None, int]]) -> Arrivals:
        """Columns of (input, key or None, time)."""
        arrivals = list(rows)
        return cls(
            inputs=np.array([number for number, _, _ in arrivals], np.uint8),
            keys=np.array([key or 0 for _, key, _ in arrivals], np.int64),
            times_us=np.array([time_us for *_, time_us in arrivals], np.int64),
            has_key=np.array([key is not None for _, key, _ in arrivals], np.bool_),
        )

    def __len__(self) -> int:
        return len(self.keys)

    def keyed_rows(self) -> NDArray[np.bool_]:
        """Flags of the rows that have a key."""
        has_key: NDArray[np.bool_] = (self.keys != NEVER) & (self.keys != FOREVER)
        return has_key if self.has_key is None else has_key & self.has_key

    def slice(self, first: int, last: int) -> Arrivals:
        """The arrivals from ``first`` to before ``last``."""
        return Arrivals(
            inputs=self.inputs[first:last],
            keys=self.keys[first:last],
            times_us=self.times_us[first:last],
            has_key=None if self.has_key is None else self.has_key[first:last],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations:
    """Results of some arrivals.

    Attributes:
        members: int64 (results, inputs): sequence numbers of each combination's arrivals; they count the arrivals of
            all inputs from 0, including those without a key.
        times_us: int64: time at which each combination was emitted.
        late: int64: sequence numbers of arrivals with keys that their input had closed; they may have missed results.
        keyless: int64: sequence numbers of arrivals without a key; they joined nothing.
        resident: int64 (items, inputs): arrivals in each buffer after each item; no rows unless traced.
        predicted: int64 (items, inputs): slots by the memory model after each item; no rows unless traced.
    """

    members: NDArray[np.int64]
    times_us: NDArray[np.int64]
    late: NDArray[np.int64]
    keyless: NDArray[np.int64]
    resident: NDArray[np.int64]
    predicted: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[Combinations], inputs: int) -> Combinations:
        """Several results as one, in order."""
        none = np.zeros((0, inputs), np.int64)
        flat = none[:, 0]
        return cls(
            members=np.concatenate([none, *(part.members for part in parts)]),
            times_us=np.concatenate([flat, *(part.times_us for part in parts)]),
            late=np.concatenate([flat, *(part.late for part in parts)]),
            keyless=np.concatenate([flat, *(part.keyless for part in parts)]),
            resident=np.concatenate([none, *(part.resident for part in parts)]),
            predicted=np.concatenate([none, *(part.predicted for part in parts)]),
        )


def integer_keys(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Keys, and flags of the rows with a key, from a column of integers, or of floats in which NaN means no key.

    Raises:
        JoinRefused: The column has another type, or values that are not integers within 64 bits.
    """
    if values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < np.dtype(np.int64).itemsize):
        return values.astype(np.int64), np.ones(len(values), np.bool_)
    if values.dtype.kind != "f":
        raise JoinRefused(f"a key is a signed integer within 64 bits; the column has the type {values.dtype}")
    has_key = ~np.isnan(values)
    key_values = values[has_key]
    if not (np.abs(key_values) <= _LARGEST_EXACT).all() or not (key_values == np.floor(key_values)).all():
        raise JoinRefused("a key is an integer; the column has other numbers")
    return np.where(has_key, values, 0).astype(np.int64), has_key


def items_of(arrivals: Arrivals, first: int) -> NDArray[np.void]:
    """Items of the arrivals that have a key; a monitor writes closing keys and factors into them.

    Args:
        arrivals: Arrivals.
        first: Sequence number of the first arrival.
    """
    rows = np.flatnonzero(arrivals.keyed_rows())
    items = np.zeros(len(rows), ITEM)
    items["kind"] = ARRIVAL
    items["input"] = arrivals.inputs[rows]
    items["key"] = arrivals.keys[rows]
    items["time"] = arrivals.times_us[rows]
    items["sequence"] = first + rows
    items["closing"] = NEVER
    return items


def closing_item(number: int, closing: int, factor: int, time_us: int) -> NDArray[np.void]:
    """One item, which closes the keys of an input up to ``closing``."""
    item = np.zeros(1, ITEM)
    item["kind"], item["input"], item["closing"], item["factor"] = CLOSING, number, closing, factor
    item["time"] = time_us
    return item

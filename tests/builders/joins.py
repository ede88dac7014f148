"""Generated inputs of joins for tests and benchmarks.

Source: the reference generators of section 5 of the specification of punctuation-aware joins. Each stream has events
with exponential gaps and picks keys evenly among those active; punctuations close the lowest active key. Keys are
integers in two's complement; every closing is of a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joins.items import Item, ItemColumns

_USELESS = 1 << 40  # keys that never occur


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedStream:
    """Parameters of one generated stream.

    Attributes:
        active: Number of keys that are active at a time.
        spacing: Events from punctuation to punctuation; 0: no punctuations.
        shift: Number of keys by which the stream leads the others; negative: it lags.
        drifts: Whether the gaps between punctuations are exponential, so that streams drift apart (G-indep), rather
            than even (G-sync).
        is_useless: Whether the keys that it closes never occur.
        advance: Events after which the lowest active key is given up; 0: at each punctuation.
    """

    gap_us: float = 2_000.0
    active: int = 10
    spacing: int = 40
    shift: int = 0
    drifts: bool = False
    is_useless: bool = False
    advance: int = 0


def generated(streams: Sequence[GeneratedStream], seconds: float, seed: int) -> ItemColumns:
    """Items of streams, by time; equal seeds give equal items."""
    chance = np.random.default_rng(seed)
    parts = [_items(chance, number, stream, seconds) for number, stream in enumerate(streams)]
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows["time"], kind="stable")]
    return ItemColumns(
        kinds=np.ascontiguousarray(rows["kind"]),
        inputs=np.ascontiguousarray(rows["input"]),
        keys=np.ascontiguousarray(rows["key"]).view(np.uint64),
        times_us=np.ascontiguousarray(rows["time"]),
    )


_ROW = np.dtype([("kind", np.uint8), ("input", np.uint8), ("key", np.int64), ("time", np.int64)])


def _items(chance: np.random.Generator, number: int, stream: GeneratedStream, seconds: float) -> NDArray[np.void]:
    most = int(seconds * 1e6 / stream.gap_us * 1.5) + 100
    times = np.cumsum(chance.exponential(stream.gap_us, most)).astype(np.int64)
    times = times[times < seconds * 1e6]
    behind = _punctuation_places(chance, stream, len(times))
    steps = np.arange(stream.advance, len(times), stream.advance) if stream.advance else behind
    lowest = np.searchsorted(steps, np.arange(len(times)), side="right") + stream.shift
    events = np.zeros(len(times), _ROW)
    events["kind"], events["input"], events["time"] = Item.EVENT, number, times
    events["key"] = lowest + chance.integers(0, stream.active, len(times))
    closings = np.zeros(len(behind), _ROW)
    closings["kind"], closings["input"] = Item.CLOSING, number
    closings["time"] = times[behind - 1]
    each = np.searchsorted(steps, behind, side="right") - 1 if stream.advance else np.arange(len(behind))
    closings["key"] = each + stream.shift + (_USELESS if stream.is_useless else 0)
    both = np.concatenate([events, closings])
    places = np.concatenate([np.arange(len(times), dtype=np.float64), behind - 0.5])
    return both[np.argsort(places, kind="stable")]


def _punctuation_places(chance: np.random.Generator, stream: GeneratedStream, events: int) -> NDArray[np.int64]:
    """For each punctuation, the place of the event that it precedes."""
    if not stream.spacing:
        return np.zeros(0, np.int64)
    count = events // stream.spacing + 2
    if stream.drifts:
        places = np.cumsum(np.maximum(1, np.rint(chance.exponential(stream.spacing, count))))
    else:
        places = np.rint(stream.spacing * (np.arange(1, count + 1) + chance.uniform(-0.5, 0.5, count)))
    return places[(places >= 1) & (places <= events)].astype(np.int64)

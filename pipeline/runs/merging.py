"""Merging of events from several files by time, without loading all events at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from streams import EventBatch

BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Some events of one file, in file order, for one shard.

    Attributes:
        first_us: Time of the earliest event, by which portions are sorted.
        place: Number of the file, offset of the part in the file, and row of the first event in the part.
    """

    first_us: int
    place: tuple[int, int, int]
    events: EventBatch


def in_order(portions: Iterable[Portion], *, is_ordered: bool) -> Iterator[EventBatch]:
    """Yield the events of portions sorted by time, about ``BATCH_ROWS`` at a time. Equal times are sorted by place.

    The portions must be sorted by ``first_us``. Portions that overlap in time, such as those of an unsorted file, are
    in memory together. With ``is_ordered``, the portions must be sorted by place, and times are ignored.
    """
    waiting: list[Portion] = []
    for portion in portions:
        if sum(len(queued.events) for queued in waiting) >= BATCH_ROWS:
            ready, waiting = (waiting, []) if is_ordered else _divided(waiting, portion.first_us)
            yield from _merged(ready, is_ordered=is_ordered)
        waiting.append(portion)
    yield from _merged(waiting, is_ordered=is_ordered)


def _divided(portions: list[Portion], border_us: int) -> tuple[list[Portion], list[Portion]]:
    ready: list[Portion] = []
    later: list[Portion] = []
    for portion in portions:
        is_before = portion.events.time_us < border_us
        for target, rows in ((ready, np.flatnonzero(is_before)), (later, np.flatnonzero(~is_before))):
            if len(rows):
                target.append(replace(portion, events=portion.events.take(rows)))
    return ready, later


def _merged(portions: list[Portion], *, is_ordered: bool) -> Iterator[EventBatch]:
    if not portions:
        return
    by_place = sorted(portions, key=lambda portion: portion.place)
    events = EventBatch.joined([portion.events for portion in by_place])
    times_us = events.time_us
    if is_ordered or np.all(times_us[1:] >= times_us[:-1]):
        yield events
    else:
        yield events.take(np.argsort(times_us, kind="stable"))

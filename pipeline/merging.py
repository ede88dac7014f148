"""Events of several files in the order of their times, without holding all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from streams import EventBatch

BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Events of one file, in its order.

    Attributes:
        first_us: Time of the earliest; no later portion has an earlier one, where portions are ordered by it.
        place: Number of the file, where in it the portion's part begins, and the part's row that is its first event.
        events: They.
    """

    first_us: int
    place: tuple[int, int, int]
    events: EventBatch


def in_order(portions: Iterable[Portion], *, is_ordered: bool) -> Iterator[EventBatch]:
    """The events by time, those of one time by their places; about ``BATCH_ROWS`` at a time.

    Of portions that overlap in time, as those of an unordered file do, as much is held as overlaps.

    Args:
        portions: By ``first_us``; where ``is_ordered``, by place.
        is_ordered: The order of the places counts, whatever the times.
    """
    waiting: list[Portion] = []
    for portion in portions:
        if sum(len(one.events) for one in waiting) >= BATCH_ROWS:
            ready, waiting = (waiting, []) if is_ordered else _divided(waiting, portion.first_us)
            yield from _merged(ready, is_ordered=is_ordered)
        waiting.append(portion)
    yield from _merged(waiting, is_ordered=is_ordered)


def _divided(portions: list[Portion], border_us: int) -> tuple[list[Portion], list[Portion]]:
    """What is before a time, and what is not."""
    ready: list[Portion] = []
    rest: list[Portion] = []
    for portion in portions:
        is_before = portion.events.time_us < border_us
        for found, rows in ((ready, np.flatnonzero(is_before)), (rest, np.flatnonzero(~is_before))):
            if len(rows):
                found.append(replace(portion, events=portion.events.take(rows)))
    return ready, rest


def _merged(portions: list[Portion], *, is_ordered: bool) -> Iterator[EventBatch]:
    if not portions:
        return
    by_place = sorted(portions, key=lambda one: one.place)
    events = EventBatch.joined([one.events for one in by_place])
    times_us = events.time_us
    if is_ordered or np.all(times_us[1:] >= times_us[:-1]):
        yield events
    else:
        yield events.take(np.argsort(times_us, kind="stable"))

"""The timekeeper: tells every shard how far the event time of a stream has come, by records in the log.

A shard knows the times of its own events only. The timekeeper appends ``tick`` records with the newest time of the
whole stream, so that time passes in shards without events, too; and where a stream is quiet, with the time that has
passed on the wall clock since. As all of it is in the log, a replay gives the same. Ticks that come twice, or late,
change nothing: so several timekeepers do no harm.

The time of a derived stream follows from that of the streams that feed it, so it is the sink that ticks it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import structlog

from service.errors import LogResharding, RecordFormatError, StoreUnavailable
from service.stores import EventLog, Registry, StreamTimes, StreamTimesStore
from shards import Feed, Feeds
from streams import LATEST_US, StreamDeclaration, Tick

PERIOD_S = 1.0

_SECOND_US = 1_000_000
_QUIET_US = _SECOND_US  # of a stream that feeds a derived one
_LONGEST_PAUSE_US = 60 * _SECOND_US


class TimedStores(Protocol):
    """Those of the stores that the timekeeper needs."""

    @property
    def log(self) -> EventLog:
        """Where ticks go."""
        ...

    @property
    def registry(self) -> Registry:
        """Knows the streams."""
        ...

    @property
    def stream_times(self) -> StreamTimesStore:
        """Knows how far they are."""
        ...


class Timekeeper:
    """Appends ticks for streams that feed derived ones or declare ``lateness``, ``idle_timeout`` or ``quiet_after``."""

    def __init__(self, stores: TimedStores) -> None:
        self._stores = stores
        self._log = structlog.get_logger(__name__)

    def run(self, stop: threading.Event) -> None:
        """Look once a second, until told to stop; while Redis does not answer, nothing is told."""
        while not stop.wait(PERIOD_S):
            try:
                self.look()
            except (LogResharding, StoreUnavailable, RecordFormatError) as error:
                self._log.warning("time-not-told", code=error.code, error=error.message)

    def look(self) -> Mapping[str, Tick]:
        """Append the ticks that are due now; returns them by stream."""
        streams = self._stores.registry.streams()
        roots = self._roots(streams)
        feeding = frozenset().union(*roots.values())
        declared = [one for one in streams if needs_ticks(one, is_feeding=one.name in feeding)]
        if not declared:
            return {}
        now_us, times = self._stores.stream_times.read()
        known = [(stream, times[stream.name]) for stream in declared if stream.name in times]
        found = ((one.name, due_tick(one, seen, now_us, is_feeding=one.name in feeding)) for one, seen in known)
        due = {name: tick for name, tick in found if tick is not None}
        ticked = {name: seen.ticked_us for name, seen in times.items()} | {
            name: one.time_us for name, one in due.items()
        }
        due |= silent_ticks(roots.values(), {name: us for name, us in ticked.items() if us is not None})
        layout = self._stores.log.layout
        return {name: tick for name, tick in due.items() if self._stores.stream_times.tick(name, tick, layout)}

    def _roots(self, streams: Sequence[StreamDeclaration]) -> Mapping[str, frozenset[str]]:
        """Of each derived stream that is fed the posted streams that its events are made from in the end."""
        if not any(stream.derived for stream in streams):
            return {}
        feeders = self._stores.registry.feeders()
        feeds = Feeds({(one.stream, one.route, one.kind, one.name): (Feed(stream=one.into),) for one in feeders})
        roots: dict[str, frozenset[str]] = {}
        for target in feeds.order:
            roots[target] = frozenset().union(*(roots.get(one, {one}) for one in feeds.sources[target]))
        return roots


def silent_ticks(roots: Iterable[Collection[str]], ticked_us: Mapping[str, int]) -> dict[str, Tick]:
    """Ticks for streams without any event, so that derived streams do not wait for them.

    Args:
        roots: Of each derived stream the posted streams that its events are made from.
        ticked_us: The latest tick of those that have had events.
    """
    found: dict[str, int] = {}
    for names in roots:
        newest = max((ticked_us[name] for name in names if name in ticked_us), default=None)
        for name in names:
            if newest is not None and name not in ticked_us:
                found[name] = max(newest, found.get(name, newest))
    return {name: Tick(time_us=time_us, cause="events") for name, time_us in found.items()}


def needs_ticks(stream: StreamDeclaration, *, is_feeding: bool = False) -> bool:
    """Whether all shards are to know the time of a stream.

    Args:
        stream: Its declaration.
        is_feeding: Whether derived events are made of its events.
    """
    if stream.derived:
        return False
    return is_feeding or any(value is not None for value in (stream.lateness, stream.idle_timeout, stream.quiet_after))


def due_tick(stream: StreamDeclaration, times: StreamTimes, now_us: int, *, is_feeding: bool = False) -> Tick | None:
    """What every shard should be told now, if anything.

    Args:
        stream: Its declaration.
        times: What is known of its time.
        now_us: The clock by which ``times.appended_us`` was taken.
        is_feeding: Whether derived events are made of its events.
    """
    newest_us, ticked_us = times.newest_us, times.ticked_us
    if ticked_us is None or newest_us > ticked_us:
        return Tick(time_us=newest_us, cause="events")
    quiet_us, pause_us = stream.quiet_after_us, now_us - times.appended_us
    if is_feeding and stream.lateness is None and ticked_us == newest_us < LATEST_US and pause_us >= _QUIET_US:
        return Tick(time_us=newest_us + 1, cause="clock")  # what was derived from its last event is complete
    if quiet_us is None or pause_us < quiet_us:
        return None
    time_us = min(newest_us + pause_us, now_us, LATEST_US)
    step_us = min(max(quiet_us // 4, _SECOND_US), _LONGEST_PAUSE_US)
    is_first = ticked_us <= newest_us + 1
    return Tick(time_us=time_us, cause="clock") if time_us >= ticked_us + (1 if is_first else step_us) else None

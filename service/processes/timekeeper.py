"""The timekeeper: advances the event time of streams in every shard by ``tick`` records in the log.

A shard knows only the times of its own events. A tick contains the newest time of the whole stream, so event time also
advances in shards without events. For a quiet stream, the tick adds the wall-clock time that has passed since the
newest event. All ticks are in the log, so a replay gives the same results. Repeated or late ticks change nothing, so
several timekeepers may run.

While a stream has no event at all, its time is unknown, because other streams do not determine it. With
``quiet_after``, the clock determines it. The sink appends the ticks of a derived stream, because its time follows from
the streams that feed it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import structlog

from service.errors import LogResharding, RecordFormatError, StoreUnavailable
from service.runtime import Stores
from service.stores import StreamTimes
from streams import LATEST_US, StreamDeclaration, Tick

PERIOD_S = 1.0

_SECOND_US = 1_000_000
_QUIET_US = _SECOND_US  # for a stream that feeds a derived stream
_LONGEST_PAUSE_US = 60 * _SECOND_US
_UNKNOWN = StreamTimes(newest_us=None, appended_us=None, ticked_us=None)


class Timekeeper:
    """Appends ticks, which advance the event time of a stream in all shards.

    A stream needs ticks if it declares ``lateness``, ``idle_timeout`` or ``quiet_after``. It also needs ticks if a
    stream is derived from it, or if patterns read it by a further key. Derived streams themselves get no ticks.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._empty_since_us: dict[tuple[str, str], int] = {}  # when a declared stream was first seen without events
        self._log = structlog.get_logger(__name__)

    def run(self, stop: threading.Event) -> None:
        """Append due ticks once a second until ``stop`` is set. While Redis does not answer, no ticks are appended."""
        while not stop.wait(PERIOD_S):
            try:
                self.look()
            except (LogResharding, StoreUnavailable, RecordFormatError) as error:
                self._log.warning("time-not-told", code=error.code, error=error.message)

    def look(self) -> Mapping[str, Tick]:
        """Append the ticks that are due now. Return them by the name of their stream."""
        sinces, streams = self._stores.stream_times.sinces(), self._stores.registry.streams()
        roots = self._roots(streams)
        feeding = frozenset().union(*roots.values())
        shared = feeding | self._stores.log.routed()
        declared = [stream for stream in streams if needs_ticks(stream, is_shared=stream.name in shared)]
        if not declared:
            return {}
        now_us, times = self._stores.stream_times.read()
        all_times = {stream.name: times.get(stream.name, _UNKNOWN) for stream in declared}
        empty = [
            (name, sinces.get(name, "")) for name, last_times in all_times.items() if last_times.appended_us is None
        ]
        self._empty_since_us = {entry: self._empty_since_us.get(entry, now_us) for entry in empty}
        all_times |= {name: replace(all_times[name], appended_us=us) for (name, _), us in self._empty_since_us.items()}
        derived = {
            name: [times[target] for target, source_names in roots.items() if name in source_names and target in times]
            for name in feeding
        }
        ticks = (
            (stream.name, due_tick(stream, all_times[stream.name], now_us, derived=derived.get(stream.name)))
            for stream in declared
        )
        due = {name: record for name, record in ticks if record is not None}
        tick, layout = self._stores.stream_times.tick, self._stores.log.layout
        return {name: record for name, record in due.items() if tick(name, record, layout, since=sinces.get(name, ""))}

    def _roots(self, streams: Sequence[StreamDeclaration]) -> Mapping[str, frozenset[str]]:
        """Return the posted streams from which each derived stream is derived, directly or through other streams.

        If no active operator feeds a derived stream, its former operators count.
        """
        derived = [stream.name for stream in streams if stream.derived]
        sources: defaultdict[str, set[str]] = defaultdict(set)
        for feeder in self._stores.registry.timing_feeders() if derived else ():
            sources[feeder.into].add(feeder.stream)
        return {name: _roots_of(name, sources) for name in derived if name in sources}


def _roots_of(target: str, sources: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the posted streams from which a stream is derived, directly or through other streams.

    ``sources`` may contain cycles, because it includes former operators.
    """
    reached = {target}
    waiting = [target]
    while waiting:
        new = {source for source in sources.get(waiting.pop(), ()) if source not in reached}
        reached |= new
        waiting.extend(new)
    return frozenset(stream for stream in reached if stream not in sources)


def needs_ticks(stream: StreamDeclaration, *, is_shared: bool = False) -> bool:
    """Return whether the event time of a stream has to advance in all shards.

    ``is_shared`` means that a derived stream or a further key depends on this time.
    """
    if stream.derived:
        return False
    return is_shared or any(value is not None for value in (stream.lateness, stream.idle_timeout, stream.quiet_after))


def due_tick(
    stream: StreamDeclaration, times: StreamTimes, now_us: int, *, derived: Sequence[StreamTimes] | None = None
) -> Tick | None:
    """Return the tick that is due for a stream now, or None.

    A stream with ``quiet_after`` also has a time before its first event: ``quiet_after`` before now. In this case,
    ``times.appended_us`` is the time at which a timekeeper first saw the empty stream. ``derived`` has the times of the
    streams that are derived from this stream through the log, or is None if no stream is.
    """
    newest_us, ticked_us = times.newest_us, times.ticked_us
    if newest_us is not None and (ticked_us is None or newest_us > ticked_us):
        return Tick(time_us=newest_us, cause="events")
    quiet_us, pause_us = stream.quiet_after_us, now_us - (now_us if times.appended_us is None else times.appended_us)
    if (
        derived is not None
        and stream.lateness is None
        and ticked_us is not None
        and _is_resting(times, derived, now_us)
    ):
        return Tick(time_us=ticked_us + 1, cause="clock")  # everything derived so far is complete
    if quiet_us is None or pause_us < quiet_us:
        return None
    time_us = now_us - quiet_us if newest_us is None else _passed(newest_us, times, now_us)
    step_us = min(max(quiet_us // 4, _SECOND_US), _LONGEST_PAUSE_US)
    is_first = newest_us is not None and ticked_us is not None and ticked_us <= newest_us + 1
    is_due = ticked_us is None or time_us >= ticked_us + (1 if is_first else step_us)
    return Tick(time_us=time_us, cause="clock") if is_due else None


def _passed(newest_us: int, times: StreamTimes, now_us: int) -> int:
    """Return the current event time of a quiet stream, at most ``now_us``.

    This is the newest event time, plus the time since it was reached. Later events with older times do not count.
    """
    risen_us = times.appended_us if times.risen_us is None else times.risen_us
    return min(newest_us + now_us - (now_us if risen_us is None else risen_us), now_us, LATEST_US)


def _is_resting(times: StreamTimes, derived: Sequence[StreamTimes], now_us: int) -> bool:
    """Return whether a quiet stream needs one more tick, because events at the time of its last tick may still wait.

    Such events may wait if the newest event of the stream, or of a stream derived from it, has exactly this time. A
    derived event has this time if an event was late, or if a deadline was due at the tick.
    """
    waiting = [stream_times for stream_times in (times, *derived) if stream_times.newest_us == times.ticked_us]
    is_quiet = all(
        stream_times.appended_us is not None and now_us - stream_times.appended_us >= _QUIET_US
        for stream_times in (times, *waiting)
    )
    return bool(waiting) and is_quiet and times.newest_us is not None and times.newest_us < LATEST_US

"""Counts of results by hour of event time and operator, which are written by the scripts that write the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import orjson

from service.stores.connection import PREFIX, Client
from shards import RESULT_KINDS, OutputRow, ResultKind
from streams import EventRejected, parse_time

KEPT_HOURS: Final = 31 * 24
HOUR_US: Final = 3_600_000_000

_HOUR = len("2026-01-01T00")
_USUAL_HOURS = 48
_MOST_COUNTS = 20_000  # in one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class HourCount:
    """The number of an operator's results with event times in the hour that starts at ``hour_us``.

    ``subject`` is the name of the operator.
    """

    hour_us: int
    stream: str
    subject: str
    count: int


def hours_key(kind: ResultKind) -> str:
    """Return the key of the Redis sorted set with the hours for which results of a kind are counted."""
    return f"{PREFIX}{kind.plural}:hours"


def by_hour(kind: ResultKind, rows: Sequence[OutputRow]) -> list[tuple[int, str, int]]:
    """Count results by hour and operator. Return triples of hour, counter and count, as the scripts need them.

    ``rows`` are the results. If results of this kind are not counted by hour, return an empty list.
    """
    if not kind.timed_by:
        return []
    name = kind.timed_by
    counts = Counter((str(orjson.loads(row.body).get(name))[:_HOUR], row.stream, row.subject) for row in rows)
    return [
        (hour, orjson.dumps([stream, subject]).decode(), count)
        for (text, stream, subject), count in counts.items()
        if (hour := _hour(text)) is not None
    ]


def _hour(text: str) -> int | None:
    """Return the hours since the epoch for a text such as ``2026-01-01T00``, or None if it is not a time."""
    try:
        return parse_time(f"{text}:00:00Z") // HOUR_US
    except EventRejected:
        return None


class HourlyCounts:
    """Reads the hourly counts of results."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(
        self, kind: ResultKind, criteria: Mapping[str, str | None], since_us: int | None, until_us: int
    ) -> tuple[list[HourCount], int | None]:
        """Return the counts from ``since_us`` to ``until_us``, oldest first, and the time from which they are complete.

        ``criteria`` selects counts by ``stream`` and ``subject``. None selects any value. If ``since_us`` is None, the
        range is the 48 hours up to the end of the newest hour with selected counts. At most 20,000 counts are read. If
        there are more, the oldest hours are left out, and the second result is the start of the oldest hour returned.
        """
        key = hours_key(kind)
        last = -(-until_us // HOUR_US) - 1
        first = None if since_us is None else since_us // HOUR_US
        counts: list[HourCount] = []
        oldest = "-inf" if first is None else first
        for hour in map(int, cast("list[bytes]", self._client.zrevrangebyscore(key, last, oldest))):
            if counts and first is None:
                first = counts[0].hour_us // HOUR_US - _USUAL_HOURS + 1
            if first is not None and hour < first:
                break
            raw = cast("dict[bytes, bytes]", self._client.hgetall(f"{key}:{hour}"))
            if len(counts) + len(raw) > _MOST_COUNTS:
                first = hour + 1
                break
            counts += [
                HourCount(hour_us=hour * HOUR_US, stream=stream, subject=subject, count=int(count))
                for (stream, subject), count in ((orjson.loads(name), count) for name, count in sorted(raw.items()))
                if criteria.get("stream") in (None, stream) and criteria.get("subject") in (None, subject)
            ]
        if counts and first is None:
            first = counts[0].hour_us // HOUR_US - _USUAL_HOURS + 1
        return sorted(counts, key=lambda hour_count: hour_count.hour_us), None if first is None else first * HOUR_US

    def forget(self, stream: str) -> None:
        keys = [hours_key(kind) for kind in RESULT_KINDS.values() if kind.timed_by]
        hours = [(key, cast("list[bytes]", self._client.zrange(key, 0, -1))) for key in keys]
        places = [f"{key}:{int(hour)}" for key, key_hours in hours for hour in key_hours]
        with self._client.pipeline(transaction=False) as calls:
            for place in places:
                calls.hkeys(place)
            for place, names in zip(places, calls.execute(), strict=True):
                if stream_names := [name for name in names if orjson.loads(name)[0] == stream]:
                    self._client.hdel(place, *stream_names)
                if len(stream_names) == len(names):
                    key, _, hour = place.rpartition(":")
                    self._client.zrem(key, hour)
                    if self._client.exists(place):  # a result was counted in between
                        self._client.zadd(key, {hour: int(hour)})

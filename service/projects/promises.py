"""Promises in a run: after a certain event time, no event has a key in a certain range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from streams import EARLIEST_US, LATEST_US, ForestallError, KeyRange, Punctuation, parse_time

_SECOND_US = 1_000_000
_MEMBERS = ("range", "by", "time")
_FORM = 'an object such as {"range": {"from": 1, "to": 50}, "time": "2026-03-02T09:00:00Z"}, perhaps with "by"'


class PromiseRefused(ForestallError, code="promise-refused", fault="caller"):
    """A promise is invalid."""


def read_promises(lines: bytes) -> Iterator[Punctuation]:
    """Yield the promises in JSON lines. Raises ``PromiseRefused`` with the number of an invalid line and the reason."""
    for number, line in enumerate(lines.splitlines(), start=1):
        if line.strip():
            try:
                yield read_promise(orjson.loads(line))
            except (orjson.JSONDecodeError, PromiseRefused) as error:
                raise PromiseRefused(f"line {number}: {error}") from error


def read_promise(value: Any) -> Punctuation:
    """Read a promise about a range of keys from JSON, as in the API.

    ``time`` is required, as RFC 3339 or in seconds.
    """
    if not isinstance(value, Mapping) or not {"range", "time"} <= value.keys() <= {*_MEMBERS}:
        raise PromiseRefused(f"a promise in a run is {_FORM}; others end transactions, which a run does at its end")
    by, time = value.get("by") or "", value["time"]
    if not isinstance(by, str):
        raise PromiseRefused(f"'by' of a promise is the name or the path of a key, got {by!r}")
    try:
        key_range = KeyRange.from_json(value["range"])
        when_us = parse_time(time) if isinstance(time, str) else round(float(time) * _SECOND_US)
    except (ForestallError, ValueError, TypeError, OverflowError) as error:
        raise PromiseRefused(f"{error}; a promise in a run is {_FORM}") from error
    if not EARLIEST_US <= when_us <= LATEST_US:
        raise PromiseRefused(f"the time of a promise is {time!r}, which is outside the years 1 to 9999")
    return Punctuation(range=key_range, by=by, time_us=when_us)

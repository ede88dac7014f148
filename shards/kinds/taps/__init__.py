"""Taps: operators that turn early terminations, timeouts or deviations of a stream into events."""

from shards.kinds.taps.kind import TapKind

"""Taps: operators that make events of early terminations, timeouts or deviations of a stream."""

from shards.kinds.taps.kind import TapKind

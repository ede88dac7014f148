"""Taps: results of patterns and constraints as events of derived streams."""

from shards.kinds.taps.kind import TapKind

"""Patterns as a kind of operator: the matcher of ``nfa`` under the constraints of the stream."""

from shards.kinds.patterns.host import PatternHost, PatternKind

__all__ = ["PatternHost", "PatternKind"]

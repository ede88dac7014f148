"""Baselines for punctuation-aware joins, in benchmarks and tests.

Purpose: WJoin and MWJoin, hash joins by windows that ignore closed keys. Promises: the results of ``WindowJoin`` on the
same events without closings, and counts of their costs.
"""

from literature.baselines.hash_window import HashWindowJoin, HashWindowStats

__all__ = ["HashWindowJoin", "HashWindowStats"]

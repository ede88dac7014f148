"""Joins that punctuation-aware ones are compared with, for benchmarks and tests.

Purpose: WJoin and MWJoin, hash joins by windows that ignore what inputs close. Promises: the results of ``WindowJoin``
on the same events without closings, and counts of what they cost.
"""

from literature.baselines.hash_window import HashWindowJoin, HashWindowStats

__all__ = ["HashWindowJoin", "HashWindowStats"]

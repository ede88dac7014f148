"""Comparison of Forestall with other engines: the same events, equivalent queries, equal answers, and their costs.

``scripts/bench peers`` (or ``make bench-peers``) sets up each peer in an environment of its own below ``.peers``, runs
every case on every engine that can state it, compares the answers, and writes a table, the raw results and pictures to
``benchmarks/peers/results``. ``docs/side-by-side.md`` describes the measurements.
"""

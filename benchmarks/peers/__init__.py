"""Comparison of Forestall with other engines: the same events, equivalent queries, equal answers, and their costs.

``scripts/bench peers`` (or ``make bench-peers``) sets up each peer in a separate environment below ``.peers``, runs
every case on every engine that can express it, and compares the answers. It writes a table, the raw results and plots
to ``benchmarks/peers/results``. ``docs/side-by-side.md`` describes the measurements.
"""

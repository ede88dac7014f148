"""The experiments of constraint-aware CEP (section 8). ``scripts/bench ccep`` reproduces all of them.

Each cell of the table is measured on the matcher, without constraints (R-CEP) and with constraints. ``occupancy``
computes the same figures a second time, by a replay of occupied pattern states that is independent of the matcher.
Figures are written to ``figures.json``, plots to ``plots``, and tables to ``benchmarks/RESULTS.md``.
"""

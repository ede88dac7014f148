"""The experiments of constraint-aware CEP (section 8), regenerated as a whole by ``scripts/bench ccep``.

Each cell of the table is measured on the matcher, without constraints (R-CEP) and with them, and computed a second
time by ``occupancy``, which replays which pattern states are occupied and knows nothing of the matcher. Figures go to
``figures.json``, pictures to ``plots``, tables to ``benchmarks/RESULTS.md``.
"""

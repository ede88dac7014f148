"""The experiments of constraint-aware CEP (section 8), regenerated as a whole by ``scripts/bench ccep``.

Each cell of the table is measured on the matcher, without constraints (R-CEP) and with them, and computed a second
time by ``occupancy``, a replay of occupied pattern states that is independent of the matcher. Figures are written to
``figures.json``, pictures to ``plots``, tables to ``benchmarks/RESULTS.md``.
"""

"""What Forestall costs and saves, as ratios within one run.

Each module is one experiment; ``make bench`` runs all of them, ``scripts/bench NAME`` one. Figures that were measured
stand in ``RESULTS.md`` beside this file, with the command that gave them.
"""

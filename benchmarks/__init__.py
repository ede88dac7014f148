"""Benchmarks of the costs and savings of Forestall, as ratios within one run.

Each module is one experiment; ``make bench`` runs all of them, ``scripts/bench NAME`` one. ``RESULTS.md`` in this
folder has the measured figures, with the commands that produced them.
"""

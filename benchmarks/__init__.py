"""Benchmarks of the costs and savings of Forestall, as ratios within one run.

Each module is one experiment; ``make bench`` runs all of them, ``scripts/bench NAME`` one. Measured figures are in
``RESULTS.md`` beside this file, with the commands that gave them.
"""

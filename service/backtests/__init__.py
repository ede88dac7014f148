"""Backtests: the results that a pattern would have had in the past.

``plans``, ``reports``, ``job`` and ``run`` run them, those of large histories in Spark; ``library`` and ``worker`` let
a service run them, one after the other, each in a process of its own. Spark is imported only where it runs.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

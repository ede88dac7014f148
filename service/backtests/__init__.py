"""Backtests: the results that patterns would have had in the past.

``plans``, ``reports``, ``job`` and ``run`` run backtests (large histories in Spark); ``library`` and ``worker`` serve
them for a service, one at a time, each in its own process. Spark is imported only where it runs.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

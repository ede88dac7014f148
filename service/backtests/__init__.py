"""Backtests: the results that patterns would have had in the past.

``plans``, ``reports``, ``job`` and ``run`` run a backtest, in Spark if the history is large. ``library`` and ``worker``
queue the backtests of a service and run them one at a time, each in its own process. Spark is imported only where it
runs.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

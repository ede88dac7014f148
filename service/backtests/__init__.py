"""Backtests, which compute the results that patterns would have had on past events.

``plans``, ``reports``, ``job`` and ``run`` run a backtest, in Spark if the history is large. ``library`` queues the
backtests of a service. ``worker`` runs them one at a time, each in its own process. Only processes that run Spark
import Spark.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

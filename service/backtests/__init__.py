"""Backtests: what a pattern would have found in the past.

``plans``, ``reports``, ``job`` and ``run`` do it, with Spark; ``library`` and ``worker`` let a service do it, one after
the other, each in a process of its own, and know nothing of Spark. What is exported here brings no Spark either.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

__all__ = ["BacktestDraft", "BacktestLibrary", "PatternChoice", "Pruning"]

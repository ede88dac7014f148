"""Backtests: the results that a pattern would have had in the past.

``plans``, ``reports``, ``job`` and ``run`` run them with Spark; ``library`` and ``worker`` let a service run them, one
after the other, each in a process of its own, and do not import Spark. Neither do the exports of this package.
"""

from service.backtests.library import BacktestDraft, BacktestLibrary, PatternChoice, Pruning

"""Costs and state sizes of joins, from rates: formulas, and estimates for a running join.

Purpose: the cost functions of punctuation-aware and of plain window joins, the purge threshold of least cost, and the
expected number of events in the state. Promises: pure functions of numbers, checked against simulation.
"""

from joins.costs.estimate import KeyRecord, StateEstimate, StateEstimator
from joins.costs.formulas import (
    InputRates,
    UnitCosts,
    best_purge_threshold,
    hash_window_cost,
    mean_stay_us,
    on_the_fly_share,
    punctuated_cost,
    purge_cost,
    purge_time_us,
    state_size,
    stay_case,
)

"""Cost functions of joins and estimates of their state, from rates.

Purpose: the costs of punctuation-aware and of plain window joins, the purge threshold of least cost, and the expected
number of events in the state. Promises: pure functions of numbers, checked against simulation.
"""

from literature.costs.estimate import StateEstimate as StateEstimate
from literature.costs.estimate import StateEstimator as StateEstimator
from literature.costs.formulas import InputRates as InputRates
from literature.costs.formulas import UnitCosts as UnitCosts
from literature.costs.formulas import best_purge_threshold as best_purge_threshold
from literature.costs.formulas import hash_window_cost as hash_window_cost
from literature.costs.formulas import on_the_fly_share as on_the_fly_share
from literature.costs.formulas import punctuated_cost as punctuated_cost
from literature.costs.formulas import purge_cost as purge_cost
from literature.costs.formulas import state_size as state_size

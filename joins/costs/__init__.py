"""The expected state of a running join: how long keys live, and how long events remain in the state.

Purpose: the mean stay of an event by formula, and observations of a running join at low cost. Promises: the formulas
are pure functions of numbers, and simulations check them.
"""

from joins.costs.formulas import mean_stay_us, purge_time_us, stay_case
from joins.costs.lives import KeyRecord, SeenKey

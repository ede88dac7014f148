"""Runs: rules over finite events, and their results.

Purpose: the plan of a run (streams, constraints, patterns, operators), the run in this process, its results by list.
Promises: a run gives the results that a service gives for the same rules and events. This package does not know where
rules and events come from.
"""

from service.runs.plan import RunPlan
from service.runs.results import (
    EVENTS,
    INCIDENTS,
    LISTS,
    OLD_LISTS,
    SUSPENSIONS,
    Results,
    numbers_of,
    results_of,
    row_text,
)
from service.runs.running import InlineRun, MeasuredRun, measured_of, waiting_of

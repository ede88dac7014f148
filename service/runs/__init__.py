"""Runs: rules over finite events, and their results.

Purpose: the plan of a run (streams, constraints, patterns, operators), the run in this process, and its results by
list.

Promises: A run gives the same results as a service with the same rules and events. The package does not depend on where
the rules and events are read from.
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
from service.runs.running import InlineRun, MeasuredRun, measured_of, unkeyed_of, waiting_of

"""Runs: rules over finite events, and their results.

Purpose: the plan of a run (streams, constraints, patterns, operators), the run in this process, its results by list.
Promises: a run gives the same results as a service with the same rules and events. The package does not depend on the
source of rules and events.
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

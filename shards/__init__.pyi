"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .entries import Entry, StoredEntry, quarantine_note
from .errors import (
    EntryQuarantined,
    EventLate,
    MatchLimitReached,
    RunLimitReached,
    SavedStateError,
    ShardError,
    WorkLimitReached,
)
from .exercises import trial_exercises
from .inline import run_inline
from .kinds import RESULT_KINDS, result_table
from .kinds.patterns import ALERT, alert_id
from .results import DEAD_LETTER, STATS, ResultKind, ResultMetric
from .rows import FoundRows, OutputRow, RowBlock, row_id, rows_of
from .state import ShardState
from .trial import ComparisonCounts, Likeness, Trial, TrialPlan, TrialRows, Variant, VariantCounts

__all__ = [
    "ALERT",
    "DEAD_LETTER",
    "RESULT_KINDS",
    "STATS",
    "ComparisonCounts",
    "Entry",
    "EntryQuarantined",
    "EventLate",
    "FoundRows",
    "Likeness",
    "MatchLimitReached",
    "OutputRow",
    "ResultKind",
    "ResultMetric",
    "RowBlock",
    "RunLimitReached",
    "SavedStateError",
    "ShardError",
    "ShardState",
    "StoredEntry",
    "Trial",
    "TrialPlan",
    "TrialRows",
    "Variant",
    "VariantCounts",
    "WorkLimitReached",
    "alert_id",
    "quarantine_note",
    "result_table",
    "row_id",
    "rows_of",
    "run_inline",
    "trial_exercises",
]

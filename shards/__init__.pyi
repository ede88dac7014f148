"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .chains import ChainPlan, ChainShard
from .deciding import Deciders, decider_kind, grouped
from .entries import Entry, StoredEntry, quarantine_note
from .errors import (
    EntryQuarantined,
    EventLate,
    MatchLimitReached,
    OperatorRefused,
    RunLimitReached,
    SavedStateError,
    ShardError,
    WorkLimitReached,
)
from .exercises import trial_exercises
from .feeds import Feed, Feeds
from .inline import InlineShards, run_inline
from .kinds import COUNTED, DECIDERS, DOCUMENT_KINDS, EXERCISES, KINDS, KINDS_BY_NAME, RESULT_KINDS, result_table
from .kinds.joins.deciding import WAIT
from .kinds.patterns import ALERT, PatternKind, alert_id
from .kinds.patterns.bound_columns import BOUND_SAME, BoundTexts, match_marks, match_times
from .kinds.patterns.host import PatternHost, PatternOutput
from .kinds.patterns.rules import Rules
from .operators import LATENESS, Decider, DocumentKind, Host, Kind, Observation
from .place import Place
from .results import ANSWER, DEAD_LETTER, DERIVED, STATS, ResultKind, ResultMetric
from .rows import FoundRows, OutputRow, RowBlock, row_id, rows_of
from .state import ShardState
from .stops import stop_note
from .trial import ComparisonCounts, Likeness, Trial, TrialPlan, TrialRows, Variant, VariantCounts

__all__ = [
    "ALERT",
    "ANSWER",
    "BOUND_SAME",
    "COUNTED",
    "DEAD_LETTER",
    "DECIDERS",
    "DERIVED",
    "DOCUMENT_KINDS",
    "EXERCISES",
    "KINDS",
    "KINDS_BY_NAME",
    "LATENESS",
    "RESULT_KINDS",
    "STATS",
    "WAIT",
    "BoundTexts",
    "ChainPlan",
    "ChainShard",
    "ComparisonCounts",
    "Decider",
    "Deciders",
    "DocumentKind",
    "Entry",
    "EntryQuarantined",
    "EventLate",
    "Feed",
    "Feeds",
    "FoundRows",
    "Host",
    "InlineShards",
    "Kind",
    "Likeness",
    "MatchLimitReached",
    "Observation",
    "OperatorRefused",
    "OutputRow",
    "PatternHost",
    "PatternKind",
    "PatternOutput",
    "Place",
    "ResultKind",
    "ResultMetric",
    "RowBlock",
    "Rules",
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
    "decider_kind",
    "grouped",
    "match_marks",
    "match_times",
    "quarantine_note",
    "result_table",
    "row_id",
    "rows_of",
    "run_inline",
    "stop_note",
    "trial_exercises",
]

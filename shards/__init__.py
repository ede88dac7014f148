"""Shards: what the entries of a log mean, without Spark, Redis or a web framework.

Purpose: the state of one shard as a pure function of its entries, the rows that leave it, and runs of many shards in
this process. Promises: every row has an id that depends on what it says only; cutting the entries otherwise, and saving
and loading the state in between, change no row; a bad entry becomes a dead letter and never stops a shard.
"""

from shards.entries import Entry, StoredEntry, quarantine_note
from shards.errors import (
    EntryQuarantined,
    EventLate,
    MatchLimitReached,
    OperatorRefused,
    RunLimitReached,
    SavedStateError,
    ShardError,
    WorkLimitReached,
)
from shards.exercises import trial_exercises
from shards.inline import run_inline
from shards.kinds import DOCUMENT_KINDS, KINDS
from shards.operators import DocumentKind, Kind
from shards.rows import FoundRows, OutputRow, RowBlock, RowKind, alert_id, row_id, rows_of
from shards.state import ShardState
from shards.trial import ComparisonCounts, Likeness, Trial, TrialPlan, TrialRows, Variant, VariantCounts

__all__ = [
    "DOCUMENT_KINDS",
    "KINDS",
    "ComparisonCounts",
    "DocumentKind",
    "Entry",
    "EntryQuarantined",
    "EventLate",
    "FoundRows",
    "Kind",
    "Likeness",
    "MatchLimitReached",
    "OperatorRefused",
    "OutputRow",
    "RowBlock",
    "RowKind",
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
    "row_id",
    "rows_of",
    "run_inline",
    "trial_exercises",
]

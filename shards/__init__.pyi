"""What the package exports; `__init__.py` loads each name where it is first asked for."""

from .deciding import Deciders, decider_kind, grouped
from .entries import Entry, StoredEntry, quarantine_note
from .errors import (
    EntryQuarantined,
    EventLate,
    OperatorRefused,
    OperatorSuspended,
    SavedStateError,
    ShardError,
)
from .feeds import Feed, Feeds
from .inline import InlineShards, run_inline
from .kinds import (
    COUNTED,
    DECIDERS,
    DOCUMENT_KINDS,
    EXERCISES,
    KINDS,
    KINDS_BY_NAME,
    RESULT_KINDS,
    USUAL_KINDS,
    result_table,
)
from .kinds.joins.deciding import WAIT
from .kinds.patterns import (
    ACKNOWLEDGE,
    ALERT,
    CLOSE,
    CLOSED,
    INCIDENT_CHANGES,
    SUPPRESSION,
    PatternKind,
    alert_id,
    alerts_stream,
    fed_stream,
    shown_quiet,
)
from .kinds.patterns.alert_columns import match_ids
from .kinds.patterns.bound_columns import BOUND_SAME, BoundTexts, match_marks, match_rows, match_times
from .kinds.patterns.host import PatternHost, PatternOutput
from .kinds.patterns.routing import RoutedPattern, route_of, routed
from .kinds.patterns.rules import Rules
from .kinds.patterns.suppression import LastAlerts, Suppression, read_quiet, read_suppression, suppressed_only
from .lookups import TableRecord, records_of
from .metering import Cost, Metering
from .operators import (
    LATENESS,
    Decider,
    DocumentKind,
    Host,
    Kind,
    Observation,
    Origin,
    Output,
    Renderer,
    Result,
    own_results,
)
from .place import Place
from .policy import OldestFirst, Policy
from .results import ANSWER, DEAD_LETTER, DERIVED, REKEYED, STATS, ResultKind, ResultMetric
from .rows import FoundRows, OutputRow, RowBlock, results_of, row_id, rows_of
from .runs.comparing import Comparison, ComparisonCounts, identity_of
from .runs.decisions import DeciderState, decisions_of, observed_streams
from .runs.exercises import run_exercises
from .runs.plan import Decision, Likeness, RoundPlan, Variant, likeness
from .runs.shard_round import FedPlace, RoundRows, ShardRound, VariantCounts
from .state import ShardState
from .stops import stop_note

__all__ = [
    "ACKNOWLEDGE",
    "ALERT",
    "ANSWER",
    "BOUND_SAME",
    "CLOSE",
    "CLOSED",
    "COUNTED",
    "DEAD_LETTER",
    "DECIDERS",
    "DERIVED",
    "DOCUMENT_KINDS",
    "EXERCISES",
    "INCIDENT_CHANGES",
    "KINDS",
    "KINDS_BY_NAME",
    "LATENESS",
    "REKEYED",
    "RESULT_KINDS",
    "STATS",
    "SUPPRESSION",
    "USUAL_KINDS",
    "WAIT",
    "BoundTexts",
    "Comparison",
    "ComparisonCounts",
    "Cost",
    "Decider",
    "DeciderState",
    "Deciders",
    "Decision",
    "DocumentKind",
    "Entry",
    "EntryQuarantined",
    "EventLate",
    "FedPlace",
    "Feed",
    "Feeds",
    "FoundRows",
    "Host",
    "InlineShards",
    "Kind",
    "LastAlerts",
    "Likeness",
    "Metering",
    "Observation",
    "OldestFirst",
    "OperatorRefused",
    "OperatorSuspended",
    "Origin",
    "Output",
    "OutputRow",
    "PatternHost",
    "PatternKind",
    "PatternOutput",
    "Place",
    "Policy",
    "Renderer",
    "Result",
    "ResultKind",
    "ResultMetric",
    "RoundPlan",
    "RoundRows",
    "RoutedPattern",
    "RowBlock",
    "Rules",
    "SavedStateError",
    "ShardError",
    "ShardRound",
    "ShardState",
    "StoredEntry",
    "Suppression",
    "TableRecord",
    "Variant",
    "VariantCounts",
    "alert_id",
    "alerts_stream",
    "decider_kind",
    "decisions_of",
    "fed_stream",
    "grouped",
    "identity_of",
    "likeness",
    "match_ids",
    "match_marks",
    "match_rows",
    "match_times",
    "observed_streams",
    "own_results",
    "quarantine_note",
    "read_quiet",
    "read_suppression",
    "records_of",
    "result_table",
    "results_of",
    "route_of",
    "routed",
    "row_id",
    "rows_of",
    "run_exercises",
    "run_inline",
    "shown_quiet",
    "stop_note",
    "suppressed_only",
]

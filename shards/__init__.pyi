"""Exports of the package; `__init__.py` loads each name on first use."""

from .blob import seal as seal
from .deciding import decider_kind as decider_kind
from .entries import StoredEntry as StoredEntry, quarantine_note as quarantine_note
from .errors import (
    OperatorRefused as OperatorRefused,
    OperatorSuspended as OperatorSuspended,
    SavedStateError as SavedStateError,
)
from .feeds import Feed as Feed, Feeds as Feeds
from .inline import InlineShards as InlineShards
from .kinds import (
    COUNTED as COUNTED,
    DOCUMENT_KINDS as DOCUMENT_KINDS,
    EXERCISES as EXERCISES,
    KINDS as KINDS,
    KINDS_BY_NAME as KINDS_BY_NAME,
    RESULT_KINDS as RESULT_KINDS,
    USUAL_KINDS as USUAL_KINDS,
    require_final as require_final,
    result_table as result_table,
)
from .kinds.joins.sources import WAIT as WAIT
from .kinds.patterns import (
    ACKNOWLEDGE as ACKNOWLEDGE,
    ALERT as ALERT,
    CLOSE as CLOSE,
    CLOSED as CLOSED,
    INCIDENT_CHANGES as INCIDENT_CHANGES,
    SUPPRESSED as SUPPRESSED,
    SUPPRESSION as SUPPRESSION,
    PatternKind as PatternKind,
    alerts_stream as alerts_stream,
    fed_stream as fed_stream,
    shown_quiet as shown_quiet,
    with_alerts as with_alerts,
)
from .kinds.patterns.alert_columns import match_ids as match_ids
from .kinds.patterns.alert_columns import (
    BOUND_SAME as BOUND_SAME,
    BoundTexts as BoundTexts,
    match_marks as match_marks,
    match_rows as match_rows,
    match_times as match_times,
)
from .kinds.patterns.host import PatternHost as PatternHost, PatternOutput as PatternOutput
from .kinds.patterns.routing import RoutedPattern as RoutedPattern, route_of as route_of, routed as routed
from .kinds.patterns.suppression import (
    LastAlerts as LastAlerts,
    Suppression as Suppression,
    read_quiet as read_quiet,
    read_suppression as read_suppression,
    suppressed_only as suppressed_only,
)
from .lookups import TableRecord as TableRecord, records_of as records_of
from .metering import Cost as Cost, Metering as Metering
from .names_read import NameRead as NameRead
from .operators import (
    LATENESS as LATENESS,
    DocumentKind as DocumentKind,
    Kind as Kind,
    Likeness as Likeness,
    Observation as Observation,
    Origin as Origin,
    Output as Output,
    Renderer as Renderer,
    Result as Result,
    own_results as own_results,
)
from .policy import OldestFirst as OldestFirst, Policy as Policy
from .results import (
    ANSWER as ANSWER,
    DEAD_LETTER as DEAD_LETTER,
    DERIVED as DERIVED,
    REKEYED as REKEYED,
    STATS as STATS,
    ResultKind as ResultKind,
)
from .rows import (
    OutputRow as OutputRow,
    ResultRows as ResultRows,
    RowBlock as RowBlock,
    row_id as row_id,
    rows_of as rows_of,
    results_of as results_of,
)
from .runs.comparing import ComparisonCounts as ComparisonCounts, identity_of as identity_of
from .runs.decisions import (
    DeciderState as DeciderState,
    decisions_of as decisions_of,
    observed_streams as observed_streams,
)
from .runs.plan import (
    Decision as Decision,
    RoundPlan as RoundPlan,
    Variant as Variant,
    likeness as likeness,
    run_exercises as run_exercises,
)
from .runs.shard_round import (
    FedPlace as FedPlace,
    RoundRows as RoundRows,
    ShardRound as ShardRound,
    VariantCounts as VariantCounts,
)
from .state import ShardState as ShardState
from .stops import stop_note as stop_note

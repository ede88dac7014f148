"""The exports of the package; `__init__.py` imports each name when it is first used."""

from .arena import distinct as distinct
from .automata.guard_view import GuardView as GuardView
from .automata.iterations import MAX_REASONED as MAX_REASONED, is_coarse as is_coarse
from .automata.query import Absence as Absence, PatternState as PatternState, Query as Query, Term as Term
from .automata.query_building import build_query as build_query
from .combinations import CombinedExpression as CombinedExpression, parse_combined as parse_combined
from .comparability import KindsRead as KindsRead, incomparable as incomparable
from .conditions.residuals import conjuncts_of as conjuncts_of, without_alias as without_alias
from .errors import (
    KeyMismatch as KeyMismatch,
    PatternRefused as PatternRefused,
    StateFormatError as StateFormatError,
    TooManyRows as TooManyRows,
    UnknownPattern as UnknownPattern,
)
from .event_expressions import (
    EventExpression as EventExpression,
    columns_of_events as columns_of_events,
    parse_event_expression as parse_event_expression,
)
from .exercises import (
    MATCHER_FEATURES as MATCHER_FEATURES,
    matcher_features as matcher_features,
    matching_exercise as matching_exercise,
    play as play,
)
from .functions.table import FUNCTIONS as FUNCTIONS
from .guards.protocol import (
    OTHER as OTHER,
    BitGoal as BitGoal,
    BitGuard as BitGuard,
    BitRules as BitRules,
    EventClass as EventClass,
    Guard as Guard,
    MonitorState as MonitorState,
    OnViolation as OnViolation,
    Policy as Policy,
    Prune as Prune,
    Seen as Seen,
    Symbol as Symbol,
)
from .keys import has_key as has_key, require_key as require_key, require_own_key as require_own_key
from .language.description import (
    describe_atom as describe_atom,
    describe_node as describe_node,
    describe_pattern as describe_pattern,
)
from .language.json_form import pattern_to_json as pattern_to_json
from .language.json_reading import pattern_from_json as pattern_from_json
from .language.steps import parse_step as parse_step
from .language.strangers import (
    all_types_of as all_types_of,
    attributes_by_types as attributes_by_types,
    lookups_in as lookups_in,
    unknown_types as unknown_types,
)
from .language.stream_checks import Notice as Notice, awaited_types as awaited_types
from .matcher import MATCH_LIMIT as MATCH_LIMIT, Matcher as Matcher, Tracked as Tracked
from .pattern_texts import parse_pattern as parse_pattern, parse_patterns as parse_patterns
from .registered import RunningPattern as RunningPattern
from .results.batch import (
    FEW_ROWS as FEW_ROWS,
    Correction as Correction,
    Deviation as Deviation,
    Ending as Ending,
    EndingColumns as EndingColumns,
    LaneOutput as LaneOutput,
    Match as Match,
    MatcherStats as MatcherStats,
    MatchOutput as MatchOutput,
    Overflow as Overflow,
    Timeout as Timeout,
    match_order as match_order,
)
from .results.bound_events import MatchColumns as MatchColumns
from .results.found import DECIDED_BY as DECIDED_BY
from .results.open_cases import (
    CasePattern as CasePattern,
    CaseQuery as CaseQuery,
    CaseState as CaseState,
    Furthest as Furthest,
    OpenCase as OpenCase,
    OpenCases as OpenCases,
)
from .row_bounds import (
    MOST_ROWS as MOST_ROWS,
    MOST_ROWS_AT_ONCE as MOST_ROWS_AT_ONCE,
    key_notices as key_notices,
    require_rows as require_rows,
    rows_met as rows_met,
)
from .silent_nulls import null_notices as null_notices
from .sql.errors import RowPatternFailed as RowPatternFailed
from .sql.query import QueryShape as QueryShape, query_shape as query_shape, run_query as run_query
from .syntax import (
    ANY_TYPE as ANY_TYPE,
    OF_EVENT as OF_EVENT,
    Atom as Atom,
    Attribute as Attribute,
    Both as Both,
    Call as Call,
    Column as Column,
    Comparison as Comparison,
    Conjunction as Conjunction,
    Disjunction as Disjunction,
    Either as Either,
    Expression as Expression,
    InList as InList,
    Into as Into,
    IsNull as IsNull,
    Item as Item,
    Like as Like,
    Literal as Literal,
    Negative as Negative,
    Node as Node,
    Not as Not,
    Path as Path,
    Pattern as Pattern,
    Sequence as Sequence,
    atoms_of as atoms_of,
    operands_of as operands_of,
)
from .traces.idle_traces import IdleTraces as IdleTraces
from .value_kinds import ValueKind as ValueKind, kind_of_value as kind_of_value
from .work_bounds import TraceEnds as TraceEnds

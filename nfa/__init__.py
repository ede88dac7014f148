"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: pattern text to syntax tree, query graph, automaton tables and kernels over columnar batches; run state that
can be saved and loaded. Promises: the result depends only on the events and their order, never on the boundaries of
batches; an event costs constant work, however many combinations it takes part in; a run that can no longer complete
ends at the event that rules it out, by tables that a guard supplies; this package does not know constraints.
"""

from nfa.automata.guard_view import GuardView
from nfa.automata.iterations import MAX_REASONED, is_coarse
from nfa.automata.query import Absence, PatternState, Query, Term
from nfa.automata.query_building import build_query
from nfa.combinations import CombinedCondition, parse_condition
from nfa.comparability import KindsRead, incomparable
from nfa.conditions.residuals import conjuncts_of, without_alias
from nfa.errors import KeyMismatch, PatternError, PatternRefused, StateFormatError, UnknownPattern
from nfa.event_expressions import EventExpression, columns_of_events, parse_event_expression
from nfa.exercises import MATCHER_FEATURES, matcher_features, matching_exercise, play
from nfa.functions.table import FUNCTIONS
from nfa.guards.protocol import (
    OTHER,
    BitGoal,
    BitGuard,
    BitRules,
    EventClass,
    Guard,
    MonitorState,
    OnViolation,
    Policy,
    Prune,
    Seen,
    Symbol,
)
from nfa.keys import has_key, require_key
from nfa.language.description import describe_atom, describe_expression, describe_node, describe_pattern
from nfa.language.json_form import pattern_to_json
from nfa.language.json_reading import pattern_from_json
from nfa.language.parsing import parse_pattern, parse_patterns
from nfa.language.steps import parse_step
from nfa.language.strangers import all_types_of, attributes_by_types, lookups_in, unknown_types
from nfa.language.stream_checks import Notice, awaited_types, check_stream
from nfa.matcher import MATCH_LIMIT, Matcher
from nfa.registered import RunningPattern
from nfa.results.batch import (
    FEW_ROWS,
    Correction,
    Deviation,
    Ending,
    EndingColumns,
    LaneOutput,
    Match,
    MatcherStats,
    MatchOutput,
    Overflow,
    Timeout,
    match_order,
)
from nfa.results.bound_events import MatchColumns
from nfa.results.found import DECIDED_BY
from nfa.results.open_cases import (
    BoundStep,
    CasePattern,
    CaseQuery,
    CaseState,
    Furthest,
    Holding,
    Keeping,
    OpenCase,
    OpenCases,
)
from nfa.syntax import (
    ANY_TYPE,
    After,
    Arithmetic,
    Atom,
    Attribute,
    Both,
    Call,
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    Gap,
    InList,
    Into,
    IsNull,
    Item,
    Like,
    Literal,
    Negative,
    Node,
    Not,
    Pattern,
    Position,
    Repeat,
    Sequence,
    atoms_of,
    operands_of,
)
from nfa.traces.idle_traces import EndedTraces, IdleTraces
from nfa.waiting import TraceEnds
from nfa.work_bounds import warnings_of

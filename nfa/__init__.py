"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: pattern text to syntax tree, query graph, automaton tables and kernels over columnar batches; run state that
can be saved and loaded. Promises: the result depends on the events and their order only, never on how they were cut
into batches; an event costs constant work however many combinations it takes part in; a doomed run ends at the event
that dooms it, by tables that a guard supplies; nothing here knows what a constraint is.
"""

from nfa.automata.query import PatternState, Query, Term
from nfa.automata.query_building import build_query
from nfa.errors import PatternError, PatternRefused, StateFormatError, UnknownPattern
from nfa.guards import Guard, Seen
from nfa.kernel_digest import kernel_digest
from nfa.language.description import describe_atom, describe_expression, describe_node, describe_pattern
from nfa.language.json_form import pattern_to_json
from nfa.language.json_reading import pattern_from_json
from nfa.language.parsing import parse_pattern, parse_patterns
from nfa.language.stream_checks import Notice, check_stream, warnings_of
from nfa.matcher import MATCH_LIMIT, Matcher
from nfa.registered import RegisteredPattern
from nfa.results import Deviation, Ending, Match, MatcherStats, MatchOutput, Overflow, Timeout, match_order
from nfa.runs.engine import Ties
from nfa.syntax import (
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
)

__all__ = [
    "MATCH_LIMIT",
    "After",
    "Arithmetic",
    "Atom",
    "Attribute",
    "Both",
    "Call",
    "Column",
    "Comparison",
    "Conjunction",
    "Deviation",
    "Disjunction",
    "Either",
    "Ending",
    "Expression",
    "Gap",
    "Guard",
    "InList",
    "IsNull",
    "Item",
    "Like",
    "Literal",
    "Match",
    "MatchOutput",
    "Matcher",
    "MatcherStats",
    "Negative",
    "Node",
    "Not",
    "Notice",
    "Overflow",
    "Pattern",
    "PatternError",
    "PatternRefused",
    "PatternState",
    "Position",
    "Query",
    "RegisteredPattern",
    "Repeat",
    "Seen",
    "Sequence",
    "StateFormatError",
    "Term",
    "Ties",
    "Timeout",
    "UnknownPattern",
    "atoms_of",
    "build_query",
    "check_stream",
    "describe_atom",
    "describe_expression",
    "describe_node",
    "describe_pattern",
    "kernel_digest",
    "match_order",
    "parse_pattern",
    "parse_patterns",
    "pattern_from_json",
    "pattern_to_json",
    "warnings_of",
]

"""The pattern language and the matcher: a library that needs no Spark, Redis or HTTP.

Purpose: pattern text to syntax tree, query graph, automaton tables and kernels over columnar batches; run state that
can be saved and loaded. Promises: the result depends on the events and their order only, never on how they were cut
into batches; an event costs constant work however many combinations it takes part in; a doomed run ends at the event
that dooms it, by tables that a guard supplies; nothing here knows what a constraint is.
"""

from nfa.description import describe_atom, describe_expression, describe_node
from nfa.errors import PatternError, PatternRefused, StateFormatError, UnknownPattern
from nfa.guards import Guard, Seen
from nfa.matcher import MATCH_LIMIT, Matcher, RegisteredPattern
from nfa.parsing import parse_pattern, parse_patterns
from nfa.query import PatternState, Query, Term
from nfa.query_building import build_query
from nfa.results import Deviation, Ending, Match, MatcherStats, MatchOutput, Overflow, match_order
from nfa.syntax import (
    Atom,
    Attribute,
    Both,
    Comparison,
    Conjunction,
    Disjunction,
    Either,
    Expression,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Pattern,
    Position,
    Sequence,
)

__all__ = [
    "MATCH_LIMIT",
    "Atom",
    "Attribute",
    "Both",
    "Comparison",
    "Conjunction",
    "Deviation",
    "Disjunction",
    "Either",
    "Ending",
    "Expression",
    "Guard",
    "InList",
    "IsNull",
    "Literal",
    "Match",
    "MatchOutput",
    "Matcher",
    "MatcherStats",
    "Node",
    "Not",
    "Overflow",
    "Pattern",
    "PatternError",
    "PatternRefused",
    "PatternState",
    "Position",
    "Query",
    "RegisteredPattern",
    "Seen",
    "Sequence",
    "StateFormatError",
    "Term",
    "UnknownPattern",
    "build_query",
    "describe_atom",
    "describe_expression",
    "describe_node",
    "match_order",
    "parse_pattern",
    "parse_patterns",
]

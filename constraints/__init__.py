"""What the traces of a stream keep to, and what follows: what can no longer happen.

Purpose: the vocabulary of order and occurrence constraints, their upload form, the decision whether a pattern state can
still complete, the monitor that answers it for the matcher, and the reasons in words. Promises: a state is called dead
only if no conforming continuation completes it, every reason is minimal, and nothing here knows where constraints come
from or how a matcher runs.
"""

from constraints.clash import Clash, find_clash
from constraints.document import ParsedConstraints, parse_constraints, to_document
from constraints.errors import (
    ConstraintError,
    ContradictoryConstraints,
    InvalidConstraints,
    Problem,
    UnsatisfiablePattern,
)
from constraints.explanation import Explanation, explain_ending
from constraints.failing import FailingCondition, failing_conditions
from constraints.model import Clause, Constraint, ConstraintSet, End, Exclusive, Part, Prior, Require
from constraints.monitor import Monitor
from constraints.reference import Verdict, alive
from constraints.remainder import NOTHING, Remainder, remainder_of
from constraints.satisfiability import DeadTerm, QueryCheck, SetWarning, check_query, check_set

__all__ = [
    "NOTHING",
    "Clash",
    "Clause",
    "Constraint",
    "ConstraintError",
    "ConstraintSet",
    "ContradictoryConstraints",
    "DeadTerm",
    "End",
    "Exclusive",
    "Explanation",
    "FailingCondition",
    "InvalidConstraints",
    "Monitor",
    "ParsedConstraints",
    "Part",
    "Prior",
    "Problem",
    "QueryCheck",
    "Remainder",
    "Require",
    "SetWarning",
    "UnsatisfiablePattern",
    "Verdict",
    "alive",
    "check_query",
    "check_set",
    "explain_ending",
    "failing_conditions",
    "find_clash",
    "parse_constraints",
    "remainder_of",
    "to_document",
]

"""Constraints on the traces of a stream, and the continuations of a trace that they exclude.

Purpose: the vocabulary of order and occurrence constraints, their upload form, the decision whether a pattern state can
still complete, the monitor that makes this decision for the matcher, and the reasons in words. Promises: a state is
called dead only if no conforming continuation completes it, and every reason is minimal. The package does not know
where constraints come from, or how a matcher runs.
"""

from constraints.analysing.analysis import Analysis, PatternAnalysis, analyse
from constraints.analysing.choice import Choice, choose, within_cap
from constraints.analysing.forecast import StateForecast, forecast
from constraints.analysing.profit import IdleParts, idle_parts
from constraints.analysing.redundancy import RedundantAtom, redundant_atoms
from constraints.analysing.satisfiability import DeadTerm, QueryCheck, SetWarning, check_query, check_set
from constraints.documents.document import ParsedConstraints, parse_constraints, to_document
from constraints.errors import ContradictoryConstraints, InvalidConstraints, UnsatisfiablePattern
from constraints.exercises import guard_features, guarded_exercise
from constraints.explaining.deviation import DeviationKind, DeviationReason, explain_deviation
from constraints.explaining.explanation import Explanation, explain_ending
from constraints.explaining.failing import FailingCondition, failing_conditions
from constraints.model import (
    Clause,
    Constraint,
    ConstraintSet,
    End,
    Exclusive,
    Part,
    Prior,
    Process,
    Require,
    Rule,
    Settings,
    clause_of,
    following,
)
from constraints.monitoring.monitor import Monitor
from constraints.process.adjacency import Adjacency, Flags, Numbers, edges_at, offsets_of
from constraints.process.automaton import NOWHERE, ProcessAutomaton
from constraints.reasoning.clash import Clash, find_clash
from constraints.remainder import NOTHING, Remainder, remainder_of
from constraints.rules.automaton import RuleAutomaton
from constraints.rules.product import RuleProduct
from constraints.sets import bits_of, members, overlapping
from constraints.wording import alternative_text

"""Patterns as a kind of operator: the matcher of ``nfa`` under the constraints of the stream."""

from shards.kinds.patterns.kind import PatternKind
from shards.kinds.patterns.result_kinds import ALERT, alert_id

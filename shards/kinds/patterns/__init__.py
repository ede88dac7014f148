"""Patterns as a kind of operator: the matcher of ``nfa`` under the constraints of the stream."""

from shards.kinds.patterns.kind import PatternKind, SuppressionKind
from shards.kinds.patterns.result_kinds import ALERT, alert_id
from shards.kinds.patterns.sources import SUPPRESSION, alerts_stream, shown_suppression

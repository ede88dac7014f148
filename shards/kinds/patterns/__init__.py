"""Patterns as a kind of operator: the matcher of ``nfa``, guided by the constraints of the stream."""

from shards.kinds.patterns.kind import PatternKind, SuppressionKind
from shards.kinds.patterns.result_kinds import ALERT, CLOSED, INCIDENT_CHANGES, SUPPRESSED, alert_id, with_alerts
from shards.kinds.patterns.sources import ACKNOWLEDGE, CLOSE, SUPPRESSION, alerts_stream, fed_stream, shown_quiet

"""The kinds of results of patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shards.results import ResultKind, ResultMetric
from shards.rows import row_id

_BY_PATTERN = ("stream", "pattern")

ALERT = ResultKind(
    name="alert",
    plural="alerts",
    title="alerts",
    counted_by=_BY_PATTERN,
    delivered_as="alert",
    is_usual=True,
    graded_by="pattern",
    is_main=True,
    members=frozenset(
        "type id stream pattern severity version key route row start end detected_at bindings returns why decided_by "
        "deviating would_be_lost incident".split()
    ),
    in_backtests="listed",
    same_by=("pattern", "key", "bindings", "row"),
    shown=(*"pattern key row bindings start end detected_at decided_by deviating would_be_lost returns".split(),),
    ordered_by=("end", "start", "bindings", "pattern", "key", "row"),
    timed_by="detected_at",
    metric=ResultMetric(name="alerts", meaning="Alerts.", labels=_BY_PATTERN),
)
SUPPRESSED = replace(
    ALERT,
    name="suppressed-alert",
    plural="suppressed-alerts",
    title="suppressed alerts",
    delivered_as="alert.suppressed",
    is_usual=False,
    is_main=False,
    members=ALERT.members | {"suppressed_by", "incident_alerts"},
    same_by=(),
    timed_by="",
    metric=ResultMetric(name="suppressed_alerts", meaning="Suppressed alerts.", labels=_BY_PATTERN),
)
"""An alert that was suppressed; ``suppressed_by`` is the id of the earlier alert of its group that suppresses it.

``incident_alerts`` is the number of alerts of its incident so far, if it belongs to one.
"""

OPENED = ResultKind(
    name="opened-incident",
    plural="opened-incidents",
    title="opened incidents",
    counted_by=_BY_PATTERN,
    delivered_as="incident.opened",
    graded_by="pattern",
    members=frozenset(
        "type id incident stream pattern severity version group state revision opened_at updated_at closed_at "
        "closed_by acknowledged alerts suppressed_alerts first_alert last_alert key why".split()
    ),
    metric=ResultMetric(name="opened_incidents", meaning="Opened incidents.", labels=_BY_PATTERN),
)
UPDATED = replace(
    OPENED,
    name="updated-incident",
    plural="updated-incidents",
    title="updated incidents",
    delivered_as="incident.updated",
    metric=None,
)
CLOSED = replace(
    OPENED,
    name="closed-incident",
    plural="closed-incidents",
    title="closed incidents",
    delivered_as="incident.closed",
    metric=ResultMetric(name="closed_incidents", meaning="Closed incidents.", labels=_BY_PATTERN),
)
INCIDENT_CHANGES = (OPENED, UPDATED, CLOSED)
"""The changes of incidents.

Each contains the whole incident, whose state is the change with the greatest ``revision``, except that its later
suppressed alerts are not counted (``with_alerts``).
"""


def with_alerts(incident: Mapping[str, Any], alerts: int) -> dict[str, Any]:
    """Return an incident with at least this number of alerts, ``incident_alerts`` of its latest suppressed alert."""
    more = max(0, alerts - incident["alerts"])
    suppressed = incident["suppressed_alerts"] + more
    return {**incident, "alerts": incident["alerts"] + more, "suppressed_alerts": suppressed}


TIMEOUT = ResultKind(
    name="timeout",
    plural="timeouts",
    title="timeouts",
    counted_by=(*_BY_PATTERN, "missing"),
    in_backtests="listed",
    shown=(*"pattern key row bindings missing start due".split(),),
    ordered_by=("due", "start", "bindings", "pattern", "key", "row"),
    metric=ResultMetric(name="timeouts", meaning="Timeouts.", labels=_BY_PATTERN),
)
ENDING = ResultKind(
    name="ending",
    plural="endings",
    title="terminated early",
    counted_by=(*_BY_PATTERN, "form", "constraints", "atom"),
    delivered_as="ending",
    members=frozenset(
        "type id stream pattern version key row event event_type time form constraints atom reason".split()
    ),
    in_backtests="counted",
    shown=(*"pattern key row event reason".split(),),
    timed_by="time",
    metric=ResultMetric(name="early_endings", meaning="Early terminations.", labels=(*_BY_PATTERN, "form")),
)
ENDING_COUNT = ResultKind(name="ending-count", counted_by=ENDING.counted_by, counts_for=ENDING.name)
"""Counts of early terminations that are not reported one by one."""

DEVIATION = ResultKind(
    name="deviation",
    plural="deviations",
    title="deviating transactions",
    counted_by=("stream", "event_type", "kind"),
    delivered_as="deviation",
    members=frozenset(
        "type id stream key event event_type time version kind constraints symbols allowed released reason".split()
    ),
    in_backtests="listed",
    shown=(*"key event event_type time kind constraints symbols allowed released reason".split(),),
    timed_by="time",
    metric=ResultMetric(name="deviations", meaning="Deviating traces.", labels=("stream", "kind")),
)
CORRECTION = ResultKind(
    name="correction",
    plural="corrections",
    title="retractions",
    counted_by=_BY_PATTERN,
    delivered_as="correction",
    is_usual=True,
    graded_by="pattern",
    members=frozenset(
        "type id stream pattern severity version key row alert bindings event event_type time reason".split()
    ),
    in_backtests="listed",
    shown=(*"pattern key row bindings event event_type time".split(),),
    metric=ResultMetric(name="corrections", meaning="Corrections of alerts.", labels=_BY_PATTERN),
)
SUSPENSION = ResultKind(
    name="suspension",
    plural="suspensions",
    title="suspensions",
    counted_by=_BY_PATTERN,
    delivered_as="pattern.suspended",
    is_usual=True,
    graded_by="pattern",
    members=frozenset(
        "type id stream pattern severity version key route event event_type time shard budget reason".split()
    ),
    stops=True,
)

PATTERN_RESULTS = (
    ALERT,
    SUPPRESSED,
    *INCIDENT_CHANGES,
    TIMEOUT,
    ENDING,
    ENDING_COUNT,
    DEVIATION,
    CORRECTION,
    SUSPENSION,
)

AS_EVENTS = (ENDING.plural, TIMEOUT.plural, DEVIATION.plural)
"""The kinds of results that a tap can turn into events."""


def alert_id(
    stream: str,
    pattern: str,
    version: int,
    key: str,
    bindings: Mapping[str, Sequence[str]],
    row: Mapping[str, Any] | None = None,
) -> str:
    """Hash the id of an alert from the events that its match binds to each alias, and from its row.

    The id does not depend on how and when the match was decided, so an early alert has the same id as a late one.
    """
    bound = {alias: list(ids) for alias, ids in bindings.items()}
    return row_id(ALERT, stream, pattern, version, key, bound, *(() if row is None else (row,)))

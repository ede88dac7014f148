"""Problem codes by HTTP status, and the operations that may answer with each code.

An operation has traits: the first segment of its path, its tags, ``+name`` for each parameter, ``body`` if it takes a
body, ``change`` unless it is a GET, and ``*``. A code applies to every operation that has one of the code's traits. A
test compares the codes with the error classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

_RULES = "patterns operators backtests"  # resources that contain the text of patterns or conditions

_TRAITS: Final[Mapping[int, Mapping[str, str]]] = {
    400: {
        "backtest-refused": "backtests",
        "calendar-unknown": f"{_RULES} calendars",
        "case-filter-refused": "traces",
        "contradictory-constraints": "constraints workflows streams patterns",
        "derivation-refused": f"{_RULES} streams",
        "event-ahead": "events dead-letters",
        "event-form": "events",
        "event-rejected": "events dead-letters streams",
        "idempotency-key": "+idempotency_key",
        "invalid-constraints": "constraints workflows streams patterns",
        "invalid-cursor": "+after",
        "key-refused": "keys",
        "malformed-body": "body change",
        "operator-not-running": "operators",
        "pattern-key": _RULES,
        "pattern-refused": f"{_RULES} constraints",
        "question-refused": "operators traces",
        "request-refused": "*",
        "schema-broken": "streams events",
        "schema-refused": "streams",
        "stream-declaration": f"{_RULES} streams constraints traces workflows projects keys",
        "stream-missing": "events constraints workflows",
        "table-column-unknown": f"{_RULES} tables",
        "table-name": "tables calendars",
        "table-unknown": f"{_RULES} tables calendars",
        "two-lengths": "body change",
        "webhook-refused": "webhooks sinks",
        "workflow-in-document": "constraints workflows streams",
        "workflow-name": "workflows",
    },
    401: {"unauthorized": "*"},
    403: {"forbidden": "*", "foreign-page": "*"},
    404: {
        "not-found": "*",
        "not-following": "streams workflows",
        "unknown-alert": "alerts",
        "unknown-backtest": "backtests",
        "unknown-constraints": "constraints streams",
        "unknown-dead-letter": "dead-letters",
        "unknown-delivery": "webhooks sinks",
        "unknown-event-type": "streams",
        "unknown-incident": "incidents",
        "unknown-key": "keys",
        "unknown-operator": "operators patterns +pattern",
        "unknown-pattern": f"{_RULES} traces webhooks sinks +pattern",
        "unknown-project": "projects",
        "unknown-sink": "sinks",
        "unknown-stream": "*",
        "unknown-table": f"{_RULES} tables calendars",
        "unknown-trace": "traces workflows",
        "unknown-webhook": "webhooks",
        "unknown-workflow": "workflows streams",
    },
    408: {"body-too-slow": "body"},
    409: {
        "conflict": "change",
        "feed-in-use": "events",
        "feed-misplaced": "events",
        "idempotency-key-in-use": "+idempotency_key",
        "incident-closed": "incidents",
        "key-unusable": "keys",
        "migration-refused": "patterns",
        "not-replayable": "dead-letters",
        "operator-exists": "operators patterns",
        "operator-on-other-stream": "operators patterns",
        "operator-state": "operators patterns",
        "pattern-on-other-stream": "patterns backtests",
        "pattern-state": "patterns",
        "punctuation-ahead": "events",
        "stream-derived": "events streams constraints traces workflows dead-letters",
        "stream-exists": "streams operators patterns",
        "stream-in-use": "streams operators patterns",
        "stream-not-derived": "streams operators patterns",
        "table-in-use": "tables calendars",
        "unsatisfiable-pattern": "patterns operators constraints workflows streams",
        "webhook-name-taken": "webhooks sinks",
        "workflow-followed": "workflows streams constraints",
    },
    412: {"precondition-failed": "+if_match"},
    413: {
        "batch-too-large": "events workflows",
        "body-too-large": "body change",
        "constraints-too-large": "constraints workflows streams",
        "limit-exceeded": "body change",
        "model-too-large": "workflows",
        "pattern-too-long": f"{_RULES} traces",
        "too-many-backtests": "backtests",
        "too-many-event-types": "streams",
        "too-many-keys": "keys",
        "too-many-notes": "alerts",
        "too-many-projects": "projects",
        "too-many-tables": "tables calendars",
        "trace-too-long": "traces workflows",
        "workflow-too-large": "workflows streams",
    },
    415: {"unsupported-media-type": "body"},
    422: {
        "automaton-too-large": "workflows streams constraints",
        "calendar-refused": "calendars",
        "idempotency-key-mismatch": "+idempotency_key",
        "invalid-workflow": "workflows streams",
        "model-refused": "workflows",
        "nothing-accepted": "events",
        "operator-refused": _RULES,
        "table-refused": "tables",
        "too-many-rows": f"{_RULES} tables",
        "too-much-work": "*",
        "unsound-workflow": "workflows streams",
        "wrong-shape": "*",
    },
    429: {"log-full": "change", "rate-limited": "*"},
    503: {
        "log-resharding": "change",
        "not-ready": "health",
        "pipeline-not-running": "traces operators",
        "registry-contended": "change",
        "store-unavailable": "*",
        "table-missing": f"{_RULES} tables calendars traces",
        "too-busy": "*",
        "too-many-listeners": "alerts results streams",
        "too-many-questions": "traces operators",
    },
    504: {"answers-late": "traces operators"},
    507: {"store-full": "change"},
}


def codes_of(status: int, traits: Set[str]) -> list[str]:
    """Return the problem codes that an operation may answer with an HTTP status.

    ``traits`` describe the operation. For example, ``body`` means that it reads a request body, ``change`` that it
    changes a resource.
    """
    return [code for code, code_traits in _TRAITS.get(status, {}).items() if not traits.isdisjoint(code_traits.split())]


def all_codes() -> dict[str, int]:
    """Return all codes of the table with their statuses."""
    return {code: status for status, codes in _TRAITS.items() for code in codes}

"""Alerts and early terminations, made one at a time: the definition of their bytes, and the faster way for a few.

``alert_columns`` makes the same bytes for many results at once; below about two dozen, its fixed cost is larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nfa import Ending, Match
from shards.kinds.patterns.result_kinds import ALERT, ENDING, alert_id
from shards.rows import row_id
from streams import format_time, shown_time


def alert_of(stream: str, match: Match, steps: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Id and JSON object of the alert for a match.

    ``steps``: the step of each alias, in words.
    """
    identity = alert_id(stream, match.pattern, match.version, match.key, match.bindings, match.row)
    body = {
        "type": ALERT.name,
        "id": identity,
        "stream": stream,
        "pattern": match.pattern,
        "version": match.version,
        "key": match.key,
        **({} if match.row is None else {"row": match.row}),
        "start": format_time(match.start_us),
        "end": format_time(match.end_us),
        "detected_at": shown_time(match.detected_us),
        "bindings": match.bindings,
        "returns": match.returns,
        "why": _why(steps, match.bindings),
        **({} if match.decided_by is None else {"decided_by": match.decided_by}),
        **({"deviating": True} if match.deviating else {}),
        **({"would_be_lost": True} if match.would_be_lost else {}),
    }
    return identity, body


def ending_of(stream: str, ending: Ending, reason: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and JSON object of an early termination."""
    row = {} if ending.row is None else {"row": ending.row}
    identity = row_id(ENDING, stream, ending.pattern, ending.version, ending.key, ending.event_id, *row.values())
    body = {
        "id": identity,
        "stream": stream,
        "pattern": ending.pattern,
        "version": ending.version,
        "key": ending.key,
        **row,
        "event": ending.event_id,
        "event_type": ending.event_type,
        "time": format_time(ending.time_us),
        **reason,
    }
    return identity, body


def _why(steps: Mapping[str, str], bindings: Mapping[str, tuple[str, ...]]) -> str:
    """The bound events, each with its step."""
    return "; ".join(
        f"{', '.join(ids)} {'is' if len(ids) == 1 else 'are'} {steps[alias]}" for alias, ids in bindings.items()
    )

"""Matches as JSON objects, one at a time: the reference for ``match_text``, for tests."""

from __future__ import annotations

from typing import Any

from nfa import Match, match_order
from service.runs.stream_report import StreamReport
from streams import format_time, shown_time


def match_document(match: Match) -> dict[str, Any]:
    """A match as ``forestall match`` shows it, without the columns of RETURN."""
    return {
        "pattern": match.pattern,
        "key": match.key,
        "bindings": {alias: list(ids) for alias, ids in match.bindings.items()},
        "start": format_time(match.start_us),
        "end": format_time(match.end_us),
        "detected_at": shown_time(match.detected_us),
        **({} if match.decided_by is None else {"decided_by": match.decided_by}),
        **({"deviating": True} if match.deviating else {}),
        **({"would_be_lost": True} if match.would_be_lost else {}),
    }


def match_documents(report: StreamReport) -> list[dict[str, Any]]:
    """The matches of a report."""
    matches = sorted((match for lane in report.lanes for match in lane.values_of_matches()), key=match_order)
    return [
        match_document(match) | ({"returns": dict(match.returns)} if match.pattern in report.with_returns else {})
        for match in matches
    ]

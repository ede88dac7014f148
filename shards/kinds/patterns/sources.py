"""The part of a pattern with ``suppress`` or ``incident``, and the inner stream of its alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

SUPPRESSION = "suppression"
"""The kind of the part, and the name of the member with its rules in a pattern's definition."""


RESOLUTION = "resolution"
"""The type of the events of an inner stream that close incidents."""
ACKNOWLEDGE: Literal["acknowledge"] = "acknowledge"
"""The type of events of an inner stream by which a person acknowledges an incident."""
CLOSE: Literal["close"] = "close"
"""The type of events of an inner stream by which a person closes an incident."""


def alerts_stream(pattern: str) -> str:
    """The inner stream of the alerts of a pattern that has ``suppress`` or ``incident``."""
    return f"{pattern}.alerts"


def fed_stream(pattern: str, suppression: Mapping[str, Any]) -> str:
    """The inner stream to which a pattern's alerts go: its own, or that of the pattern whose incidents it closes."""
    return alerts_stream(suppression.get("resolves") or pattern)


def shown_quiet(body: Mapping[str, Any]) -> dict[str, Any]:
    """``suppress``, ``incident`` and ``resolves`` of a pattern's document, from the body of its definition."""
    suppression = body.get(SUPPRESSION) or {}
    by = {"by": suppression.get("by")}
    return {
        "suppress": {**by, "for": suppression["for"]} if "for" in suppression else None,
        "incident": {**by, **suppression["incident"]} if "incident" in suppression else None,
        "resolves": {"pattern": suppression["resolves"], **by} if "resolves" in suppression else None,
    }

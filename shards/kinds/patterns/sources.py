"""The operator that decides about a pattern's alerts (``suppress``, ``incident``), and its input, an inner stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

SUPPRESSION = "suppression"
"""Kind of the operator that decides about alerts, and the member of a pattern's definition that has its rules."""


RESOLUTION = "resolution"
"""Type of the events of an inner stream that close incidents."""
ACKNOWLEDGE: Literal["acknowledge"] = "acknowledge"
"""Type of the events of an inner stream by which a person acknowledges an incident."""
CLOSE: Literal["close"] = "close"
"""Type of the events of an inner stream by which a person closes an incident."""


def alerts_stream(pattern: str) -> str:
    """Return the name of the inner stream of a pattern's alerts (patterns with ``suppress`` or ``incident``)."""
    return f"{pattern}.alerts"


def fed_stream(pattern: str, suppression: Mapping[str, Any]) -> str:
    """Return the inner stream that receives the alerts of a pattern.

    A pattern that closes the incidents of another pattern sends its alerts to the inner stream of that pattern.
    """
    return alerts_stream(suppression.get("resolves") or pattern)


def shown_quiet(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``suppress``, ``incident`` and ``resolves`` of a stored body in the form of a pattern's document."""
    suppression = body.get(SUPPRESSION) or {}
    by = {"by": suppression.get("by")}
    return {
        "suppress": {**by, "for": suppression["for"]} if "for" in suppression else None,
        "incident": {**by, **suppression["incident"]} if "incident" in suppression else None,
        "resolves": {"pattern": suppression["resolves"], **by} if "resolves" in suppression else None,
    }

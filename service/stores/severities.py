"""The severities of alerts, from low to critical."""

from __future__ import annotations

from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
USUAL_SEVERITY: Severity = "medium"


def is_as_grave(severity: str, least: Severity) -> bool:
    """Return whether a severity is at least ``least``."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)

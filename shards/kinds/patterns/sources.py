"""The part and the inner stream of a pattern that suppresses alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUPPRESSION = "suppression"
"""The kind of the part, and the member of a pattern's definition."""


def alerts_stream(pattern: str) -> str:
    """The inner stream of the alerts of a pattern that has ``suppress``."""
    return f"{pattern}.alerts"


def shown_suppression(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The member ``suppress`` of a pattern's document, from the body of its definition; None: it has none."""
    found = body.get(SUPPRESSION)
    return None if found is None else {name: found[name] for name in ("by", "for")}

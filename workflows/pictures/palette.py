"""Colours: one set for light pages, one for dark ones, each with enough contrast to read.

Every role is an SVG class. The light colours are attributes of each element, so that a page that blocks styles shows
them; a style sheet changes them for readers who prefer dark pages.
"""

from __future__ import annotations

from collections.abc import Mapping

_Colours = Mapping[str, str]

PREFIX = "fw-"

LIGHT: Mapping[str, _Colours] = {
    "page": {"fill": "#ffffff"},
    "area": {"fill": "#f8fafc", "stroke": "#64748b"},
    "box": {"fill": "#ffffff", "stroke": "#334155"},
    "mark": {"fill": "none", "stroke": "#334155"},
    "solid": {"fill": "#334155"},
    "line": {"fill": "none", "stroke": "#475569"},
    "head": {"fill": "#475569", "stroke": "#475569"},
    "text": {"fill": "#0f172a"},
    "halo": {"fill": "#0f172a", "stroke": "#ffffff"},
    "seen": {"fill": "#fcd34d", "stroke": "#92400e"},
    "seen-text": {"fill": "#0f172a"},
    "expected": {"fill": "none", "stroke": "#1d4ed8"},
    "badge": {"fill": "#92400e", "stroke": "#ffffff"},
    "badge-text": {"fill": "#ffffff"},
}
DARK: Mapping[str, _Colours] = {
    "page": {"fill": "#0f172a"},
    "area": {"fill": "#162032", "stroke": "#94a3b8"},
    "box": {"fill": "#1e293b", "stroke": "#cbd5e1"},
    "mark": {"fill": "none", "stroke": "#cbd5e1"},
    "solid": {"fill": "#cbd5e1"},
    "line": {"fill": "none", "stroke": "#94a3b8"},
    "head": {"fill": "#94a3b8", "stroke": "#94a3b8"},
    "text": {"fill": "#f1f5f9"},
    "halo": {"fill": "#f1f5f9", "stroke": "#0f172a"},
    "seen": {"fill": "#fbbf24", "stroke": "#fde68a"},
    "seen-text": {"fill": "#0f172a"},
    "expected": {"fill": "none", "stroke": "#60a5fa"},
    "badge": {"fill": "#fde68a", "stroke": "#0f172a"},
    "badge-text": {"fill": "#0f172a"},
}


def dark_style() -> str:
    """The style sheet for readers who prefer dark pages."""
    rules = "".join(
        f".{PREFIX}{role}{{{';'.join(f'{name}:{value}' for name, value in colours.items())}}}"
        for role, colours in DARK.items()
    )
    return f"@media (prefers-color-scheme: dark){{{rules}}}"

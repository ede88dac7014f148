"""The views of the console, one module for each page of the menu."""

from __future__ import annotations

from typing import Final

from console.page import View
from console.views import alerts, overview

ROUTES: Final[tuple[tuple[str, str, View], ...]] = (
    ("GET", "/", overview.show),
    ("GET", "/alerts", alerts.show_list),
    ("GET", "/alerts/{id}", alerts.show),
    ("POST", "/alerts/{id}/acknowledge", alerts.acknowledge),
    ("POST", "/alerts/{id}/notes", alerts.add_note),
)
"""Method, path and view of each page; the paths of resources whose names may have slashes come last."""

"""The routes of the console: method, path and view of each page."""

from __future__ import annotations

from typing import Final

from console.page import View
from console.views import (
    alerts,
    asking,
    incidents,
    letters,
    live,
    overview,
    patterns,
    process,
    streams,
    transactions,
    trials,
    webhooks,
)

ROUTES: Final[tuple[tuple[str, str, View], ...]] = (
    ("GET", "/", overview.show),
    ("GET", "/live/alerts", live.follow_alerts),
    ("GET", "/alerts", alerts.show_list),
    ("GET", "/alerts/{id}", alerts.show),
    ("POST", "/alerts/{id}/acknowledge", alerts.acknowledge),
    ("POST", "/alerts/{id}/notes", alerts.add_note),
    ("GET", "/incidents", incidents.show_list),
    ("POST", "/incidents/{id}", incidents.act),
    ("GET", "/find", transactions.find),
    ("GET", "/transactions", transactions.show_list),
    ("GET", "/transactions/{stream}/{key:path}", transactions.show),
    ("GET", "/process", process.show),
    ("GET", "/patterns", patterns.show_list),
    ("GET", "/editor", patterns.edit),
    ("POST", "/editor", patterns.save),
    ("POST", "/trials/check", trials.check),
    ("POST", "/trials/dry-run", trials.dry_run),
    ("POST", "/trials/backtest", trials.begin_backtest),
    ("GET", "/backtests/{id}", trials.show_backtest),
    ("GET", "/patterns/{name:path}", patterns.show),
    ("POST", "/patterns/{name:path}", patterns.change_state),
    ("GET", "/streams", streams.show),
    ("GET", "/webhooks", webhooks.show_list),
    ("GET", "/webhooks/new", webhooks.edit),
    ("POST", "/webhooks/new", webhooks.create),
    ("GET", "/webhooks/{id}", webhooks.show),
    ("POST", "/webhooks/{id}", webhooks.act),
    ("GET", "/sinks/{id}", webhooks.show),
    ("POST", "/sinks/{id}", webhooks.act),
    ("GET", "/ask", asking.show),
    ("GET", "/dead-letters", letters.show_list),
    ("POST", "/dead-letters", letters.replay),
    ("GET", "/dead-letters/{id}", letters.show),
    ("POST", "/dead-letters/{id}", letters.replay),
)
"""Method, path and view of each page."""

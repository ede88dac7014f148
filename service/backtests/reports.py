"""The result of a backtest as plain JSON. Later releases may add fields, but never change fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import BacktestResult
from shards import RESULT_KINDS, ComparisonCounts, VariantCounts
from streams import format_time, parse_time

_NS = 1_000_000_000
COUNTED = tuple(kind for kind in RESULT_KINDS.values() if kind.in_backtests != "no")
LISTED = tuple(kind for kind in COUNTED if kind.in_backtests == "listed")


def summary_document(result: BacktestResult) -> dict[str, Any]:
    """Return the summary of a backtest: counts and costs of its variants and comparisons, without alerts."""
    names = list(result.variants)
    tested = result.variants[names[0]]
    return {
        "events": result.events,
        "first_time": None if result.first_us is None else format_time(result.first_us),
        "last_time": None if result.last_us is None else format_time(result.last_us),
        "variants": [{"name": name, **_variant(counts)} for name, counts in result.variants.items()],
        "comparisons": [
            {"with": name, **_comparison(counts, tested, result.variants[name])}
            for name, counts in result.comparisons.items()
        ],
        "read_s": round(result.read_s, 3),
        "match_s": round(result.match_s, 3),
    }


def alerts_of(result: BacktestResult, limit: int) -> list[dict[str, Any]]:
    """Return up to ``limit`` alerts of all variants, sorted by end time.

    The ``change`` of an alert of the first variant is ``added`` if another variant lacks the alert, and otherwise None.
    An alert that only another variant has is ``lost``. ``compared_with`` names the other variant or variants.
    """
    added: dict[str, list[str]] = {}
    for place, alerts in result.rows.items():
        label, _, variant = place.partition(".")
        if label == "added":
            for alert in alerts:
                added.setdefault(alert["id"], []).append(variant)
    tested = [
        {"change": "added" if alert["id"] in added else None, "compared_with": added.get(alert["id"], []), **alert}
        for alert in result.rows.get("alert", ())
    ]
    lost = [
        {"change": "lost", "compared_with": [place.partition(".")[2]], **alert}
        for place, alerts in result.rows.items()
        if place.startswith("lost.")
        for alert in alerts
    ]
    return sorted([*tested, *lost], key=_order)[:limit]


def differences_of(result: BacktestResult, variant: str, limit: int) -> tuple[list[Mapping[str, Any]], ...]:
    """Return how the first variant differs from ``variant``: the list of added results and the list of lost results.

    Added results are missing in ``variant``. Lost results are missing in the first variant. Each list is sorted by
    end time and has at most ``limit`` results.
    """
    rows_by_change: dict[str, list[Mapping[str, Any]]] = {"added": [], "lost": []}
    for place, rows in result.rows.items():
        label, _, name = place.partition(".")
        change = label.partition("-")[0]
        if name == variant and change in rows_by_change:  # other rows of the variant are suspensions
            rows_by_change[change] += rows
    added, lost = (sorted(changed_rows, key=_order)[:limit] for changed_rows in rows_by_change.values())
    return added, lost


def rows_of(result: BacktestResult, kind: str, limit: int) -> Sequence[Mapping[str, Any]]:
    """Return up to ``limit`` results of a kind that the first variant has found. Alerts are sorted by end time."""
    rows = result.rows.get(kind, ())
    return (sorted(rows, key=_order) if kind == "alert" else rows)[:limit]


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a result. A derived event has one time, which is used as its end and its start."""
    end, start = parse_time(row.get("end") or row["time"]), parse_time(row.get("start") or row["time"])
    return end, start, sorted(row.get("bindings", {}).items()), row["pattern"], row["key"]


def _variant(counts: VariantCounts) -> dict[str, Any]:
    return {
        **{kind.member: counts.rows[kind.name] for kind in COUNTED},
        "alerts_by_pattern": dict(sorted(counts.patterns.items())),
        "dead_letters_by_code": dict(sorted(counts.reasons.items())),
        "released": counts.released,
        "open_traces": counts.open_traces,
        "peak_held": counts.peak_held,
        "peak_state_bytes": counts.peak_state_bytes,
        "busy_s": round(counts.busy_ns / _NS, 3),
    }


def _comparison(counts: ComparisonCounts, tested: VariantCounts, other: VariantCounts) -> dict[str, Any]:
    return {
        **counts.to_document(),
        "peak_held_ratio": _ratio(tested.peak_held, other.peak_held),
        "peak_state_bytes_ratio": _ratio(tested.peak_state_bytes, other.peak_state_bytes),
        "busy_ratio": _ratio(tested.busy_ns, other.busy_ns),
    }


def _ratio(tested: int, other: int) -> float | None:
    return round(tested / other, 3) if other else None

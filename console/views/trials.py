"""Trying patterns: checks while typing, dry runs over the newest events, backtests over the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from console.calls import at, reason_of
from console.charts import histogram
from console.page import Page, all_of, rendered
from console.views.patterns import SAMPLE, show_draft
from forestall import ApiError, ServiceUnreachable

_KEPT_ALERTS: Final = 1_000
_SHOWN: Final = 100
_MOST_EVENTS: Final = 100_000
_OF_THE_SAMPLE: Final = "in these events"  # in warnings about types that the sample lacks


async def check(page: Page) -> Response:
    """Check the editor's text. Return JSON: the error with line and column, or warnings."""
    form = await page.form()
    try:
        trial = await _dry_run(page, form, SAMPLE)
    except ApiError as refusal:
        problem = refusal.problem
        where = {"line": problem.get("line"), "column": problem.get("column")}
        return JSONResponse({"error": _without_place(reason_of(refusal)), **where})
    except ServiceUnreachable as error:
        return JSONResponse({"error": str(error), "line": None, "column": None})
    return JSONResponse({"error": None, "warnings": _certain(trial["warnings"])})


def _certain(warnings: Sequence[str]) -> list[str]:
    """Leave out warnings about types that may only be rare: without a suggestion, or where another warning is."""
    places = {warning.partition(": ")[0] for warning in warnings if _OF_THE_SAMPLE not in warning}
    return [
        warning
        for warning in warnings
        if _OF_THE_SAMPLE not in warning or ("did you mean" in warning and warning.partition(": ")[0] not in places)
    ]


def _without_place(text: str) -> str:
    place, _, rest = text.partition(": ")
    return rest if place.startswith("line ") and rest else text


async def _dry_run(page: Page, form: dict[str, str], events: int) -> Any:
    body = {"stream": form.get("stream", ""), "text": form.get("text", ""), "events": events}
    return await page.api.ask("/patterns/dry-run", {**body, "constraints": form.get("constraints") or "on"})


async def dry_run(page: Page) -> Response:
    """Try the editor's pattern on the newest events. Return the result as a fragment of the page."""
    form = await page.form()
    try:
        events = min(_MOST_EVENTS, max(1, int(form.get("events") or 10_000)))
    except ValueError:
        events = 10_000
    try:
        trial = await _dry_run(page, form, events)
    except ApiError as refusal:
        hint = (
            "" if refusal.code != "too-much-work" else ". Choose fewer events, or a backtest, which has no such limit."
        )
        return rendered(page.request, "dry_run.html", error=reason_of(refusal) + hint, found=None)
    chart = histogram((match["end"] for match in trial["matches"]), "matches")
    return rendered(page.request, "dry_run.html", found=trial, found_chart=chart, error="")


async def begin_backtest(page: Page) -> Response:
    """Start a backtest of the editor's pattern over the retained log. The registered version is compared with it."""
    form = await page.form()
    body: dict[str, Any] = {"stream": form.get("stream", ""), "pattern": form.get("text", ""), "source": {"log": True}}
    if form.get("against"):
        body["against"] = {"name": form["against"]}
    try:
        backtest = await page.api.send("POST", "/backtests", body)
    except ApiError as refusal:
        return await show_draft(page, form.get("against") or None, form, reason_of(refusal))
    return page.go(at("backtests", backtest["id"]))


async def _reasons(page: Page, backtest: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a pattern for which a backtest over the log has found no match.

    They are about the newest events of the log, so a backtest over files has none.
    """
    if not backtest["source"]["log"] or any(
        variant["alerts"] for variant in backtest["result"]["variants"] if variant["name"] == "pattern"
    ):
        return []
    forms = [{"text": pattern["text"], "stream": backtest["stream"]} for pattern in backtest["patterns"]]
    try:
        trials = [await _dry_run(page, form, SAMPLE) for form in forms]
    except ApiError:  # the stream may have changed since
        return []
    return [warning for trial in trials for warning in _certain(trial["warnings"])]


async def show_backtest(page: Page) -> Response:
    """Render a backtest: its progress, then the alerts that the new pattern adds and loses."""
    backtest = await page.get(at("backtests", page.place("id")))
    alerts: list[Any] = []
    if backtest["state"] == "done":
        (listed,) = await all_of(page.get(at("backtests", backtest["id"], "alerts"), limit=_KEPT_ALERTS))
        alerts = listed["items"]
    return page.render(
        "backtest.html",
        title="Backtest",
        backtest=backtest,
        alerts=alerts[:_SHOWN],
        warnings=[] if backtest["result"] is None else backtest["result"]["warnings"] or await _reasons(page, backtest),
        charted=len(alerts),
        kept=backtest["result"]["alerts_kept"] if backtest["result"] else 0,
        found_chart=histogram((alert["detected_at"] for alert in alerts if alert["change"] != "lost"), "matches"),
        is_over=backtest["state"] not in ("queued", "running"),
    )

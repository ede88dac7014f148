"""Alerts: the list, which grows while alerts arrive, and single alerts with their history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from console.calls import at, reason_of
from console.page import Page, all_of, allowed
from console.views.webhooks import receivers_of
from forestall import ApiError

_PAGE: Final = 50
_FILTERS: Final = ("stream", "pattern", "key", "since", "until", "acknowledged")
_MOST_RECEIVERS: Final = 50
_MOST_ATTEMPTS: Final = 100  # for each receiver


async def show_list(page: Page) -> Response:
    """Render a page of alerts, the newest first."""
    filters: dict[str, Any] = {name: page.query(name) for name in _FILTERS}
    listed, patterns, names = await all_of(
        page.get("/alerts", **filters, after=page.query("after"), limit=_PAGE),
        page.pattern_names(),
        page.stream(),
    )
    is_live = not page.query("after") and filters["until"] is None and filters["acknowledged"] != "true"
    return page.render(
        "alerts.html",
        title="Alerts",
        alerts=listed["items"],
        next=listed["next"],
        after=listed["after"],
        wanted=filters,
        is_live=is_live,
        names=names[1],
        patterns=patterns,
        has_filters=any(value for value in filters.values()),
    )


async def show(page: Page) -> Response:
    """Render one alert: events on a time line, why it matched, who handles it, and its deliveries."""
    alert = await page.get(at("alerts", page.place("id")))
    trace, pattern, (deliveries, unlisted, is_cut) = await all_of(
        _trace(page, alert),
        allowed(page.get(at("patterns", alert["pattern"], "versions", str(alert["version"])))),
        allowed(_deliveries(page, alert), ([], [], False)),
    )
    events = trace["newest_events"]
    bound = {event: alias for alias, ids in alert["bindings"].items() for event in ids}
    event_ids = {event["id"] for event in events}
    return page.render(
        "alert.html",
        title=f"{alert['pattern']} in {alert['key']}",
        alert=alert,
        pattern=pattern,
        total_events=trace.get("total_events", 0),
        events=[{**event, "alias": bound.get(event["id"])} for event in events],
        unknown=[(alias, event) for event, alias in bound.items() if event not in event_ids],
        why_unknown=_why_unknown(trace),
        deliveries=deliveries,
        unlisted=unlisted,
        most_receivers=_MOST_RECEIVERS if is_cut else None,
    )


async def _trace(page: Page, alert: Any) -> dict[str, Any]:
    try:
        trace: dict[str, Any] = await page.get(at("traces", alert["stream"], alert["key"]), by=alert.get("route"))
    except ApiError as refusal:
        return {"newest_events": [], "refusal": refusal}
    return trace


def _why_unknown(trace: Mapping[str, Any]) -> str:
    refusal, event_count = trace.get("refusal"), len(trace["newest_events"])
    if refusal is not None:
        return "No longer in the log" if refusal.status == 404 else f"No time line, because {reason_of(refusal)}"
    if trace["total_events"] > event_count:
        return f"Not among the newest {event_count} events of the transaction"
    if trace["earlier_events"]:
        return "Not in the last transaction of this key"
    return "No longer in the log" if trace["is_complete"] else "Not in the part of the log that was read"


async def acknowledge(page: Page) -> Response:
    """Acknowledge an alert under the name of the session's key."""
    await page.form()
    path = f"/alerts/{page.place('id')}"
    call = page.api.send("POST", at("alerts", page.place("id"), "acknowledge"), {"by": page.session.name})
    return await page.change(call, path, "The alert is acknowledged.")


async def add_note(page: Page) -> Response:
    """Add a note to an alert."""
    form = await page.form()
    path = f"/alerts/{page.place('id')}"
    body = {"text": form.get("text", ""), "by": page.session.name}
    return await page.change(page.api.send("POST", at("alerts", page.place("id"), "notes"), body), path, "Noted.")


async def _deliveries(page: Page, alert: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Return the attempts to deliver an alert, and what is left out.

    The second result has the receivers with further attempts. The third is whether receivers beyond the limit were not
    asked.
    """
    candidates, is_cut = await receivers_of(page, None, _MOST_RECEIVERS, 1.0)
    receivers = [candidate for candidate in candidates if candidate["stream"] in (None, alert["stream"])]
    attempts = await all_of(
        *(
            page.get(f"{candidate['path']}/deliveries", result_id=alert["id"], limit=_MOST_ATTEMPTS, age_s=5.0)
            for candidate in receivers
        )
    )
    deliveries = [
        {**attempt, "receiver": receiver}
        for receiver, listed in zip(receivers, attempts, strict=True)
        for attempt in listed["items"]
    ]
    unlisted = [receiver for receiver, listed in zip(receivers, attempts, strict=True) if listed["next"]]
    return deliveries, unlisted, is_cut

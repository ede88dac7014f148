"""Receivers of results, which are webhooks and other sinks: health, attempts, test messages, redelivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from console.calls import at, reason_of
from console.formats import plural, span
from console.page import Page, all_of, allowed
from forestall import ApiError

RECEIVERS: Final = ("/webhooks", "/sinks")
SEVERITIES: Final = ("low", "medium", "high", "critical")
_MOST_SHOWN: Final = 50
_KINDS: Final[Mapping[str, str]] = {
    "alert": "alerts",
    "correction": "corrections of alerts",
    "pattern.suspended": "suspended patterns",
    "join.suspended": "suspended joins",
    "aggregate.suspended": "suspended aggregates",
    "deviation": "deviations from the process",
    "ending": "early terminations",
    "derived": "derived events",
    "alert.suppressed": "suppressed alerts",
    "incident.opened": "opened incidents",
    "incident.updated": "updated incidents",
    "incident.closed": "closed incidents",
}
_USUAL: Final = ("alert", "correction", "pattern.suspended", "join.suspended", "aggregate.suspended")


async def show_list(page: Page) -> Response:
    """Render the webhooks and the other sinks with their health."""
    stream = page.parameter("stream")
    webhooks, sinks = await all_of(
        page.get("/webhooks", stream=stream, after=page.query("after"), limit=_MOST_SHOWN),
        allowed(page.get("/sinks", stream=stream), {"items": []}),
    )
    return page.render(
        "webhooks.html",
        title="Webhooks",
        receivers={"/webhooks": webhooks["items"], "/sinks": sinks["items"]},
        next=webhooks["next"],
        stream=stream,
        health=health,
    )


async def receivers_of(page: Page, stream: str | None, most: int, age_s: float) -> tuple[list[Any], bool]:
    """Return webhooks and other sinks with their delivery states, and whether there are more of them.

    At most ``most`` webhooks and ``most`` other sinks are returned. Each has its ``path`` in the API.
    """
    calls = (page.get(path, stream=stream, limit=most, age_s=age_s) for path in RECEIVERS)
    lists = await all_of(*(allowed(call, {"items": []}) for call in calls))
    receivers = [
        {**receiver, "path": f"{path}/{receiver['id']}"}
        for path, listed in zip(RECEIVERS, lists, strict=True)
        for receiver in listed["items"]
    ]
    return receivers, any(listed.get("next") for listed in lists)


def health(receiver: Any) -> tuple[str, str]:
    """Return the health of a receiver as a level, and as a word for users."""
    if not receiver["enabled"]:
        return "warn", "off"
    if receiver["failing_since"]:
        return "bad", "failing"
    return ("ok", "delivers") if receiver["delivered"] else ("", "nothing sent yet")


async def edit(page: Page) -> Response:
    """Render the form for a new webhook."""
    return await _form(page, {"stream": page.query("stream") or "", "min_severity": ""}, _USUAL)


async def _form(page: Page, draft: Mapping[str, str], chosen: Sequence[str], error: str = "") -> Response:
    _, names = await page.stream(is_derived=True)
    return page.render(
        "webhook_form.html",
        400 if error else 200,
        title="New webhook",
        draft=draft,
        names=names,
        patterns=await page.pattern_names(),
        severities=SEVERITIES,
        kinds=_KINDS,
        chosen=chosen,
        error=error,
    )


async def create(page: Page) -> Response:
    """Register a webhook. The next page shows its secret once."""
    form = await page.form()
    kinds = [kind for kind in _KINDS if form.get(f"kind {kind}")]
    members = ("url", "name", "description", "stream", "pattern", "min_severity")
    body = {**{name: form[name].strip() for name in members if form.get(name, "").strip()}, "kinds": kinds}
    try:
        webhook = await page.api.send("POST", "/webhooks", body)
    except ApiError as refusal:
        return await _form(page, form, kinds, reason_of(refusal))
    page.session.notify(f"Its secret, shown only now: {webhook['secret']} Receivers check signatures with it.")
    return page.go(at("webhooks", webhook["id"]), "The webhook is registered. Send it a test message.")


async def show(page: Page) -> Response:
    """Render one receiver with its newest attempts."""
    path = _path(page)
    receiver, attempts = await all_of(
        page.get(path), page.get(f"{path}/deliveries", after=page.query("after"), limit=_MOST_SHOWN)
    )
    return page.render(
        "webhook.html",
        title=receiver["description"] or receiver["name"] or receiver.get("url") or receiver["address"],
        webhook=receiver,
        action=path,
        health=health(receiver),
        attempts=attempts["items"],
        next=attempts["next"],
    )


def _path(page: Page) -> str:
    """Return the path of a receiver. It is the same in the API and in the console."""
    return at(page.request.url.path.split("/")[1], page.place("id"))


def _delivered(result: Any) -> str:
    return "delivered" if result["is_delivered"] else "not delivered"


async def act(page: Page) -> Response:
    """Handle a button of a receiver's page: send a test message, redeliver, enable, or disable."""
    form = await page.form()
    path = _path(page)
    action = form.get("action", "")
    if action == "test":
        result = await page.api.send("POST", f"{path}/test")
        text = f"status {result['http_status']}" if result["http_status"] else result["error"] or "written"
        page.session.notify(
            f"The test message was {_delivered(result)}: {text}, {span(result['duration_s'])}.",
            "ok" if result["is_delivered"] else "bad",
        )
        return page.go(path)
    if action == "redeliver":
        delivery = form.get("delivery")
        call = f"{path}/deliveries/{at(delivery)[1:]}/redeliver" if delivery else f"{path}/redeliver"
        result = await page.api.send("POST", call)
        return page.go(path, f"{plural(result['queued'], 'delivery', 'deliveries')} will be sent again.")
    if action not in ("enable", "disable"):
        return page.go(path)
    is_on = action == "enable"
    done = f"It is switched {'on' if is_on else 'off'}."
    return await page.change(page.api.send("PATCH", path, {"enabled": is_on}), path, done)

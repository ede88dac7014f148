"""Webhooks: their health, the attempts to deliver, a test message, deliveries sent again."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from console.calls import at
from console.formats import plural, span
from console.page import Page, all_of

_MOST_SHOWN = 50


async def show_list(page: Page) -> Response:
    """Render the webhooks with their health."""
    listed = await page.api.get("/webhooks", stream=page.query("stream"), after=page.query("after"), limit=_MOST_SHOWN)
    webhooks = await all_of(*(page.api.recent(at("webhooks", one["id"])) for one in listed["items"]))
    _, names = await page.stream(is_derived=True)
    return page.render(
        "webhooks.html",
        title="Webhooks",
        webhooks=webhooks,
        next=listed["next"],
        names=names,
        stream=page.query("stream"),
        health=health,
    )


def health(webhook: Any) -> tuple[str, str]:
    """The state of a webhook: a level and a word."""
    if not webhook["enabled"]:
        return "warn", "off"
    if webhook["failing_since"]:
        return "bad", "failing"
    return ("ok", "delivers") if webhook["delivered"] else ("", "nothing sent yet")


async def show(page: Page) -> Response:
    """Render one webhook with its newest attempts."""
    path = at("webhooks", page.place("id"))
    webhook, attempts = await all_of(
        page.api.get(path), page.api.get(f"{path}/deliveries", after=page.query("after"), limit=_MOST_SHOWN)
    )
    return page.render(
        "webhook.html",
        title=webhook["description"] or webhook["url"],
        webhook=webhook,
        health=health(webhook),
        attempts=attempts["items"],
        next=attempts["next"],
    )


def _delivered(result: Any) -> str:
    return "delivered" if result["is_delivered"] else "not delivered"


async def act(page: Page) -> Response:
    """Send a test message or deliveries again, or switch a webhook on or off."""
    form = await page.form()
    path = at("webhooks", page.place("id"))
    action = form.get("action", "")
    if action == "test":
        result = await page.api.send("POST", f"{path}/test")
        text = f"status {result['http_status']}" if result["http_status"] else result["error"]
        page.session.notify(
            f"The test message was {_delivered(result)}: {text}, {span(result['duration_s'])}.",
            is_error=not result["is_delivered"],
        )
        return page.go(path)
    if action == "redeliver":
        delivery = form.get("delivery")
        call = f"{path}/deliveries/{at(delivery)[1:]}/redeliver" if delivery else f"{path}/redeliver"
        result = await page.api.send("POST", call)
        return page.go(path, f"{plural(result['queued'], 'delivery', 'deliveries')} will be sent again.")
    is_on = action == "enable"
    done = f"The webhook is switched {'on' if is_on else 'off'}."
    return await page.change(page.api.send("PATCH", path, {"enabled": is_on}), path, done)

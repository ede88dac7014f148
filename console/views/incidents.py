"""Incidents: groups of alerts, who handles them, and closing them."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from console.calls import at
from console.page import Page, all_of

_PAGE: Final = 50
_DONE: Final = {"acknowledge": "acknowledged", "close": "closed"}


async def show_list(page: Page) -> Response:
    """Render the incidents in a state, by default open ones, the newest first."""
    filters: dict[str, Any] = {name: page.query(name) for name in ("stream", "pattern")}
    state = page.request.query_params.get("state", "open")
    listed, patterns, names = await all_of(
        page.get("/incidents", **filters, state=state, after=page.query("after"), limit=_PAGE),
        page.pattern_names(),
        page.stream(),
    )
    return page.render(
        "incidents.html",
        title="Incidents",
        incidents=listed["items"],
        next=listed["next"],
        wanted={**filters, "state": state},
        names=names[1],
        patterns=patterns,
    )


async def act(page: Page) -> Response:
    """Acknowledge or close an incident under the name of the session's key."""
    form = await page.form()
    action = form.get("action", "")
    if action not in _DONE:
        return page.go("/incidents")
    call = page.api.send("POST", at("incidents", page.place("id"), action), {"by": page.session.name})
    return await page.change(call, "/incidents", f"The incident will be {_DONE[action]} in a moment.")

"""Incidents: groups of alerts, who handles them, and closing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from console.calls import at
from console.page import Page, all_of, allowed

_PAGE: Final = 50
_VERSION_AGE_S: Final = 60.0  # a version never changes
_DONE: Final = {"acknowledge": "acknowledged", "close": "closed"}


async def show_list(page: Page) -> Response:
    """Render the incidents in a state, by default open ones, the newest first."""
    filters: dict[str, Any] = {name: page.query(name) for name in ("stream", "pattern")}
    state = page.request.query_params.get("state", "open")
    listed, patterns, names = await all_of(
        page.get("/incidents", **filters, state=state, after=page.query("after"), limit=_PAGE),
        page.patterns(),
        page.stream(),
    )
    return page.render(
        "incidents.html",
        title="Incidents",
        incidents=await _with_routes(page, listed["items"], patterns),
        next=listed["next"],
        wanted={**filters, "state": state},
        names=names[1],
        patterns=[pattern["name"] for pattern in patterns],
    )


async def _with_routes(
    page: Page, incidents: Sequence[Mapping[str, Any]], patterns: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Add the member ``route`` to each incident: the name of the further key that its pattern version uses, or None."""
    routes = {(pattern["name"], pattern["version"]): pattern["route"] for pattern in patterns}
    names = {pattern["name"] for pattern in patterns}
    versions = sorted(
        {(incident["pattern"], incident["version"]) for incident in incidents if incident["pattern"] in names}
        - routes.keys()
    )
    paths = (at("patterns", name, "versions", str(version)) for name, version in versions)
    records = await all_of(*(allowed(page.get(path, age_s=_VERSION_AGE_S), {"route": None}) for path in paths))
    routes |= {version: record["route"] for version, record in zip(versions, records, strict=True)}
    return [{**incident, "route": routes.get((incident["pattern"], incident["version"]))} for incident in incidents]


async def act(page: Page) -> Response:
    """Acknowledge or close an incident under the name of the session's key."""
    form = await page.form()
    action = form.get("action", "")
    if action not in _DONE:
        return page.go("/incidents")
    call = page.api.send("POST", at("incidents", page.place("id"), action), {"by": page.session.name})
    return await page.change(call, "/incidents", f"The incident will be {_DONE[action]} in a moment.")

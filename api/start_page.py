"""The page at ``/``: the service, its readiness, and links to its description. Programs get an index in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from api.services import Services
from service import StoreUnavailable, missing_parts, pipeline_overview

START_PATHS: Final = ("/", "/v1")

_LINKS: Final = {
    "description": "openapi.json",
    "manual": "manual/",
    "docs": "docs",
    "redoc": "redoc",
    "health": "v1/health",
    "ready": "v1/ready",
}
_WORDS: Final = {
    "manual": "Manual",
    "docs": "API, to try",
    "redoc": "API, to read",
    "description": "API, for programs",
    "ready": "State",
}
_MOST_STREAMS: Final = 50
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Forestall</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="docs/assets/favicon.png">
<style>:root {{ color-scheme: light dark }} body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem;
margin: 3rem auto; padding: 0 1rem }} li {{ margin: .2rem 0 }} code {{ font-size: .95em }}</style></head>
<body><h1>Forestall <small>{version}</small></h1>
<p>Complex event processing that knows the workflow behind the events.</p>
<p>{state}</p>
<ul>{links}</ul>{streams}</body></html>
"""


def add_start_page(app: FastAPI) -> None:
    """Add the start page. Clients that prefer HTML get HTML, other clients get JSON."""

    async def show_start(request: Request) -> Response:
        services: Services = request.state.services
        if "text/html" not in request.headers.get("accept", ""):
            links = {name: f"/{path}" for name, path in _LINKS.items()}
            index = {"name": app.title, "version": version("forestall"), "links": links}
            return JSONResponse(index, headers={"Vary": "Accept"})
        missing, streams = await run_in_threadpool(_service_state, services)
        links = {_LINKS[name]: text for name, text in _WORDS.items()}
        if services.settings.console_port:
            port = services.settings.console_port
            links |= {str(request.url.replace(scheme="http", port=port, path="/", query="")): "Console"}
        page = _PAGE.format(
            version=escape(version("forestall")),
            state=f"Not ready: {escape('; '.join(missing))}."
            if missing
            else "Ready: it takes events and matches them.",
            links="".join(f'<li><a href="{escape(link)}">{text}</a></li>' for link, text in links.items()),
            streams=streams,
        )
        headers = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Vary": "Accept"}
        return HTMLResponse(page, headers=headers)

    for path in START_PATHS:
        app.add_route(path, show_start, include_in_schema=False)


def _service_state(services: Services) -> tuple[Sequence[str], str]:
    """Return the components that are not ready, and the list of streams as HTML.

    The HTML is empty if the service requires a key.
    """
    missing = missing_parts(services.stores, services.settings, services.clock)
    try:
        return missing, "" if services.ring.is_demanded() else _streams(services)
    except StoreUnavailable:
        return missing, ""


def _streams(services: Services) -> str:
    overview = pipeline_overview(services.stores, services.clock)
    open_counts = {state.name: f": open transactions {state.open_traces or 0:,}" for state in overview.streams}
    names = [stream.name for stream in services.stores.registry.streams()]
    cut = f'<p>The first {_MOST_STREAMS} of {len(names):,} streams. <a href="v1/streams">All streams</a></p>'
    listed = names[:_MOST_STREAMS]
    items = "".join(f"<li><code>{escape(name)}</code>{open_counts.get(name, '')}</li>" for name in listed)
    rate = (
        ""
        if overview.rate is None
        else f"<p>{overview.rate.events:,.1f} events matched per second in the last minute.</p>"
    )
    return f"<h2>Streams</h2>{rate}<ul>{items}</ul>{cut if len(names) > len(listed) else ''}" if names else ""

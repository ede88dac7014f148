"""Pages for reading and trying out the API: ``/docs`` (Swagger UI) and ``/redoc``.

This server provides all assets, so the pages work without the internet. Their content security policy forbids the
browser to fetch anything from other hosts.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Final

import fastapi_offline
from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

from api.manual import MANUAL_PATHS, add_manual

DOCS: Final = "/docs"
REDOC: Final = "/redoc"
ICON: Final = "/favicon.ico"
_ASSETS: Final = "/docs/assets"
_SWAGGER_JS, _SWAGGER_CSS, _REDOC_JS, _ICON = (
    "swagger-ui-bundle.js",
    "swagger-ui.css",
    "redoc.standalone.js",
    "favicon.png",
)
PAGE_PATHS = frozenset(
    {DOCS, REDOC, ICON, *MANUAL_PATHS, *(f"{_ASSETS}/{name}" for name in (_SWAGGER_JS, _SWAGGER_CSS, _REDOC_JS, _ICON))}
)

_DESCRIPTION = "openapi.json"  # relative, like all addresses in the pages, so that a proxy may add a path prefix
_KEPT_S = 86_400
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_pages(app: FastAPI) -> None:
    """Add the pages, their assets, and the manual."""
    add_manual(app)
    docs = get_swagger_ui_html(
        openapi_url=_DESCRIPTION,
        title=app.title,
        swagger_js_url=_address(_SWAGGER_JS),
        swagger_css_url=_address(_SWAGGER_CSS),
        swagger_favicon_url=_address(_ICON),
    )
    redoc = get_redoc_html(
        openapi_url=_DESCRIPTION,
        title=app.title,
        redoc_js_url=_address(_REDOC_JS),
        redoc_favicon_url=_address(_ICON),
        with_google_fonts=False,
    )
    assets = StaticFiles(packages=[(fastapi_offline.__name__, "static")])

    async def show_docs(_: Request) -> Response:
        return _guarded(docs)

    async def show_redoc(_: Request) -> Response:
        return _guarded(redoc)

    async def give_asset(request: Request) -> Response:
        answer = await assets.get_response(request.path_params.get("name", _ICON), request.scope)
        answer.headers.update({**_NO_SNIFFING, "Cache-Control": f"public, max-age={_KEPT_S}"})
        return answer

    for path, endpoint in (
        (DOCS, show_docs),
        (REDOC, show_redoc),
        (ICON, give_asset),
        (f"{_ASSETS}/{{name}}", give_asset),
    ):
        app.add_route(path, endpoint, include_in_schema=False)


def _address(asset: str) -> str:
    return f"{_ASSETS}/{asset}".removeprefix("/")


def _guarded(page: HTMLResponse) -> HTMLResponse:
    """Return the page with a content security policy: only its inline scripts and this server's scripts may run."""
    text = bytes(page.body).decode()
    digests = (b64encode(sha256(script.encode()).digest()).decode() for script in _INLINE.findall(text))
    scripts = " ".join(("'self'", *(f"'sha256-{digest}'" for digest in digests)))
    return HTMLResponse(text, headers={**_NO_SNIFFING, "Content-Security-Policy": _POLICY.format(scripts=scripts)})

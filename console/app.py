"""The console's application: its routes, who may see them, and error pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from console.calls import reason_of
from console.entering import entering
from console.guarding import Guard
from console.page import FormRefused, Page, View, rendered
from console.routes import ROUTES
from console.sessions import COOKIE, Sessions
from forestall import ApiError, ServiceUnreachable, UnexpectedAnswer

_FOREVER = "public, max-age=31536000, immutable"
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def create_console(url: str, *, hosts: Collection[str] = ()) -> Starlette:
    """Create the console of the service at ``url``. It answers requests to the names ``hosts`` and to IP addresses."""
    sessions = Sessions()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await sessions.close_all()

    app = Starlette(
        lifespan=lifespan,
        middleware=[Middleware(Guard, hosts=hosts), Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=4)],
        exception_handlers={404: _missing},
    )
    app.state.sessions = sessions
    app.state.url = url.rstrip("/").removesuffix("/v1")
    app.router.routes.extend(
        [
            Route("/static/{digest}/{name}", _static),
            *entering(),
            *(Route(path, _endpoint(view), methods=[method]) for method, path, view in ROUTES),
        ]
    )
    return app


def _endpoint(view: View) -> Any:
    async def show(request: Request) -> Response:
        session = request.app.state.sessions.find(request.cookies.get(COOKIE, ""))
        if session is None:
            return _to_login(request)
        page = Page(request, session)
        try:
            return await view(page)
        except (ServiceUnreachable, UnexpectedAnswer) as error:
            return page.render("gone.html", 503, title="No answer", reason=str(error))
        except ApiError as refusal:
            return await _refused(page, refusal)
        except FormRefused:
            return page.render("refused.html", 403, title="Refused", reason="The form is not from this session's page.")

    return show


async def _refused(page: Page, refusal: ApiError) -> Response:
    if refusal.status == 401:
        await page.request.app.state.sessions.close(page.request.cookies.get(COOKIE, ""))
        return _to_login(page.request)
    title = "Not found" if refusal.status == 404 else "Refused"
    return page.render("refused.html", refusal.status, title=title, reason=reason_of(refusal))


def _to_login(request: Request) -> Response:
    if request.headers.get("sec-fetch-mode") not in (None, "navigate"):
        return PlainTextResponse("log in", 401)
    if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
        return rendered(request, "again.html")  # a cross-site request lacks the cookie, so the page reloads
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(str(request.url_for("login").include_query_params(next=path).replace(scheme="", netloc="")))


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    file = files(__package__) / "static" / name
    if "/" in name or not file.is_file():
        return await _missing(request, None)
    return Response(file.read_bytes(), media_type=_KINDS[name.rpartition(".")[2]], headers={"Cache-Control": _FOREVER})


async def _missing(request: Request, _: Any) -> Response:
    session = request.app.state.sessions.find(request.cookies.get(COOKIE, ""))
    if session is None:
        return PlainTextResponse("not found", 404)
    reason = f"There is no page {request.url.path}."
    return Page(request, session).render("refused.html", 404, title="Not found", reason=reason)

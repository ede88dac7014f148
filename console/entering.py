"""Login with an API key, and logout."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from console.guarding import is_own_change
from console.page import FormRefused, read_form, rendered
from console.sessions import COOKIE
from forestall import ApiError, ServiceUnreachable, UnexpectedAnswer


def entering() -> list[Route]:
    """Return the routes of login and logout, which need no session."""
    return [
        Route("/login", _show_login, name="login"),
        Route("/login", _log_in, methods=["POST"]),
        Route("/logout", _log_out, methods=["POST"]),
    ]


async def _show_login(request: Request) -> Response:
    return _login(request, request.query_params.get("next", "/"))


def _login(request: Request, path: str, error: str = "", status: int = 200) -> Response:
    return rendered(request, "login.html", status, next=path, error=error, url=request.app.state.url)


async def _log_in(request: Request) -> Response:
    try:
        form = await read_form(request)
    except FormRefused:
        return _login(request, "/", "The form could not be read.", 400)
    path = _own_path(form.get("next", "/"))
    if not is_own_change(request, "", ""):
        return _login(request, path, "The form was sent by another site.", 403)
    key = form.get("key", "").strip()
    if not (key.isascii() and key.isprintable()):  # an HTTP header cannot contain such a key
        return _login(request, path, "This is not an API key: it has characters that no key has.", 403)
    sessions = request.app.state.sessions
    api = sessions.api(request.app.state.url, key or None)
    try:
        caller = await api.get("/caller")
    except (ServiceUnreachable, UnexpectedAnswer) as error:
        await sessions.release(api)
        return _login(request, path, f"{error}; is the service running?", 503)
    except ApiError as error:
        await sessions.release(api)
        return _login(request, path, error.detail, 403)
    cookie = await sessions.open(api, caller)
    answer = RedirectResponse(path, status_code=303)
    answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


async def _log_out(request: Request) -> Response:
    sessions = request.app.state.sessions
    cookie = request.cookies.get(COOKIE, "")
    session = sessions.find(cookie)
    if session is not None and is_own_change(request, session.token, (await read_form(request)).get("token", "")):
        await sessions.close(cookie)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


def _own_path(path: str) -> str:
    """Return ``path`` if it is a page of this console, otherwise ``/``, so that a login cannot redirect elsewhere."""
    parts = urlsplit(path)
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and not parts.netloc and not parts.scheme
    return path if is_own else "/"

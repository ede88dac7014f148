"""Methods that every path supports (RFC 9110): HEAD for each path with GET, and OPTIONS."""

from __future__ import annotations

from contextlib import suppress

from starlette.requests import ClientDisconnect, Request
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


class _HeadSent(OSError):
    """Raised to end a streamed answer to HEAD, as if the client had disconnected."""


class HeadAsGet:
    """Middleware that processes HEAD as GET: the answer has the same headers, but no content."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            elif message["type"] == "http.response.body" and message.get("more_body", False):
                raise _HeadSent

        with suppress(ClientDisconnect, _HeadSent):
            await self._app({**scope, "method": "GET"}, receive, send_head)


def allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes of a request's path. The framework would only return those of one route."""
    methods = {
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    }
    return sorted(methods | {"HEAD", "OPTIONS"} if "GET" in methods else methods | {"OPTIONS"})

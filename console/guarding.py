"""Protection of a console in a browser: response headers, permitted host names, and the origin of changes."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OWN_SITE: Final = ("same-origin", "none")


class Guard:
    """Middleware that sets security headers, and rejects requests to other host names to prevent DNS rebinding."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname or ""
        if not self._is_own(host):
            text = f"the console does not answer to the host {host!r}; allow it with FORESTALL_CONSOLE_HOSTS\n"
            await PlainTextResponse(text, 421)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _is_own(self, host: str) -> bool:
        if host == "localhost" or host in self._hosts or "*" in self._hosts:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True


def is_own_change(request: Request, token: str, sent: str) -> bool:
    """Return whether a page of this session sent a form: the origin is this console, and ``sent`` equals ``token``."""
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in _OWN_SITE:
        return False
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return False
    return hmac.compare_digest(token.encode(), sent.encode())

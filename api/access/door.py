"""The authentication middleware: authenticates callers, limits request rates, and records changes in the audit log.

The middleware runs before any byte of a request body is read, and records a change before its answer is sent. It stores
the authenticated caller in the request's state, as ``caller``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access.auth import Change
from api.errors import ForeignPage, RateLimited, Unauthorized, problem
from api.pages import PAGE_PATHS
from api.services import Services
from api.start_page import START_PATHS
from service import (
    ANYBODY,
    Allowance,
    AuditEntry,
    Caller,
    Settings,
    StoreUnavailable,
    TokenBuckets,
    is_loopback,
    is_token,
)
from streams import ForestallError

OPEN_PATHS = frozenset({"/v1/health", "/v1/ready", "/openapi.json", *START_PATHS}) | PAGE_PATHS

_WRONG_KEYS = 20
_WRONG_KEYS_PER_S = 1 / 3
_LONGEST_RESOURCE = 500
_HOW = "send an API key as 'Authorization: Bearer <key>' or as 'X-API-Key: <key>'"
_TOO_MANY_WRONG = "too many wrong API keys came from this address"
_V6_NETWORK_BITS = 64

log = structlog.get_logger(__name__)


class Door:
    """Middleware that authenticates callers, limits request rates, and records changes in the audit log.

    If no API key is required, every caller is admitted, by default except for pages of other sites.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        rate = settings.rate
        burst = rate.burst or max(1, round(rate.requests_per_s))
        self._requests = TokenBuckets(rate.requests_per_s, burst) if rate.requests_per_s else None
        self._wrong_keys = TokenBuckets(_WRONG_KEYS_PER_S, _WRONG_KEYS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        address = _address(scope)
        state: MutableMapping[str, Any] = scope["state"]
        allowance: Allowance | None = None
        try:
            services, headers = state["services"], Headers(scope=scope)
            token = _token(headers)
            if services.ring.is_remembered(token):
                caller = self._caller(services, headers, token, address)
            else:
                caller = await run_in_threadpool(self._caller, services, headers, token, address)
            if self._requests is not None:
                allowance = self._requests.take(caller.id or address)
                _require_allowance(allowance, "too many requests")
        except ForestallError as error:
            response = problem(error)
            response.headers.update(_rate_headers(allowance))
            await response(scope, receive, send)
            return
        state["caller"] = caller
        answering = _Answering(scope, send, caller, allowance)
        try:
            await self._app(scope, receive, answering)
        finally:
            await answering.end()

    def _caller(self, services: Services, headers: Headers, token: str | None, address: str) -> Caller:
        if not services.ring.is_demanded():
            if services.settings.auth == "auto":
                _require_own_page(headers)
            return ANYBODY
        if token is None:
            raise Unauthorized(_HOW)
        if not is_token(token):  # the token may be the key of the environment, which may be short enough to guess
            _require_allowance(self._wrong_keys.look(address), _TOO_MANY_WRONG)
        verdict = services.ring.verdict(token)
        if verdict.caller is None:
            _require_allowance(self._wrong_keys.take(address), _TOO_MANY_WRONG)
            log.info("key-refused", client=address, reason=verdict.reason)
            raise Unauthorized(verdict.reason)
        services.ring.note_use(verdict.caller)
        return verdict.caller


class _Answering:
    """An ASGI ``send`` that adds rate-limit headers. It records a change in the audit log before the answer is sent."""

    def __init__(self, scope: Scope, send: Send, caller: Caller, allowance: Allowance | None) -> None:
        self._scope = scope
        self._send = send
        self._caller = caller
        self._allowance = allowance
        self._has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._allowance is not None:
                MutableHeaders(scope=message).update(_rate_headers(self._allowance))
            await self._begin(message["status"])
        await self._send(message)

    async def end(self) -> None:
        """Record the change of a request that failed before it was answered. An outer middleware sends the answer."""
        if not self._has_begun:
            await self._begin(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _begin(self, status: int) -> None:
        self._has_begun = True
        change = self._scope["state"].get("change")
        if isinstance(change, Change):
            await run_in_threadpool(self._note, change, status)

    def _note(self, change: Change, status: int) -> None:
        services: Services = self._scope["state"]["services"]
        entry = AuditEntry(
            at_us=services.clock.now_us(),
            key=self._caller.id,
            key_name=self._caller.name,
            client=_address(self._scope),
            method=change.method,
            route=change.route,
            resource=change.path[:_LONGEST_RESOURCE],
            status=status,
        )
        try:
            services.stores.audit.note(entry)
        except StoreUnavailable as error:
            log.error("change-not-audited", method=entry.method, resource=entry.resource, error=error.message)


def _token(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return _limited(client[0]) if client else ""


@lru_cache(maxsize=1_024)
def _limited(host: str) -> str:
    """Return the address to which rate limits apply. For IPv6, it is the /64 network, all of which a client can use."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, _V6_NETWORK_BITS), strict=False))


def _require_allowance(allowance: Allowance, what: str) -> None:
    if not allowance.is_granted:
        wait_s = allowance.retry_after_s
        raise RateLimited(f"{what}; send the next one in {wait_s} s", retry_after_s=wait_s)


def _rate_headers(allowance: Allowance | None) -> dict[str, str]:
    """Return the rate-limit header fields of an answer (draft-ietf-httpapi-ratelimit-headers)."""
    if allowance is None:
        return {}
    return {
        "RateLimit-Policy": f'"requests";q={allowance.limit};w={allowance.window_s}',
        "RateLimit": f'"requests";r={allowance.remaining};t={allowance.reset_s}',
    }


def _require_own_page(headers: Headers) -> None:
    """Refuse a request with a foreign Host or Origin. A page of another site can send it through a local browser."""
    for name, url in (("Host", f"//{headers.get('host', '')}"), ("Origin", headers.get("origin", ""))):
        if url not in ("", "//") and not _is_here(url):
            raise ForeignPage(
                f"no API key is required here, so only this machine may call, but {name} names another one; "
                "create a key (forestall keys add) to call from elsewhere"
            )


def _is_here(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False

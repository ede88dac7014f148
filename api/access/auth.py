"""Authorization: check that an API key has the operation's scope, and that a restricted key uses its own streams only.

The middleware (``api.access.door``) authenticates the caller before the body is read. ``api.app`` assigns the scopes
when it includes the operations.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import SecurityScopes

from api.access.reach import require_reach
from api.errors import Forbidden, Unauthorized
from api.requests.form import require_form
from service import Caller, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A requested change, for the audit log. ``route`` is the operation's path with placeholders for parameters."""

    method: str
    route: str
    path: str


def caller_of(request: Request) -> Caller:
    """Return the authenticated caller of a request. Raise ``Unauthorized`` if there is none."""
    caller = getattr(request.state, "caller", None)
    if not isinstance(caller, Caller):
        raise Unauthorized("send an API key")
    return caller


Calling = Annotated[Caller, Depends(caller_of)]


VERSION = "/v1"

SECURITY_SCHEMES = {
    "HTTPBearer": {
        "type": "http",
        "description": "An API key: `Authorization: Bearer fs_…`.",
        "scheme": "bearer",
    },
    "APIKeyHeader": {
        "type": "apiKey",
        "description": "An API key, for clients without bearer tokens.",
        "in": "header",
        "name": "X-API-Key",
    },
}
"""Security schemes in the description of the API. As dependencies, they would be resolved for each request."""

_READING = {"GET", "HEAD"}
_NOT_AUDITED = ("ingest", "read")  # large numbers of events would displace the other entries of the audit log


def scope_of(methods: Set[str], writing: Scope) -> Scope:
    """Return the scope that an operation requires.

    If the operation only reads and ``writing`` is not ``admin``, the scope is ``read``. Otherwise, it is ``writing``.
    """
    return "read" if methods <= _READING and writing != "admin" else writing


def security_of(scope: Scope) -> dict[str, Any]:
    """Return what an operation's OpenAPI description says about the required scope: the member ``security``."""
    return {"security": [{name: [scope]} for name in SECURITY_SCHEMES]}


async def authorize(request: Request, security_scopes: SecurityScopes) -> None:
    """Check that the caller may use the operation, and that the request has the operation's declared form."""
    caller = caller_of(request)
    scope: Scope = security_scopes.scopes[0]  # type: ignore[assignment]
    route = request.state.route = VERSION + request.scope["route"].path_format
    if request.method not in _READING and scope not in _NOT_AUDITED:
        request.state.change = Change(method=request.method, route=route, path=request.url.path)
    require_scope(caller, scope)
    body = await request.body()
    await require_form(request, body)
    if caller.streams is not None:
        await run_in_threadpool(require_reach, request, request.state.services, caller, body)


def require_scope(caller: Caller, scope: Scope) -> None:
    """Check that a caller has a scope. Raise ``Forbidden`` otherwise."""
    if not caller.may(scope):
        raise Forbidden(f"this operation needs the scope {scope}; {_described(caller)}", scope=scope)


def _described(caller: Caller) -> str:
    return f"the API key {caller.id} has {', '.join(caller.scopes)}"

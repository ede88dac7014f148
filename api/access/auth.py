"""Authorization: a caller's key must have the scope of the operation, and may touch only its streams.

The caller was authenticated by the middleware (``api.access.door``), before the body was read. Every operation gets its
scope where ``api.app`` includes it.
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
    """A requested change, for the audit log; ``route`` is the operation's path with its parameters by name."""

    method: str
    route: str
    path: str


def caller_of(request: Request) -> Caller:
    """The authenticated caller of a request; raises ``Unauthorized`` without one."""
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
"""How callers send their keys, for the description; as dependencies they would be resolved at each request."""

_READING = {"GET", "HEAD"}
_NOT_AUDITED = ("ingest", "read")  # events would displace all other entries of the audit log


def scope_of(methods: Set[str], writing: Scope) -> Scope:
    """The scope of an operation: ``writing`` if it changes, else ``read``, unless its resource is for ``admin``."""
    return "read" if methods <= _READING and writing != "admin" else writing


def described_gate(scope: Scope) -> dict[str, Any]:
    """The description of a scope, as a part of that of an operation."""
    return {"security": [{name: [scope]} for name in SECURITY_SCHEMES]}


async def authorize(request: Request, wanted: SecurityScopes) -> None:
    """Refuse an operation that the caller may not use, or a request that does not have the operation's form."""
    caller = caller_of(request)
    scope: Scope = wanted.scopes[0]  # type: ignore[assignment]
    route = request.state.route = VERSION + request.scope["route"].path_format
    if request.method not in _READING and scope not in _NOT_AUDITED:
        request.state.change = Change(method=request.method, route=route, path=request.url.path)
    require_scope(caller, scope)
    body = await request.body()
    await require_form(request, body)
    if caller.streams is not None:
        await run_in_threadpool(require_reach, request, request.state.services, caller, body)


def require_scope(caller: Caller, scope: Scope) -> None:
    """Check that a caller has a scope; raises ``Forbidden`` otherwise."""
    if not caller.may(scope):
        raise Forbidden(f"this operation needs the scope {scope}; {_described(caller)}", scope=scope)


def _described(caller: Caller) -> str:
    return f"the API key {caller.id} has {', '.join(caller.scopes)}"

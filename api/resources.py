"""Lookup of a request's operation by method and resource, instead of a search through all operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette._utils import get_route_path
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from api.access.direct import DirectRoute
from api.requests.bodies import replayed

_Matches: TypeAlias = Callable[[Scope], tuple[Match, Any]]


class Operations:
    """Finds and calls the operation of a request. The framework processes traced requests and unknown paths.

    The framework would compare a request with every operation twice, which takes a tenth of a small request's CPU time.
    It would also prepare all operations at the first request. This class prepares the operations of a resource at the
    first request for that resource.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._rest = app.router.app
        self._included: defaultdict[tuple[str, str], list[BaseRoute]] = defaultdict(list)
        self._prepared: dict[tuple[str, str], list[tuple[_Matches, RouteContext]]] = {}

    def include(self, router: APIRouter, prefix: str, **options: Any) -> None:
        """Include a router, as the framework's ``include_router`` does, with the same options."""
        self._app.include_router(router, prefix=prefix, **options)
        for route in router.routes:
            if isinstance(route, APIRoute):
                for method in route.methods or ():
                    self._included[method, _resource(prefix + route.path)].append(self._app.routes[-1])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("fastapi.telemetry") is None:
            for matches, operation in self._operations(scope["method"], _resource(get_route_path(scope))):
                match, child_scope = matches(scope)
                if match is Match.FULL:
                    scope.update(child_scope, route=operation.original_route)
                    await _answer(operation, scope, receive, send)
                    return
        await self._rest(scope, receive, send)

    def _operations(self, method: str, resource: str) -> Sequence[tuple[_Matches, RouteContext]]:
        key = method, resource
        if key not in self._included:
            return ()
        if key not in self._prepared:
            contexts = iter_route_contexts(self._included[key])
            self._prepared[key] = [(context.matches, context) for context in contexts]
        return self._prepared[key]


async def _answer(operation: RouteContext, scope: Scope, receive: Receive, send: Send) -> None:
    route = operation.original_route
    if isinstance(route, DirectRoute):
        request = Request(scope, receive)
        request.state.route = operation.path_format
        if (response := await route.answer(request)) is not None:
            await response(scope, receive, send)
            return
        receive = replayed(await request.body(), receive)
    await operation.app(scope, receive, send)


def _resource(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])

"""Middleware that forwards bounded operations to worker processes, and answers requests that exceed a limit."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import structlog
from fastapi.routing import APIRoute
from starlette._utils import get_route_path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import TooMuchWork, WorkFailed, problem
from api.requests.idempotency import forget
from api.work.jobs import Answer, Job, Limit
from api.work.pool import WorkPool
from service import WorkSettings
from streams import ForestallError

_SENT = ("type", "asgi", "http_version", "server", "client", "scheme", "method", "root_path", "path", "raw_path")
_MARK = "answered_by_workers"

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def bounded(endpoint: _Endpoint) -> _Endpoint:
    """Mark an operation whose work may be large, so that a worker process with limits answers its requests."""
    setattr(endpoint, _MARK, True)
    return endpoint


def is_bounded(route: APIRoute) -> bool:
    """Return whether a route's operation is marked as bounded."""
    return bool(getattr(route.endpoint, _MARK, False))


log = structlog.get_logger(__name__)


class BoundedWork:
    """Middleware that forwards the bounded operations to worker processes. Operations are given by path and method."""

    def __init__(self, app: ASGIApp, pool: WorkPool, limits: WorkSettings, routes: Sequence[Route]) -> None:
        self._app = app
        self._pool = pool
        self._limits = limits
        self._routes = routes
        self._heads = tuple({route.path.partition("{")[0] for route in routes})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._is_bounded(scope):
            await self._app(scope, receive, send)
            return
        body = (await receive()).get("body", b"")
        state = {"caller": scope["state"].get("caller"), "asked_token": uuid.uuid4().hex}
        job = Job(scope=_sent(scope), state=state, body=body)
        try:
            answer = await self._answer_unless_disconnected(job, receive)
            if answer is not None and answer.beyond is not None:
                log.warning("work-ended", method=scope["method"], path=scope["path"], beyond=answer.beyond.value)
                raise _limit_error(answer.beyond, self._limits)
        except ForestallError as error:
            if isinstance(error, WorkFailed):
                log.error("work-failed", method=scope["method"], path=scope["path"], error=error.message)
            await run_in_threadpool(forget, Request({**scope, "state": scope["state"] | state}), body)
            await problem(error)(scope, receive, send)
            return
        if answer is None:
            await run_in_threadpool(forget, Request({**scope, "state": scope["state"] | state}), body)
            return
        scope["state"].update(answer.state)
        await send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})
        await send({"type": "http.response.body", "body": answer.body})

    def _is_bounded(self, scope: Scope) -> bool:
        is_near = get_route_path(scope).startswith(self._heads)  # excludes most requests without matching the routes
        return is_near and any(route.matches(scope)[0] is Match.FULL for route in self._routes)

    async def _answer_unless_disconnected(self, job: Job, receive: Receive) -> Answer | None:
        work = asyncio.ensure_future(self._pool.answer(job))
        disconnection = asyncio.ensure_future(_disconnection(receive))
        try:
            await asyncio.wait((work, disconnection), return_when=asyncio.FIRST_COMPLETED)
            return await work if work.done() else None
        finally:
            work.cancel()
            disconnection.cancel()
            await asyncio.gather(work, disconnection, return_exceptions=True)


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _sent(scope: Scope) -> dict[str, Any]:
    sent = {name: scope[name] for name in _SENT if name in scope}
    return {**sent, "query_string": scope["query_string"], "headers": list(scope["headers"]), "extensions": {}}


def _limit_error(limit: Limit, limits: WorkSettings) -> TooMuchWork:
    setting, most, excess = {
        Limit.TIME: ("MAX_TIME_S", limits.max_time_s, f"took more than {limits.max_time_s:g} s"),
        Limit.MEMORY: (
            "MAX_MEMORY_BYTES",
            limits.max_memory_bytes,
            f"needed more than {limits.max_memory_bytes} bytes of memory",
        ),
        Limit.ANSWER: (
            "MAX_ANSWER_BYTES",
            limits.max_answer_bytes,
            f"has an answer of more than {limits.max_answer_bytes} bytes",
        ),
    }[limit]
    name = f"FORESTALL_WORK__{setting}"
    return TooMuchWork(
        f"the request {excess} and was terminated; request less or send something smaller, or raise {name}",
        limit=most,
        setting=name,
    )

"""Request ids, log lines, time measurement and cache headers of all requests.

A client may send its own request id (``X-Request-Id``). The answer, the log and problem documents repeat it.
"""

from __future__ import annotations

import logging
import re
import time
from http import HTTPStatus
from random import getrandbits

import anyio
import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import bug_problem
from service import HttpTimes

REQUEST_ID = "X-Request-Id"

_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_EMPTY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_API = "/v1/"

log = logging.getLogger(__name__)


class Exchange:
    """The outermost middleware: adds request ids and cache headers, logs requests, and measures their duration."""

    def __init__(self, app: ASGIApp, times: HttpTimes) -> None:
        self._app = app
        self._times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin_s = time.perf_counter()
        request_id = _request_id(scope)
        structlog.contextvars.bind_contextvars(request_id=request_id)  # each request has its own context
        state = scope.setdefault("state", {})
        has_begun = False

        async def answer(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                took_s = time.perf_counter() - begin_s
                self._times.note(scope["method"], state.get("route", "other"), message["status"], took_s)
                _complete(message, scope, request_id)
                level = logging.DEBUG if message["status"] < HTTPStatus.BAD_REQUEST else logging.INFO
                if log.isEnabledFor(level):
                    fields = {"method": scope["method"], "path": scope["path"], "status": message["status"]}
                    log.log(level, "request", extra={**fields, "took_ms": round(1_000 * took_s, 1)})
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except Exception as error:  # house: allow broad-except: answers to bugs are measured and have an id
            if not has_begun:
                await bug_problem()(scope, receive, answer)
                raise
            if not _has_left(error):
                raise
            log.debug("client-left", extra={"path": scope["path"]})


def _has_left(error: Exception) -> bool:
    """Return whether an error means that the client disconnected during a streamed answer."""
    if isinstance(error, ExceptionGroup):
        return all(_has_left(cause) for cause in error.exceptions)
    return isinstance(error, anyio.BrokenResourceError)


def _request_id(scope: Scope) -> str:
    sent = Headers(scope=scope).get(REQUEST_ID, "")
    if _ID.fullmatch(sent):
        return sent
    name = REQUEST_ID.lower().encode()
    new_id = f"{getrandbits(128):032x}"  # need not be secret; this generator saves a system call
    scope["headers"] = [*(pair for pair in scope["headers"] if pair[0] != name), (name, new_id.encode())]
    return new_id


def _complete(message: Message, scope: Scope, request_id: str) -> None:
    headers = MutableHeaders(scope=message)
    headers[REQUEST_ID] = request_id
    if scope["path"].startswith(_API):
        headers.setdefault("Cache-Control", "private, no-cache" if scope["method"] in ("GET", "HEAD") else "no-store")
    if message["status"] in _EMPTY and "content-type" in headers:
        del headers["content-type"]

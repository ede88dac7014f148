"""Request bodies: limited in size and time, read once, and parsed. Parse errors have line and column."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated, Any

import orjson
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import ApiError, BodyTooLarge, BodyTooSlow, TwoLengths, UnsupportedMediaType, malformed_json, problem
from streams import decode_json

_THROWN_AWAY = 4
_SLOWEST_BYTES_PER_S = 50_000


class BodyLimit:
    """Middleware that buffers bodies up to a limit. It answers 413 to larger bodies, and 408 to slow ones.

    A body that is too large is read to its end and discarded, because a client that is still sending would miss the
    answer. Nothing is read beyond a few times the limit. A request that declares its length in two ways is refused,
    because two readers may disagree about where the next request starts (RFC 9112, section 6.1). After every refusal,
    the connection is closed.

    The routes in ``files`` have their own limits, and their bodies are stored in a file, the request's ``body_file``. A
    body may take ``timeout_s``, plus one second for each 50 kB that have arrived.
    """

    def __init__(
        self, app: ASGIApp, limit_bytes: int, timeout_s: float, files: Sequence[tuple[Route, int]] = ()
    ) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for route, most in self._files:
            if scope["method"] in (route.methods or ()) and route.matches(scope)[0] is Match.FULL:
                await self._with_file(scope, receive, send, most)
                return
        body = await self._read_checked(scope, receive, send, self._limit_bytes)
        if body is not None:
            await self._app(scope, replayed(body, receive), send)

    async def _with_file(self, scope: Scope, receive: Receive, send: Send, limit_bytes: int) -> None:
        with NamedTemporaryFile("w+b") as file:
            body = await self._read_checked(scope, receive, send, limit_bytes, file)
            if body is not None:
                file.flush()
                scope["state"] = {**scope.get("state", {}), "body_file": Path(file.name)}
                await self._app(scope, replayed(body, receive), send)

    async def _read_checked(
        self, scope: Scope, receive: Receive, send: Send, limit_bytes: int, file: IO[bytes] | None = None
    ) -> bytes | None:
        """Read a body, into ``file`` if given. Return None if the request was refused or the client disconnected."""
        headers = Headers(scope=scope)
        try:
            _require_one_length(headers)
            return await self._read(headers, receive, limit_bytes, file)
        except ClientDisconnect:
            return None
        except ApiError as error:
            response = problem(error)
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return None

    async def _read(self, headers: Headers, receive: Receive, limit: int, file: IO[bytes] | None) -> bytes:
        patience_bytes = _THROWN_AWAY * limit
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > patience_bytes:
            raise _too_large(limit)
        body, size_bytes, has_more = bytearray(), 0, True
        begin_s = time.monotonic()
        while has_more and size_bytes <= patience_bytes:
            left_s = begin_s + self._timeout_s + size_bytes / _SLOWEST_BYTES_PER_S - time.monotonic()
            chunk, has_more = await _chunk(receive, left_s)
            size_bytes += len(chunk)
            if size_bytes > limit:
                continue
            if file is None:
                body += chunk
            else:
                file.write(chunk)
        if size_bytes > limit:
            raise _too_large(limit)
        return bytes(body)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {limit} bytes; send less at a time", limit_bytes=limit)


def _require_one_length(headers: Headers) -> None:
    if "transfer-encoding" in headers and "content-length" in headers:
        raise TwoLengths("a request must not have both Content-Length and Transfer-Encoding")


async def _chunk(receive: Receive, timeout_s: float) -> tuple[bytes, bool]:
    """Return the next chunk of a body, and whether more chunks follow."""
    try:
        async with asyncio.timeout(max(0.0, timeout_s)):
            message = await receive()
    except TimeoutError:
        raise BodyTooSlow(
            "the body arrives too slowly; send it faster, or raise FORESTALL_API_READ_TIMEOUT_S",
            setting="FORESTALL_API_READ_TIMEOUT_S",
        ) from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI ``receive`` that first returns a body that was already read, and then the original messages."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def media_type(request: Request) -> str:
    """Return the body's media type in lower case, without parameters. Refuse bodies compressed or not in UTF-8."""
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    charset = next((part.partition("=")[2].strip(' "') for part in parameters if "charset=" in part), "utf-8")
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType(f"charset {charset!r} is not supported; send UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("compressed bodies are not supported; send the body uncompressed")
    return kind.strip()


def require_json(request: Request) -> None:
    """Refuse a body that is not declared to be JSON."""
    kind = media_type(request)
    if kind != "application/json" and (request.method, kind) != ("PATCH", "application/merge-patch+json"):
        raise UnsupportedMediaType(f"media type {kind!r} is not supported; send application/json")


async def read_body(request: Request) -> bytes:
    """Return the body as bytes."""
    return await request.body()


RawBody = Annotated[bytes, Depends(read_body)]
MediaType = Annotated[str, Depends(media_type)]


def parse_json(body: bytes) -> Any:
    """Parse a JSON body. Integers beyond 64 bits remain integers, so that a later check can refuse them."""
    try:
        return decode_json(body)
    except orjson.JSONDecodeError as error:
        raise malformed_json(error.msg, error.lineno, error.colno) from error

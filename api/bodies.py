"""Request bodies: none larger than the limit, read once, parsed with line and column of what is wrong."""

from __future__ import annotations

import json
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import BodyTooLarge, UnsupportedMediaType, malformed_json, problem

_THROWN_AWAY = 4
_NINES = bytes.maketrans(b"012345678", b"9" * 9)
_LONG_INTEGER = b"9" * 19


class BodyLimit:
    """Middleware that holds bodies up to a limit and answers 413 to larger ones.

    Of a body that is too large a few times the limit is read and thrown away, as a client that is still sending would
    not see the answer otherwise; beyond that the connection is closed.

    Args:
        app: What gets the request when its body is within the limit.
        limit_bytes: The limit.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(Headers(scope=scope), receive)
        except ClientDisconnect:
            return
        if body is None:
            await self._refuse(scope, receive, send)
        else:
            await self._app(scope, _replayed(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The body; None when it is too large.

        Raises:
            ClientDisconnect: The client went away in the middle.
        """
        patience_bytes = _THROWN_AWAY * self._limit_bytes
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > patience_bytes:
            return None
        body, size_bytes, has_more = bytearray(), 0, True
        while has_more and size_bytes <= patience_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk = message.get("body", b"")
            size_bytes += len(chunk)
            if size_bytes <= self._limit_bytes:
                body += chunk
            has_more = message.get("more_body", False)
        return bytes(body) if size_bytes <= self._limit_bytes else None

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit_bytes
        error = BodyTooLarge(f"the body is larger than {limit} bytes; send less at a time", limit_bytes=limit)
        response = problem(error)
        response.headers["Connection"] = "close"
        await response(scope, receive, send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A source of messages that gives the body first."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def media_type(request: Request) -> str:
    """The body's media type without parameters, in small letters.

    Raises:
        UnsupportedMediaType: The body is compressed or not in UTF-8.
    """
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    charset = next((part.partition("=")[2].strip(' "') for part in parameters if "charset=" in part), "utf-8")
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType(f"charset {charset!r} is not read here; send UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("compressed bodies are not read here; send the body as it is")
    return kind.strip()


def require_json(request: Request) -> None:
    """Refuse a body that does not say that it is JSON.

    Raises:
        UnsupportedMediaType: Another media type.
    """
    kind = media_type(request)
    if kind != "application/json":
        raise UnsupportedMediaType(f"media type {kind!r} is not read here; send application/json")


async def read_body(request: Request) -> bytes:
    """The body as it came."""
    return await request.body()


RawBody = Annotated[bytes, Depends(read_body)]
MediaType = Annotated[str, Depends(media_type)]


def parse_json(body: bytes) -> Any:
    """The value of a JSON body; integers beyond 64 bits stay integers, so that they can be refused as such.

    Raises:
        MalformedBody: It is not JSON.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise malformed_json(error.msg, error.lineno, error.colno) from error
    if not has_long_integer(body):
        return value
    try:
        return json.loads(body)  # orjson reads such integers as floats
    except RecursionError:  # nested too deeply for this one only
        return value


def has_long_integer(body: bytes) -> bool:
    """Whether there may be integers beyond 64 bits in JSON."""
    return _LONG_INTEGER in body.translate(_NINES)

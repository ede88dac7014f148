"""Request bodies: none larger than the limit, read once, parsed with line and column of what is wrong."""

from __future__ import annotations

import json
from typing import Annotated, Any

import orjson
import yaml
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import BodyTooLarge, MalformedBody, UnsupportedMediaType, malformed_json, problem

_THROWN_AWAY = 4


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
    """The value of a JSON body.

    Raises:
        MalformedBody: It is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise malformed_json(error.msg, error.lineno, error.colno) from error


def parse_strict_json(body: bytes) -> Any:
    """The value of a JSON body in which no key may be given twice.

    Raises:
        MalformedBody: It is not JSON, or repeats a key.
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        raise malformed_json(error.msg, error.lineno, error.colno) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from error
    except RecursionError:
        raise MalformedBody("the body is nested too deeply") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise MalformedBody("a key is given twice in one object of the body; give it once, with all its entries")
    return value


def _not_utf8(error: UnicodeDecodeError) -> MalformedBody:
    return MalformedBody(f"the body is not UTF-8: {error.reason} at byte {error.start}")


class _PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, with which a short text can mean a huge one, and without repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not allowed; repeat the entry", mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key is given twice", node.start_mark)
        return mapping


def parse_yaml(body: bytes) -> Any:
    """The value of a YAML (or JSON) body.

    Raises:
        MalformedBody: It is not YAML, or uses aliases, or repeats a key.
    """
    try:
        return yaml.load(body.decode(), Loader=_PlainLoader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "cannot be parsed"
        place = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
        prefix = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise MalformedBody(f"{prefix}the body is not YAML: {reason}", **place) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from error
    except RecursionError:
        raise MalformedBody("the body is nested too deeply") from None

"""Entity tags of answers (RFC 9110): a tag covers the whole body; the answer is 304 if the client already has the body.

A resource's tag begins with the tag of its declaration, which conditional changes compare. A digest of the body
follows, as the body contains more than the declaration, such as the readers of a stream.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DIGEST_BYTES = 8
_OF_BODY = re.compile(r"#[0-9a-f]{16}$")


class Validators:
    """Middleware that adds entity tags to JSON answers of GET, and answers 304 if the client has the same tag."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def hold(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_document(message):
                start = message
            elif start is None:
                await send(message)
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await _answer(start, bytes(body), Headers(scope=scope).get("if-none-match", ""), send)

        await self._app(scope, receive, hold)


def declared_tag(tag: str) -> str:
    """The part of an entity tag that covers the declaration; conditional changes compare it."""
    return _OF_BODY.sub("", tag)


def _is_document(message: Message) -> bool:
    kind = Headers(scope=message).get("content-type", "")
    return message["status"] == HTTPStatus.OK and kind.partition(";")[0].endswith(("/json", "+json"))


async def _answer(start: Message, body: bytes, if_none_match: str, send: Send) -> None:
    headers = MutableHeaders(scope=start)
    declared = headers.get("etag", '""').strip('"')
    tag = f'"{declared}#{blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()}"'
    headers["ETag"] = tag
    if if_none_match.strip() == "*" or tag in [
        known_tag.strip().removeprefix("W/") for known_tag in if_none_match.split(",")
    ]:
        start["status"], body = HTTPStatus.NOT_MODIFIED.value, b""
        del headers["content-length"]
    await send(start)
    await send({"type": "http.response.body", "body": body})

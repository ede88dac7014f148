"""Entity tags of answers (RFC 9110). A tag covers the whole body, and a client that already has the body gets 304.

A resource's tag starts with the tag of its declaration, because conditional changes compare only the declaration. A
digest of the body follows, because the body contains more than the declaration, such as the readers of a stream.
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
    """Middleware that adds entity tags to JSON answers of GET. If the client has the same tag, it answers 304."""

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
    """Return the part of an entity tag that depends on the declaration only. Conditional changes compare this part."""
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

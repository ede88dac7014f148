"""The times at which streams were declared: anything older belongs to a former stream of the same name."""

from __future__ import annotations

from typing import cast

from service.stores.connection import Client
from service.stores.records import decode
from streams import STREAMS_KEY


def since_of(client: Client, stream: str) -> str:
    """The time of a stream's declaration, as the scripts' part ``living`` reads it; empty if it is not declared."""
    body = cast("bytes | None", client.hget(STREAMS_KEY, stream))
    return "" if body is None else _since(body, stream)


def sinces(client: Client) -> dict[str, str]:
    """The time of declaration of every stream; see ``since_of``."""
    found = cast("dict[bytes, bytes]", client.hgetall(STREAMS_KEY))
    return {stream.decode(): _since(body, stream.decode()) for stream, body in found.items()}


def _since(body: bytes, stream: str) -> str:
    return str(int(decode(body, f"the stream {stream!r}").get("since_ms", 0)))

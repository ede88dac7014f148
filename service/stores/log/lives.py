"""The times at which streams were declared: anything older belongs to a former stream of the same name."""

from __future__ import annotations

from typing import cast

from service.stores.connection import PREFIX, Client
from service.stores.records import decode

STREAMS_KEY = PREFIX + "streams"


def since_of(client: Client, stream: str) -> str:
    """The time of a stream's declaration, as the scripts' part ``living`` reads it; empty if it is not declared."""
    body = cast("bytes | None", client.hget(STREAMS_KEY, stream))
    return "" if body is None else _since(body, stream)


def sinces(client: Client) -> dict[str, str]:
    """The time of declaration of every stream; see ``since_of``."""
    found = cast("dict[bytes, bytes]", client.hgetall(STREAMS_KEY))
    return {stream.decode(): _since(body, stream.decode()) for stream, body in found.items()}


def is_older(position: str, since: str) -> bool:
    """Whether an entry of the log is older than a stream's declaration."""
    return int(position.partition("-")[0]) < int(since or 0)


def _since(body: bytes, stream: str) -> str:
    return str(int(decode(body, f"the stream {stream!r}").get("since_ms", 0)))

"""What a reader of Redis sees as results arrive: entries of lists and of the index of alerts, read afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import redis

from service.stores.results.alerts import BLOCKS_KEY, INDEX_KEY
from service.stores.results.blocks import unpack, unpack_alerts


def index_of(stream: str) -> str:
    """The index of the alerts of a stream."""
    return f"{INDEX_KEY}:stream:{stream}"


def alerts_at(server: redis.Redis, place: bytes, stream: str) -> list[dict[str, Any]]:
    """The alerts of a stream at a place of its index."""
    name = f"{place.decode()}:{stream}"
    block: Any = server.hget(BLOCKS_KEY, name)
    return [] if block is None else [orjson.loads(alert.body) for alert in unpack_alerts(block, name)]


def records_of(fields: Mapping[bytes, bytes]) -> list[dict[str, Any]]:
    """The records of an entry of a list."""
    return [orjson.loads(text) for text in unpack(fields[b"block"], "a list")]

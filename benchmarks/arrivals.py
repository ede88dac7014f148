"""Results as a reader of Redis receives them: entries of lists and of the index of alerts, decoded afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import redis

from service.stores.results.alerts import BLOCKS_KEY, INDEX_KEY
from service.stores.results.blocks import unpack, unpack_alerts


def index_of(stream: str) -> str:
    """Return the key of the index of a stream's alerts."""
    return f"{INDEX_KEY}:stream:{stream}"


def alerts_at(server: redis.Redis, place: bytes, stream: str) -> list[dict[str, Any]]:
    """Return the alerts of a stream at a position of its index."""
    name = f"{place.decode()}:{stream}"
    block: Any = server.hget(BLOCKS_KEY, name)
    return [] if block is None else [orjson.loads(alert.body) for alert in unpack_alerts(block, name)]


def records_of(fields: Mapping[bytes, bytes]) -> list[dict[str, Any]]:
    """Return the records in an entry of a list."""
    return [orjson.loads(text) for text in unpack(fields[b"block"], "a list")]

"""Facts about the Redis server, such as its version, persistence, memory and clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from service.errors import StoreUnavailable
from service.stores.connection import Client

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Facts that a Redis server reports about itself. Unknown texts are None. An unknown ``version`` is empty.

    Attributes:
        failures: Kinds of writes whose last attempt failed, in words, for example "its last snapshot".
        eviction: The server's ``maxmemory-policy``.
        memory_limit: The server's ``maxmemory`` in bytes, or 0 for no limit.
        memory_used: Used memory in bytes.
    """

    product: str
    version: str
    is_replica: bool
    is_clustered: bool
    is_append_only: bool
    fsync: str | None
    save: str | None
    failures: tuple[str, ...]
    eviction: str | None
    memory_limit: int
    memory_used: int


def server_facts(client: Client) -> ServerFacts:
    """Query a server for its facts."""
    info = _info_of(client)
    is_valkey = info.get("server_name") == "valkey"
    return ServerFacts(
        product="Valkey" if is_valkey else "Redis",
        version=str(info.get("valkey_version" if is_valkey else "redis_version", "")),
        is_replica=info.get("role") == "slave",
        is_clustered=bool(info.get("cluster_enabled")),
        is_append_only=bool(info.get("aof_enabled")),
        fsync=_option(client, "appendfsync"),
        save=_option(client, "save"),
        failures=_failures(info),
        eviction=info.get("maxmemory_policy") or _option(client, "maxmemory-policy"),
        memory_limit=int(info.get("maxmemory", 0)),
        memory_used=int(info.get("used_memory", 0)),
    )


def server_time_us(client: Client) -> int:
    """Return the time of the server's clock in microseconds UTC."""
    seconds, micros = client.time()
    return int(seconds) * _MICROS + int(micros)


def _info_of(client: Client) -> Mapping[str, Any]:
    info: dict[str, Any] = client.info()
    return info


def _failures(info: Mapping[str, Any]) -> tuple[str, ...]:
    names = {
        "aof_last_write_status": "its last write to the append-only file",
        "aof_last_bgrewrite_status": "its last rewriting of the append-only file",
        "rdb_last_bgsave_status": "its last snapshot",
    }
    return tuple(words for name, words in names.items() if info.get(name, "ok") != "ok")


def _option(client: Client, name: str) -> str | None:
    """Return a configuration option of the server, or None if the server forbids the query, as hosted servers do."""
    try:
        value = client.config_get(name).get(name)
    except StoreUnavailable:
        raise
    except RedisError:
        return None
    return None if value is None else str(value)

"""Functions that read the event log in Redis, for the source and for rebuilding states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from pipeline.errors import LogDamaged, LogUnreachable
from pipeline.sources.options import EventLogOptions
from shards import StoredEntry
from streams import LAYOUT_KEY, log_key, position_order

START = "0-0"
POSITIONS_KEY = "forestall:log:stepped"
"""Hash of the position of each shard (``position:N``) up to which results are in blocks; the sink writes them later."""

_PAGE_ENTRIES = 64
_RETRY_CAP_S = 2.0
_RETRY_BASE_S = 0.05

Page: TypeAlias = "Sequence[tuple[bytes, Mapping[bytes, bytes]]]"


def connect(options: EventLogOptions, name: str | None = None) -> redis.Redis:
    """Open a connection to the log's Redis server.

    If the server does not answer a call, the connection retries, with growing pauses up to a limit. ``name`` is the
    connection's name in Redis' list of clients.
    """
    return redis.Redis.from_url(
        options.redis_url,
        client_name=name,
        socket_connect_timeout=5.0,
        socket_timeout=30.0 + options.wait_ms / 1_000,
        retry=Retry(ExponentialWithJitterBackoff(base=_RETRY_BASE_S, cap=_RETRY_CAP_S), options.retries),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
    )


def read_pages(server: redis.Redis, shard: int, after: str, until: str) -> Iterator[Page]:
    """Yield the entries of a shard after ``after``, up to and including ``until``, in pages as Redis returns them.

    Raise ``LogUnreachable`` if the server did not answer in all retries, and ``LogDamaged`` if entries are gone.
    """
    reached = after
    while reached != until:
        with reaching():
            page = cast(
                "list[tuple[bytes, dict[bytes, bytes]]]",
                server.xrange(log_key(shard), min=f"({reached}", max=until, count=_PAGE_ENTRIES),
            )
        if not page:
            raise LogDamaged(
                f"shard {shard} of the event log ends at {reached} where entries up to {until} were planned: "
                "entries were removed, or the server lost data; put the log back, or begin with an empty Redis and "
                "data folder: a new checkpoint alone cannot rebuild the streams and patterns of removed entries",
                shard=shard,
                reached=reached,
                planned=until,
            )
        yield page
        reached = page[-1][0].decode()


def read_entries(server: redis.Redis, shard: int, after: str, until: str) -> Iterator[list[StoredEntry]]:
    """Yield the decoded entries of a shard. Range and errors are those of ``read_pages``."""
    for page in read_pages(server, shard, after, until):
        yield [stored_entry(position, fields) for position, fields in page]


def stored_entry(position: bytes, fields: Mapping[bytes, bytes]) -> StoredEntry:
    """Decode an entry from its fields in Redis."""
    return StoredEntry(
        position=position.decode(),
        kind=text_of(fields, b"kind"),
        stream=text_of(fields, b"stream"),
        route=text_of(fields, b"route"),
        body=fields.get(b"body", b""),
    )


def text_of(fields: Mapping[bytes, bytes], name: bytes) -> str:
    """Return a field as text, or an empty text if the field is missing."""
    return fields.get(name, b"").decode(errors="replace")


@contextmanager
def reaching() -> Iterator[None]:
    """Turn a connection error of the block into ``LogUnreachable``."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise unreachable(error) from error


def unreachable(error: Exception) -> LogUnreachable:
    """Return the error for a server that does not answer."""
    return LogUnreachable(f"the event log does not answer: {error}; what was not matched is matched after a restart")


def _facts(server: redis.Redis, key: str) -> Any:
    try:
        with reaching():
            return server.xinfo_stream(key)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return None
        raise


def last_position(server: redis.Redis, key: str, position: str) -> str:
    """Return the position of the last entry of a shard at or before ``position``.

    If all these entries were removed, return ``position`` or the shard's last used position, whichever is earlier.
    """
    facts = _facts(server, key)
    if facts is None:
        return START
    if not facts["length"] or position_order(position) < position_order(facts["first-entry"][0].decode()):
        last: str = facts["last-generated-id"].decode()  # all entries up to this position were trimmed
        return min(position, last, key=position_order)
    with reaching():
        entries = cast("list[tuple[bytes, Any]]", server.xrevrange(key, max=position, count=1))
    return entries[0][0].decode()


def beginnings(server: redis.Redis, options: EventLogOptions) -> dict[int, str]:
    """Return the position after which each shard's log begins: the start, or the position of the last resharding."""
    if not options.generation:
        return dict.fromkeys(range(options.shards), START)
    with reaching():
        fields = server.hmget(LAYOUT_KEY, [f"start:{shard}" for shard in range(options.shards)])
    starts = cast("list[bytes | None]", fields)
    return {shard: START if start is None else start.decode() for shard, start in enumerate(starts)}


def written_up_to(server: redis.Redis, options: EventLogOptions, shard: int) -> str:
    """Return the position up to which a shard's results are written, with the current or an earlier checkpoint."""
    noted = server.hget(options.results, f"position:{shard}") if options.results else None
    return START if noted is None else cast("bytes", noted).decode()


def counts(server: redis.Redis, key: str) -> tuple[int, int]:
    """Return the number of entries ever added to a shard's log, and the number that it still has."""
    facts = _facts(server, key)
    return (0, 0) if facts is None else (int(facts["entries-added"]), int(facts["length"]))

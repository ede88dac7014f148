"""The migration of alerts from the first store format, in which each alert was stored and indexed singly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import orjson

from service.errors import RecordFormatError
from service.stores.connection import PREFIX, Client
from service.stores.results.alerts import BLOCKS_KEY, INDEX_KEY, MOST_ALERTS, PLACES_KEY, SIZES_KEY
from service.stores.results.blocks import in_parts, pack_alerts
from shards import ALERT, OutputRow

_BODIES_KEY = PREFIX + "alerts:bodies"
_INDEX_KEY = PREFIX + "alerts:index"
_HEAD, _TAIL = b'{"format":1,"alert":', b"}"
_PAGE = 5 * MOST_ALERTS


@dataclass(frozen=True, slots=True)
class _Single:
    number: int
    row: OutputRow


def move_to_blocks(client: Client, renew: Callable[[], None]) -> None:
    """Move all alerts into blocks. The alerts keep their numbers. An interrupted migration can be repeated.

    ``renew`` is called after each page of alerts, so that the caller can renew its lock.
    """
    if client.exists(_BODIES_KEY):
        _delete(client, INDEX_KEY, PLACES_KEY, BLOCKS_KEY, SIZES_KEY)
        for page in _pages(client):
            for chunk in in_parts(page, [len(alert.row.body) for alert in page], MOST_ALERTS):
                _write(client, chunk)
            renew()
        client.unlink(_BODIES_KEY)
    _delete(client, _INDEX_KEY)


def _delete(client: Client, index: str, *keys: str) -> None:
    for key in [*client.scan_iter(match=index + "*", count=1_000), *keys]:
        client.unlink(key)


def _pages(client: Client) -> Iterator[list[_Single]]:
    begin = "-"
    while entries := cast("list[Any]", client.xrange(_INDEX_KEY, min=begin, count=_PAGE)):
        ids = [fields[b"id"].decode() for _, fields in entries]
        bodies = cast("list[bytes | None]", client.hmget(_BODIES_KEY, ids))
        rows = zip(entries, ids, bodies, strict=True)
        yield [_single(place, id_, body) for (place, _), id_, body in rows if body is not None]
        begin = f"({entries[-1][0].decode()}"


def _single(place: bytes, id_: str, stored: bytes) -> _Single:
    if not stored.startswith(_HEAD):
        raise RecordFormatError(f"the stored alert {id_!r} does not have format 1, the only one of its time")
    body = stored[len(_HEAD) : -len(_TAIL)]
    alert = orjson.loads(body)
    row = OutputRow(
        kind=ALERT.name,
        stream=alert["stream"],
        id=id_,
        body=body,
        position="",
        shard=0,
        subject=ALERT.subject_of(alert),
    )
    return _Single(int(place.partition(b"-")[0]), row)


def _write(client: Client, chunk: Sequence[_Single]) -> None:
    """Write alerts into blocks. The counters of alerts do not change, because they include these alerts already."""
    last = f"{chunk[-1].number}-0"
    by_stream = sorted(chunk, key=lambda alert: alert.row.stream)
    names: dict[str, str] = {}
    index: dict[str, dict[Any, Any]] = {}
    pipe = client.pipeline()
    for stream, group in groupby(by_stream, key=lambda alert: alert.row.stream):
        alerts = list(group)
        rows = [alert.row for alert in alerts]
        block = pack_alerts(rows, [chunk[-1].number - alert.number for alert in alerts], [row.body for row in rows])
        pipe.hset(BLOCKS_KEY, f"{last}:{stream}", block)
        pipe.hincrby(SIZES_KEY, stream, len(rows))
        names |= {row.id: f"{row_number}:{last}:{stream}" for row_number, row in enumerate(rows, start=1)}
        patterns = {f":pattern:{row.subject}" for row in rows}
        for suffix in ("", f":stream:{stream}", *patterns):
            pattern_rows = [row for row in rows if suffix == f":pattern:{row.subject}"]
            index.setdefault(INDEX_KEY + suffix, {})[stream] = len(pattern_rows or rows)
    pipe.hset(PLACES_KEY, mapping=cast("dict[Any, Any]", names))
    for key, streams in index.items():
        pipe.xadd(key, streams, id=last)
    pipe.execute()

"""Blocks of alerts: the alerts of one stream in one chunk of the alert log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from service.stores.results.blocks import header_of, pack, unpack
from shards import OutputRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert of a block; ``body`` is the alert as JSON."""

    number: int
    id: str
    pattern: str
    body: bytes


def pack_alerts(rows: Sequence[OutputRow], backs: Sequence[int], bodies: Sequence[bytes]) -> bytes:
    """The block of some alerts; ``backs``: how far the number of each is before the last one of the chunk."""
    patterns = list(dict.fromkeys(row.subject for row in rows))
    codes = {pattern: code for code, pattern in enumerate(patterns)}
    members = orjson.dumps({"backs": backs, "patterns": [codes[row.subject] for row in rows]})
    return pack([members, *bodies], ids=[row.id for row in rows], patterns=patterns)


def unpack_alerts(block: bytes, name: str) -> list[StoredAlert]:
    """The alerts of the block with this name, in order."""
    what = _named(name)
    header = header_of(block, what)
    members, *bodies = unpack(block, what)
    columns = orjson.loads(members)
    last = int(name.partition("-")[0])
    return [
        StoredAlert(number=last - back, id=id_, pattern=header["patterns"][code], body=body)
        for back, id_, code, body in zip(columns["backs"], header["ids"], columns["patterns"], bodies, strict=True)
    ]


def unpack_body(block: bytes, name: str, row: int) -> bytes:
    """The body of one alert of a block; rows begin with 1."""
    return unpack(block, _named(name))[row]


def _named(name: str) -> str:
    return f"the alerts {name!r}"

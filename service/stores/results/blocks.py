"""Blocks, which store the JSON texts of several results as one compressed value.

The first line of a block is its header, an uncompressed JSON object that scripts can read. The other lines are the
texts, one per line, so that a text must not contain a line break. A block of alerts has the alerts of one stream in one
chunk of the alert log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import orjson
import pyarrow as pa

from service.errors import RecordFormatError
from service.stores.records import decode, encode
from shards import OutputRow

MOST_BYTES = 256_000
"""Approximate maximum size of a block's texts in bytes, which limits the cost of reading a single text."""

_COMPRESSED_FROM = 200  # bytes; shorter texts do not shrink
_LEVEL = 1

_Item = TypeVar("_Item")


def pack(texts: Sequence[bytes], **header: Any) -> bytes:
    """Encode at least one text as a block. The members of ``header`` are added to the block's header, as plain JSON."""
    body = b"\n".join(texts)
    is_short = len(body) < _COMPRESSED_FROM
    if not is_short:
        packed = _codec().compress(body, asbytes=True)
    return encode(size=0 if is_short else len(body), **header) + b"\n" + (body if is_short else packed)


def unpack(block: bytes, title: str) -> list[bytes]:
    """Return the texts of a block.

    If the block is damaged or has an unknown format, raise ``RecordFormatError``. ``title`` names the block in errors.
    """
    header, _, body = block.partition(b"\n")
    size = decode(header, title)["size"]
    try:
        texts = _codec().decompress(body, size, asbytes=True) if size else body
    except OSError as error:
        raise RecordFormatError(f"the stored block of {title} is damaged: {error}") from error
    return cast(bytes, texts).split(b"\n")


def header_of(block: bytes, title: str) -> dict[str, Any]:
    """Return the header of a block."""
    return decode(block.partition(b"\n")[0], title)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlert:
    """An alert from a block. ``body`` is the alert as JSON."""

    number: int
    id: str
    pattern: str
    body: bytes


def pack_alerts(rows: Sequence[OutputRow], backs: Sequence[int], bodies: Sequence[bytes]) -> bytes:
    """Encode alerts of one stream as a block.

    ``backs`` has a number for each alert: the number of alerts of any stream that follow this alert in the chunk.
    """
    patterns = list(dict.fromkeys(row.subject for row in rows))
    codes = {pattern: code for code, pattern in enumerate(patterns)}
    members = orjson.dumps({"backs": backs, "patterns": [codes[row.subject] for row in rows]})
    return pack([members, *bodies], ids=[row.id for row in rows], patterns=patterns)


def unpack_alerts(block: bytes, name: str) -> list[StoredAlert]:
    """Return the alerts of a block, sorted by number. ``name`` begins with the number of the chunk's last alert."""
    title = _title_of(name)
    header = header_of(block, title)
    members, *bodies = unpack(block, title)
    columns = orjson.loads(members)
    last = int(name.partition("-")[0])
    return [
        StoredAlert(number=last - back, id=id_, pattern=header["patterns"][code], body=body)
        for back, id_, code, body in zip(columns["backs"], header["ids"], columns["patterns"], bodies, strict=True)
    ]


def unpack_body(block: bytes, name: str, row: int) -> bytes:
    """Return the body of the alert in a row of a block. Rows are counted from 1."""
    return unpack(block, _title_of(name))[row]


def _title_of(name: str) -> str:
    return f"the alerts {name!r}"


def in_parts(items: Sequence[_Item], sizes: Sequence[int], most: int) -> Iterator[Sequence[_Item]]:
    """Split items into consecutive parts of at most ``most`` items and at most ``MOST_BYTES``.

    An item that is larger than ``MOST_BYTES`` is a part of its own.
    """
    begin = total = 0
    for index, size in enumerate(sizes):
        if index > begin and (index - begin == most or total + size > MOST_BYTES):
            yield items[begin:index]
            begin, total = index, 0
        total += size
    if begin < len(items):
        yield items[begin:]


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=_LEVEL)

"""Capped lists of recent records with counters that are never reset: timeouts, early terminations, deviations etc.

An entry of a list holds a record or a block of records. The place of a record, by which cursors name it, is the entry's
id; in a block, a dot and the record's index follow (``1700000000000-0.3``).

A micro-batch may be written twice if the pipeline dies between its sink and its checkpoint. So the ids of the latest
micro-batch are remembered until the next one begins; a repeated id is neither listed nor counted nor delivered again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import orjson

from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import ROW_PLACE, Cursor, Order, Page, page_of
from service.stores.deliveries.webhooks import RegisteredWebhook
from service.stores.records import decode, encode
from service.stores.results.blocks import pack, unpack
from service.stores.results.hours import by_hour
from service.stores.results.writing import Writing, write_rows
from shards import OutputRow, ResultKind

COUNTS_SUFFIX = ":counts"  # appended to the key of a list: the key of its counters
SIZE_SUFFIX = ":size"  # likewise for the number of its records, which lists of earlier releases lack

_BEFORE_ALL = "0-0"
_CHUNK_ROWS = 500
_PAGE_ROWS = 500
_PARTS_KEPT = 10  # blocks have at most 1/10 of the kept records, because whole blocks are removed

_PlacedRecord: TypeAlias = tuple[str, dict[str, Any]]
"""A record with its place."""

_Entries: TypeAlias = "list[tuple[bytes, dict[bytes, bytes]]]"


class RecentList:
    """A capped list of about ``kept`` records, newest first."""

    def __init__(self, client: Client, key: str, *, kept: int) -> None:
        self._client = client
        self._kept = kept
        self.key = key

    def page(
        self,
        limit: int,
        *,
        stream: str | None = None,
        after: str | None = None,
        order: Order | None = None,
        **members: str | None,
    ) -> Page:
        """A page of records after a cursor, in the cursor's order; without a cursor, from the beginning in ``order``.

        The default order is newest first. Only records with the values in ``members`` are listed; None: any value. A
        cursor stays valid while records are added, or removed because the list is full.
        """
        begin = Cursor.read(after, order, ROW_PLACE, "desc")
        criteria = {name: value for name, value in {"stream": stream, **members}.items() if value is not None}
        rows = _PAGE_ROWS if criteria else limit + 1
        if begin.order == "asc":
            return page_of(self.oldest_first(begin.place or _BEFORE_ALL, rows), criteria, limit, begin)
        return page_of(self.newest_first(rows, begin.place), criteria, limit, begin)

    def newest_first(self, page_rows: int = _PAGE_ROWS, after: str | None = None) -> Iterator[_PlacedRecord]:
        """Pairs of place and record, newest first, before the place ``after``; reads about ``page_rows`` at once."""
        end, row = _entry_of(after)
        until, count = ("+" if end is None else f"{'(' if row is None else ''}{end}"), 1
        while page := cast(_Entries, self._client.xrevrange(self.key, max=until, count=count)):
            for place, fields in page:
                for row_place, read_row in reversed(_rows(place.decode(), fields, self.key)):
                    if place.decode() != end or row is None or _row_of(row_place) < row:
                        yield row_place, read_row()
            until, count = "(" + page[-1][0].decode(), _next_count(count, page, page_rows)

    def oldest_first(self, after: str, page_rows: int = _PAGE_ROWS) -> Iterator[_PlacedRecord]:
        """Pairs of place and record, oldest first, after the place ``after``; reads about ``page_rows`` at once."""
        begin, row = _entry_of(after)
        start, count = f"{'(' if row is None else ''}{begin}", 1
        while page := cast(_Entries, self._client.xrange(self.key, min=start, count=count)):
            for place, fields in page:
                for row_place, read_row in _rows(place.decode(), fields, self.key):
                    if place.decode() != begin or row is None or _row_of(row_place) > row:
                        yield row_place, read_row()
            start, count = "(" + page[-1][0].decode(), _next_count(count, page, page_rows)


class RecentStore(RecentList):
    """The capped list of one kind of result, and its counters."""

    def __init__(self, client: Client, kind: ResultKind, *, kept: int = 10_000) -> None:
        super().__init__(client, list_key(kind), kept=kept)
        self._append = register(client, "results/append_rows")
        self.kind = kind

    def append(
        self,
        rows: Sequence[OutputRow],
        epoch: int,
        webhooks: Sequence[RegisteredWebhook] = (),
        now_us: int = 0,
        severities: Mapping[str, str] | None = None,
    ) -> int:
        """Store and count the rows of a micro-batch, and return the number of new rows.

        Rows already stored in the same micro-batch, whose number is ``epoch``, are skipped. Each row has a delivery for
        each webhook that selects it; the first attempt is due at ``now_us``. ``severities``: as in ``Writing``.
        """
        writing = Writing(epoch=epoch, now_us=now_us, webhooks=webhooks, severities=severities)
        most = min(_CHUNK_ROWS, max(1, self._kept // _PARTS_KEPT))
        return write_rows(rows, most, partial(self._append_chunk, writing, is_listed=True))

    def count(self, rows: Sequence[OutputRow], epoch: int) -> int:
        """Add each row's ``count`` to a counter once per micro-batch; list no row. Returns the number of new rows."""
        return write_rows(rows, _CHUNK_ROWS, partial(self._append_chunk, Writing(epoch=epoch), is_listed=False))

    def _append_chunk(self, writing: Writing, rows: Sequence[OutputRow], *, is_listed: bool) -> list[int]:
        """Write a chunk, unless some of its rows are stored already; returns the stored rows' indexes, from 1."""
        counts: Counter[str] = Counter()
        if is_listed:
            counts.update(row.counter for row in rows)
        else:
            for row in rows:
                counts[row.counter] += orjson.loads(row.body)["count"]
        stored_numbers: list[int] = self._append(
            entries=self.key,
            size=self.key + SIZE_SUFFIX,
            counts=self.key + COUNTS_SUFFIX,
            seen=self.key + ":seen",
            kept=self._kept,
            chunk=orjson.dumps(
                {
                    "ids": [row.id for row in rows],
                    "counts": list(counts.items()),
                    "hours": by_hour(self.kind, rows) if is_listed else [],
                    "deliveries": writing.deliveries(self.kind, rows) if is_listed else [],
                }
            ),
            block=pack(writing.bodies(rows)) if is_listed else b"",
            **writing.arguments(self.kind),
        )
        return stored_numbers

    def counts(self, **criteria: str) -> list[dict[str, Any]]:
        """The counters with the values in ``criteria`` since the store began, sorted; each has a ``count``."""
        raw = cast("dict[bytes, bytes]", self._client.hgetall(self.key + COUNTS_SUFFIX))
        counters = sorted((list(self.kind.counted(counter).items()), int(count)) for counter, count in raw.items())
        records = ({**dict(values), "count": count} for values, count in counters)
        return [counter for counter in records if criteria.items() <= counter.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A change requested over the API and answered at ``at_us``; contains no secret and nothing of the body.

    ``key`` is the id of the API key, ``environment`` for the key in the environment, None if no key is required.
    ``client``: address of the caller; empty if unknown.
    """

    at_us: int
    key: str | None
    key_name: str | None
    client: str
    method: str
    route: str
    resource: str
    status: int


class AuditLog(RecentList):
    """The audit log: the latest changes, with the client that requested each."""

    def __init__(self, client: Client, *, kept: int) -> None:
        super().__init__(client, PREFIX + "audit", kept=kept)

    def note(self, entry: AuditEntry) -> None:
        """Add an entry; beyond the number to keep, the oldest entries are removed."""
        # A command whose reply was lost is sent again, so an entry may be listed twice; none is ever missing.
        self._client.xadd(self.key, {"record": encode(**asdict(entry))}, maxlen=self._kept, approximate=True)


def list_key(kind: ResultKind) -> str:
    """Redis key of the list of a kind of result."""
    return PREFIX + kind.plural


def _entry_of(place: str | None) -> tuple[str | None, int | None]:
    """Split a record's place into the entry's id and the record's index in the entry's block; None without a block."""
    if place is None:
        return None, None
    entry, dot, _ = place.partition(".")
    return entry, _row_of(place) if dot else None


def _row_of(place: str) -> int:
    return int(place.partition(".")[2])


def _rows(place: str, fields: Mapping[bytes, bytes], key: str) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """The records of an entry, oldest first: for each record its place, as in cursors, and a function that reads it."""
    if b"block" not in fields:
        return [(place, lambda: decode(fields[b"record"], key))]
    texts = unpack(fields[b"block"], key)
    return [(f"{place}.{row}", partial(orjson.loads, text)) for row, text in enumerate(texts)]


def _next_count(count: int, page: _Entries, rows: int) -> int:
    """How many entries to read for about ``rows`` rows, if entries are as long as in ``page`` on average."""
    size = sum(int(fields.get(b"rows", 1)) for _, fields in page)
    return max(1, count * rows // size)

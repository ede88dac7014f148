"""Capped lists of recent records with counters that are never reset: timeouts, early terminations, deviations etc.

A micro-batch may be written twice if the pipeline dies between its sink and its checkpoint. So the ids of the latest
micro-batch are remembered until the next one begins; a repeated id is neither listed nor counted nor delivered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import orjson

from service.stores.connection import PREFIX, Client, register
from service.stores.cursors import PLACE, require_cursor
from service.stores.deliveries.delivery import DUE_KEY, RECORDS_KEY, Deliverable, deliveries_of
from service.stores.deliveries.webhooks import RegisteredWebhook
from service.stores.records import decode, encode_object
from service.stores.severities import USUAL_SEVERITY
from shards import OutputRow, ResultKind
from streams import NOTED_KEY

COUNTS_SUFFIX = ":counts"  # appended to the key of a list: the key of its counters

_Arguments: TypeAlias = tuple[str | bytes | int, ...]

_CHUNK_ROWS = 500
_PAGE_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentPage:
    """Some records, newest first; ``next`` is the cursor for older ones, None when these are all."""

    records: list[dict[str, Any]]
    next: str | None


class RecentList:
    """A capped list of about ``kept`` records, newest first."""

    def __init__(self, client: Client, key: str, *, kept: int) -> None:
        self._client = client
        self._kept = kept
        self.key = key

    def page(
        self, limit: int, *, stream: str | None = None, after: str | None = None, **chosen: str | None
    ) -> RecentPage:
        """The latest records, newest first, or the older ones after ``next`` of an earlier page.

        Only records whose fields have the chosen values are listed; None: any value. A cursor stays valid while records
        are added, or removed because the list is full.
        """
        if after is not None:
            require_cursor(after, PLACE)
        found: list[dict[str, Any]] = []
        last: str | None = None
        wanted = {name: value for name, value in {"stream": stream, **chosen}.items() if value is not None}
        for place, record in self._newest_first(_PAGE_ROWS if wanted else limit + 1, after):
            if not wanted.items() <= record.items():
                continue
            if len(found) == limit:
                return RecentPage(records=found, next=last)
            found.append(record)
            last = place
        return RecentPage(records=found, next=None)

    def recent(self, limit: int, *, stream: str | None = None) -> list[dict[str, Any]]:
        """The latest records, newest first."""
        return self.page(limit, stream=stream).records

    def _newest_first(self, page_rows: int, after: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Places and records, newest first, from the end or from a place."""
        until = "+" if after is None else f"({after}"
        while page := cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrevrange(self.key, max=until, count=page_rows),
        ):
            for place, fields in page:
                yield place.decode(), decode(fields[b"record"], self.key)
            until = "(" + page[-1][0].decode()


class RecentStore(RecentList):
    """The capped list of one kind of result with its counters."""

    def __init__(self, client: Client, kind: ResultKind, *, kept: int = 10_000) -> None:
        super().__init__(client, list_key(kind), kept=kept)
        self._append = register(client, "results/append_rows")
        self.kind = kind

    def append(
        self, rows: Sequence[OutputRow], epoch: int, webhooks: Sequence[RegisteredWebhook] = (), now_us: int = 0
    ) -> int:
        """Store and count the rows of a micro-batch, and return the number of new ones.

        Rows already stored in the same epoch, the number of the micro-batch, are skipped. Each row has a delivery for
        each webhook that wants it; its first attempt is due at ``now_us``.
        """

        def arguments(row: OutputRow) -> _Arguments:
            body = graded_body(row)
            return row.id, encode_object(body), row.counter, 1, self._deliveries(row, body, webhooks, now_us)

        return self._put(rows, epoch, now_us, arguments)

    def count(self, rows: Sequence[OutputRow], epoch: int) -> int:
        """Add the ``count`` of unlisted rows, once per epoch (number of the micro-batch); returns how many were new."""
        return self._put(rows, epoch, 0, lambda row: (row.id, b"", row.counter, orjson.loads(row.body)["count"], b""))

    def _put(
        self,
        rows: Sequence[OutputRow],
        epoch: int,
        now_us: int,
        arguments: Callable[[OutputRow], _Arguments],
    ) -> int:
        """Pass rows to the script in chunks; returns the number of new ones."""
        added = 0
        for start in range(0, len(rows), _CHUNK_ROWS):
            new = self._append(
                noted=NOTED_KEY,
                entries=self.key,
                counts=self.key + COUNTS_SUFFIX,
                seen=self.key + ":seen",
                due=DUE_KEY,
                deliveries=RECORDS_KEY,
                epoch=f"epoch:{epoch}",
                kept=self._kept,
                now_us=now_us,
                rows=[part for row in rows[start : start + _CHUNK_ROWS] for part in arguments(row)],
            )
            added += int(new)
        return added

    def _deliveries(self, row: OutputRow, body: bytes, webhooks: Sequence[RegisteredWebhook], now_us: int) -> bytes:
        """The row's deliveries in the form for the script; empty if there are none."""
        if not self.kind.delivered_as or not webhooks:
            return b""
        item = Deliverable(
            kind=self.kind.delivered_as,
            id=row.id,
            stream=row.stream,
            pattern=row.subject or None,
            severity=row.severity or USUAL_SEVERITY,
            body=body.decode(),
        )
        found = deliveries_of(item, webhooks, now_us)
        return orjson.dumps(found) if found else b""

    def counts(self, **chosen: str) -> list[dict[str, Any]]:
        """Counters with the chosen values since the store began, sorted: the fields counted by, and ``count``."""
        raw = cast("dict[bytes, bytes]", self._client.hgetall(self.key + COUNTS_SUFFIX))
        counters = sorted((list(self.kind.counted(counter).items()), int(count)) for counter, count in raw.items())
        found = ({**dict(values), "count": count} for values, count in counters)
        return [counter for counter in found if chosen.items() <= counter.items()]


def list_key(kind: ResultKind) -> str:
    """Redis key of the list of a kind of result."""
    return PREFIX + kind.plural


def graded_body(row: OutputRow) -> bytes:
    """A row in its stored form, a JSON object; its last member is the severity of its operator, if it has one."""
    return row.body[:-1] + b',"severity":"%b"}' % row.severity.encode() if row.severity else row.body

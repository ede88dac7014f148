"""Capped lists of recent records with counters that never forget: timeouts, early terminations, deviations and so on.

A micro-batch may be written twice when the pipeline dies between its sink and its checkpoint. So the ids of the latest
micro-batch are remembered until the next one begins; a repeated id is neither listed nor counted nor delivered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import orjson

from service.stores.connection import Client, register
from service.stores.cursors import PLACE, require_cursor
from service.stores.deliveries.delivery import DUE_KEY, RECORDS_KEY, Deliverable, deliveries_of
from service.stores.deliveries.webhooks import DeliveredKind, RegisteredWebhook
from service.stores.records import decode, encode
from service.stores.severities import USUAL_SEVERITY

_CHUNK_ROWS = 500
_PAGE_ROWS = 500


class Row(Protocol):
    """What the pipeline hands over: a JSON object with a deterministic id."""

    @property
    def id(self) -> str: ...

    @property
    def stream(self) -> str: ...

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentPage:
    """Some records, newest first.

    Attributes:
        records: As plain JSON.
        next: Cursor behind the last of them, for older ones; None when these are all.
    """

    records: list[dict[str, Any]]
    next: str | None


class RecentStore:
    """One capped list with its counters; subclasses say where it is and what is counted.

    Attributes:
        key: Redis key of the list.
        counted: Fields of a record that make its counter.
        delivered: Under which kind webhooks may want its records; None: they are not delivered.

    Args:
        client: Where it is.
        kept: About so many records are kept.
    """

    key: ClassVar[str]
    counted: ClassVar[tuple[str, ...]]
    delivered: ClassVar[DeliveredKind | None] = None

    def __init__(self, client: Client, *, kept: int = 10_000) -> None:
        self._client = client
        self._kept = kept
        self._append = register(client, "results/append_rows")

    @classmethod
    def counts_key(cls) -> str:
        """Redis key of the counters."""
        return cls.key + ":counts"

    @classmethod
    def counter(cls, record: Mapping[str, Any]) -> bytes:
        """The counter of a record, as it is stored."""
        return orjson.dumps([_as_text(record.get(name)) for name in cls.counted])

    def append(
        self, rows: Sequence[Row], epoch: int, webhooks: Sequence[RegisteredWebhook] = (), now_us: int = 0
    ) -> int:
        """Keep and count the rows of a micro-batch; those of the same epoch that are there already are passed over.

        Args:
            rows: In their order.
            epoch: Number of the micro-batch.
            webhooks: Those registered now; each row has one delivery per webhook that wants it.
            now_us: When the first attempt of the deliveries is due.

        Returns:
            How many were new.
        """

        def arguments(row: Row) -> tuple[str | bytes | int, ...]:
            record = {**orjson.loads(row.body), "id": row.id, "stream": row.stream}
            return row.id, encode(**record), self.counter(record), 1, self._deliveries(row, record, webhooks, now_us)

        return self._put(rows, epoch, now_us, arguments)

    def count(self, rows: Sequence[Row], epoch: int) -> int:
        """Count what is not listed: each row stands for ``count`` records; those that are there are passed over.

        Args:
            rows: Of a micro-batch; ``count`` and the fields of ``counted`` are in their bodies.
            epoch: Number of the micro-batch.

        Returns:
            How many rows were new.
        """

        def arguments(row: Row) -> tuple[str | bytes | int, ...]:
            body = orjson.loads(row.body)
            return row.id, b"", self.counter({**body, "stream": row.stream}), body["count"], b""

        return self._put(rows, epoch, 0, arguments)

    def _put(
        self, rows: Sequence[Row], epoch: int, now_us: int, arguments: Callable[[Row], tuple[str | bytes | int, ...]]
    ) -> int:
        """Give rows to the script, some at a time; how many were new."""
        added = 0
        for start in range(0, len(rows), _CHUNK_ROWS):
            new = self._append(
                entries=self.key,
                counts=self.counts_key(),
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

    def _deliveries(
        self, row: Row, record: Mapping[str, Any], webhooks: Sequence[RegisteredWebhook], now_us: int
    ) -> bytes:
        """The row's deliveries as the script takes them; empty when there are none."""
        if self.delivered is None or not webhooks:
            return b""
        item = Deliverable(
            kind=self.delivered,
            id=row.id,
            stream=row.stream,
            pattern=record.get("pattern"),
            severity=record.get("severity", USUAL_SEVERITY),
            body=row.body.decode(),
        )
        found = deliveries_of(item, webhooks, now_us)
        return orjson.dumps(found) if found else b""

    def page(
        self, limit: int, *, stream: str | None = None, after: str | None = None, **chosen: str | None
    ) -> RecentPage:
        """The latest records, newest first, or those behind a cursor, which are older.

        Records that come in between, or go as the list is full, move no cursor.

        Args:
            limit: At most so many.
            stream: Only those of this stream.
            after: ``next`` of an earlier page.
            chosen: Only those whose fields have these values; None: any.

        Raises:
            InvalidCursor: ``after`` is not a cursor.
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

    def counts(self, **chosen: str) -> list[dict[str, Any]]:
        """One object per counter, in their order: the fields of ``counted``, and ``count`` since the store began.

        Args:
            chosen: Only counters whose fields have these values.
        """
        raw = cast("dict[bytes, bytes]", self._client.hgetall(self.counts_key()))
        counters = sorted((self._padded(orjson.loads(counter)), int(count)) for counter, count in raw.items())
        found = ({**dict(zip(self.counted, values, strict=True)), "count": count} for values, count in counters)
        return [counter for counter in found if chosen.items() <= counter.items()]

    def _padded(self, values: list[str]) -> list[str]:
        """A counter's values; an earlier release may have counted by fewer fields."""
        return [*values, *[""] * (len(self.counted) - len(values))]

    def _newest_first(self, page_rows: int, after: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """Places and records, from the newest on, or from behind a place."""
        until = "+" if after is None else f"({after}"
        while page := cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrevrange(self.key, max=until, count=page_rows),
        ):
            for place, fields in page:
                yield place.decode(), decode(fields[b"record"], self.key)
            until = "(" + page[-1][0].decode()


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return "" if value is None else str(value)

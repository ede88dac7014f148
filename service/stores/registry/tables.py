"""Reference tables and their versions. The rows of a version are stored in pieces, under the digest of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import uuid4

import orjson

from service.errors import StoreUnavailable, UnknownTable
from service.stores.conditions import ANY, Condition
from service.stores.connection import PREFIX, Client, register
from service.stores.log.event_log import EventLog
from service.stores.record_books import Change, Checks, LogChange, RecordBook, Records, uses_of, version_of
from service.stores.records import encode
from service.stores.server_facts import server_time_us
from streams import ControlRecord, TableOff, TableOn, TableRow, log_key
from streams.tables import STORED, TableFiles, TableForm, TableVersion, fetching, piece_count, pieces_of_file, title_of

_DRAFT_LIFE_S = 3_600
_GRACE_S = 86_400
_LATEST_MS = 600_000  # longest time between a version's record and its entry in the log


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTable:
    """A registered version of a reference table.

    Attributes:
        version: Version number, which counts from 1 for each name and is never reused.
        size_bytes: Size of the rows when mapped into memory.
        changes: Number of changes of single rows since the version was registered.
        since_ms: Time of the registration by the clock of Redis, or 0 in records of older releases. If the table is
            deleted, time of the deletion.
    """

    name: str
    version: int
    is_active: bool
    registered_us: int
    key: tuple[str, ...]
    columns: Mapping[str, str]
    digest: str
    rows: int
    size_bytes: int
    changes: int = 0
    since_ms: int = 0

    @property
    def tag(self) -> str:
        """The entity tag, which is different for each table and version, and after each change of a row."""
        return f"{self.name}@{self.version}.{self.changes}"

    @property
    def table(self) -> TableVersion:
        form = TableForm.from_json({"key": self.key, "columns": self.columns})
        return TableVersion(name=self.name, version=self.version, form=form, digest=self.digest, rows=self.rows)


ReadRow: TypeAlias = Callable[[RegisteredTable], tuple[str, tuple[Any, ...] | None]]
"""Function that returns a row's key, in the form of ``streams.tables.key_texts``, and the row's new values.

It returns None in place of the values to remove the row.
"""


class TableStore(Records[RegisteredTable]):
    """The reference tables, by name."""

    key = PREFIX + "tables"
    versions_key = PREFIX + "table-versions"
    one = "the table"
    form = RegisteredTable

    def __init__(self, client: Client, log: EventLog) -> None:
        super().__init__(RecordBook(client, log.layout.append))
        self._log = log
        self._keep_piece = register(client, "registry/keep_piece")
        self._forget = register(client, "registry/forget_tables", versions=self.versions_key)
        self.files = TableFiles(fetching(self._piece))

    def unknown(self, name: str, reason: str = "", **details: Any) -> UnknownTable:
        title = title_of(name)
        return UnknownTable(f"there is no {title}; GET /v1/{title.partition(' ')[0]}s lists them", table=name)

    def put(
        self,
        version: TableVersion,
        path: Path,
        now_us: int,
        condition: Condition = ANY,
        required: Callable[[], Checks] = tuple,
    ) -> tuple[RegisteredTable, bool]:
        """Register the rows of a file as the next version of a table. Equal rows change nothing.

        ``required`` is called before each attempt to store the version, and may raise. Return the current version after
        the call, and whether it is new.
        """
        self._keep(version.digest, path)

        def changed(stored: RegisteredTable | None) -> Change | None:
            present = stored if stored is not None and stored.is_active else None
            condition.check_record(present)
            if present is not None and (present.digest, present.changes) == (version.digest, 0):
                return None
            record = RegisteredTable(
                name=version.name,
                version=1 if stored is None else stored.version + 1,
                is_active=True,
                registered_us=now_us,
                key=version.form.key,
                columns=version.form.columns,
                digest=version.digest,
                rows=version.rows,
                size_bytes=path.stat().st_size,
                since_ms=server_time_us(self._client) // 1_000,
            )
            change = _change(record, TableOn(record.table), version=record.version)
            return replace(change, checks=required(), commands=(("PERSIST", STORED + version.digest),))

        record, is_new = self.apply(version.name, changed)
        self._forget_old()
        return record, is_new

    def change_row(self, name: str, read: ReadRow, condition: Condition) -> RegisteredTable:
        """Set or remove one row of a table's current version, and return the version.

        ``read`` receives the version. It returns the key, and the new row or None to remove the row. It may raise. If
        another writer intervenes, or an operator that uses the table is registered, ``read`` is called again.
        """

        def changed(stored: RegisteredTable | None) -> Change:
            record = self.require(stored, name, condition)
            checks = self.use_check(name)
            key, row = read(record)
            control = TableRow(name=name, version=record.version, key=key, row=row)
            change = _change(replace(record, changes=record.changes + 1), control)
            return replace(change, checks=checks, commands=(("HSET", _changes_key(record), key, orjson.dumps(row)),))

        return self.apply(name, changed)[0]

    def remove(self, name: str, condition: Condition = ANY, required: Callable[[], Checks] = tuple) -> None:
        """Delete a table. Its version numbers are not reused. ``required`` has the same meaning as in ``put``."""

        def changed(stored: RegisteredTable | None) -> Change:
            record = self.require(stored, name, condition)
            deleted = replace(record, is_active=False, since_ms=server_time_us(self._client) // 1_000)
            change = _change(deleted, TableOff(name), version=record.version)
            return replace(change, checks=required(), commands=(("HDEL", *uses_of(self.key, name)),))

        self.apply(name, changed)
        self._forget_old()

    def versions(self, name: str) -> list[RegisteredTable]:
        """Return the retained versions of a table, the current version last.

        If the table is unknown or deleted, raise ``UnknownTable``.
        """
        return [*super().versions(name)[:-1], self.get(name)]  # only the current record has changes of rows

    def changes(self, record: RegisteredTable) -> dict[str, Any]:
        """Return the rows that ``change_row`` has set in a table version, by key. A row that was removed is None."""
        rows = cast("dict[bytes, bytes]", self._client.hgetall(_changes_key(record)))
        return {key.decode(): orjson.loads(row) for key, row in rows.items()}

    def _forget_old(self) -> None:
        """Remove the versions that had been replaced before the oldest entry of the log was appended.

        No snapshot can need these versions. Their rows expire later, because a backtest may be about to read them.
        """
        versions, needed_ms = self._every_version(), self._oldest_ms() - _LATEST_MS
        ends_ms = {
            version.tag: successor.since_ms
            for version, successor in pairwise(versions)
            if version.name == successor.name
        }
        ends_ms |= {version.tag: version.since_ms for version in versions if not version.is_active}
        outdated = [version for version in versions if 0 < ends_ms.get(version.tag, 0) < needed_ms]
        self._forget(
            changes=[_changes_key(version) for version in outdated],
            contents=STORED,
            life_s=_GRACE_S,
            fields=[version_of(version.name, version.version) for version in outdated],
        )

    def _every_version(self) -> list[RegisteredTable]:
        versions = [self.read(body, field) for field, body in self._book.all(self.versions_key)]
        return sorted(versions, key=lambda version: (version.name, version.version))

    def _oldest_ms(self) -> int:
        """Return the time of the oldest entry of the log, by the clock of Redis, or 0 for an empty log."""
        firsts = [self._client.xrange(log_key(shard), count=1) for shard in range(self._log.layout.read().shards)]
        times = [int(cast("bytes", first[0][0]).partition(b"-")[0]) for first in firsts if first]
        return min(times, default=0)

    def _keep(self, digest: str, path: Path) -> None:
        """Store the content of a file. It expires after an hour unless a version with its digest is registered."""
        key, draft, pieces = STORED + digest, f"{STORED}{digest}:{uuid4().hex}", piece_count(path)
        self._client.expire(key, _DRAFT_LIFE_S, gt=True)
        if self._client.llen(key) == pieces:
            return
        for place, piece in enumerate(pieces_of_file(path)):
            if not self._keep_piece(
                draft=draft, content=key, place=place, pieces=pieces, life_s=_DRAFT_LIFE_S, piece=piece
            ):
                raise StoreUnavailable("Redis has lost a part of the table that was being stored; try again")

    def _piece(self, key: str, place: int) -> bytes | None:
        return cast("bytes | None", self._client.lindex(key, place))


def _changes_key(record: RegisteredTable) -> str:
    return f"{PREFIX}table-changes:{record.version}@{record.name}"


def _change(record: RegisteredTable, control: ControlRecord, version: int = 0) -> Change:
    return Change(record=encode(**asdict(record)), version=version, log=(LogChange(stream="", control=control),))

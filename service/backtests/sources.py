"""The sources that a service's backtests may read, which are the files below one folder, and the event log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from service.errors import BacktestRefused
from service.settings import PREFIX
from service.stores import EventLog, TableStore
from shards import TableRecord
from streams import EventBatch, RecordKind, TableOff, TableOn, TableRow, decode_control, render_plain
from streams.tables import Tables

_MS_US = 1_000
_OF_TABLES = frozenset((TableOn.KIND, TableOff.KIND, TableRow.KIND))


def allowed_path(folder: Path | None, path: str) -> Path:
    """Resolve a path of a backtest. Raise ``BacktestRefused`` if it does not exist or is outside the folder."""
    if folder is None:
        raise BacktestRefused(
            f'files cannot be read, as {PREFIX}BACKTEST_DIR is not set; use the log: {{"log": true}}', path=path
        )
    root = folder.resolve()
    try:
        file_path = (root / path).resolve()
        is_inside, exists = file_path.is_relative_to(root), file_path.exists()
    except (OSError, ValueError) as error:
        raise BacktestRefused(f"{path!r} is not a path that can be read: {error}", path=path) from error
    if not is_inside:
        raise BacktestRefused(
            f"{path!r} is outside the folder of {PREFIX}BACKTEST_DIR; name a file or folder in it", path=path
        )
    if not exists:
        raise BacktestRefused(f"there is no {path!r} in the folder of {PREFIX}BACKTEST_DIR", path=path)
    return file_path


def require_inside(folder: Path | None, files: tuple[Path, ...]) -> None:
    """Raise ``BacktestRefused`` if a file of a history is a link to a target outside the folder."""
    root = None if folder is None else folder.resolve()
    for file in files:
        if root is None or not file.resolve().is_relative_to(root):
            raise BacktestRefused(f"{file.name} is a link out of the folder of {PREFIX}BACKTEST_DIR", path=file.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The part of the log to export: the events of a stream between two times, and the changes of some tables.

    Attributes:
        now_us: End of the range by Redis' clock, microseconds UTC.
        since_ms: Start of the range by Redis' clock, milliseconds UTC.
        tables: Names of the tables. A calendar is stored as a table, and has the name of this table.
    """

    stream: str
    now_us: int
    since_ms: int = 0
    tables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedLog:
    """An exported part of the log.

    Attributes:
        files: One file of events for each shard.
        changes: Changes of tables, in the order of the log.
        places: When each change took effect. ``places[f][c]`` counts the events in file ``f`` before change ``c``.
    """

    files: tuple[Path, ...]
    places: tuple[tuple[int, ...], ...]
    changes: tuple[TableRecord, ...]


def export_log(log: EventLog, folder: Path, log_range: LogRange) -> ExportedLog:
    """Export the events of a part of the log to files, and return the files with the changes of tables.

    Each shard of the log contains all changes of tables, unless its oldest entries were trimmed. If a change is missing
    in a shard, it counts as older than all events of that shard.
    """
    shards = [_exported(log, shard, folder, log_range) for shard in range(log.layout.read().shards)]
    changes = max((part.changes for part in shards), key=len)
    return ExportedLog(
        files=tuple(part.file for part in shards),
        places=tuple((*[0] * (len(changes) - len(part.places)), *part.places) for part in shards) if changes else (),
        changes=tuple(changes),
    )


@dataclass(slots=True)
class _Shard:
    """An exported shard. For each change of a table, ``places`` has the number of events before the change."""

    file: Path
    changes: list[TableRecord] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


def _exported(log: EventLog, shard: int, folder: Path, log_range: LogRange) -> _Shard:
    exported = _Shard(folder / f"shard-{shard:05d}.jsonl")
    events = 0
    with exported.file.open("wb") as lines:
        for entry in log.read_range(shard, after=f"{log_range.since_ms}-0", until=str(log_range.now_us // _MS_US)):
            if entry.kind is RecordKind.EVENTS and entry.stream == log_range.stream and not entry.route:
                for event in EventBatch.from_bytes(entry.body).to_events():
                    lines.write(orjson.dumps(render_plain(event)) + b"\n")
                    events += 1
            elif entry.kind in _OF_TABLES and log_range.tables:
                record = decode_control(entry.kind, entry.body)
                if isinstance(record, TableOn | TableOff | TableRow) and table_named(record) in log_range.tables:
                    exported.changes.append(record)
                    exported.places.append(events)
    return exported


def tables_before(tables: TableStore, names: Collection[str], records: Sequence[TableRecord]) -> Tables:
    """Return the tables called ``names`` as they were before the changes in ``records``.

    The store has only the newest value of a row. If ``records`` change a row, the row therefore gets the value in the
    file of the table's version. Changes between that file and ``records`` are lost.
    """
    past_tables = Tables(tables.files)
    for name in sorted(names):
        versions = {table_version.version: table_version for table_version in tables.versions(name)}
        table_records = [record for record in records if table_named(record) == name]
        if (version := versions.get(_version_before(table_records, max(versions)))) is not None:
            later = {
                row_change.key
                for row_change in table_records
                if isinstance(row_change, TableRow) and row_change.version == version.version
            }
            changes = {key: row for key, row in tables.changes(version).items() if key not in later}
            past_tables = past_tables.with_version(version.table, changes)
    return past_tables


def _version_before(records: Sequence[TableRecord], newest: int) -> int:
    """Return the version that a table had before the changes in ``records``, or ``newest`` if they name no version."""
    for record in records:
        match record:
            case TableRow():
                return record.version
            case TableOn(version):
                return version.version - 1
    return newest


def table_named(record: TableRecord) -> str:
    """Return the name of the table or calendar that a control record changes."""
    return record.table.name if isinstance(record, TableOn) else record.name

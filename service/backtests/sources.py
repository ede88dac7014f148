"""The sources that a backtest of the service may read: files below one folder, and the log."""

from __future__ import annotations

from pathlib import Path

import orjson

from service.errors import BacktestRefused
from service.settings import PREFIX
from service.stores import EventLog
from streams import EventBatch, RecordKind, render_plain

_MS_US = 1_000


def allowed_path(folder: Path | None, path: str) -> Path:
    """The file or folder that a backtest names, if it may be read.

    Raises:
        BacktestRefused: It lies elsewhere, also by links, or does not exist.
    """
    if folder is None:
        raise BacktestRefused(
            f'files cannot be read, as {PREFIX}BACKTEST_DIR is not set; use the log: {{"log": true}}', path=path
        )
    root = folder.resolve()
    try:
        found = (root / path).resolve()
        is_inside, is_there = found.is_relative_to(root), found.exists()
    except (OSError, ValueError) as error:
        raise BacktestRefused(f"{path!r} is not a path that can be read: {error}", path=path) from error
    if not is_inside:
        raise BacktestRefused(
            f"{path!r} is outside the folder of {PREFIX}BACKTEST_DIR; name a file or folder in it", path=path
        )
    if not is_there:
        raise BacktestRefused(f"there is no {path!r} in the folder of {PREFIX}BACKTEST_DIR", path=path)
    return found


def require_inside(folder: Path | None, files: tuple[Path, ...]) -> None:
    """Check that no file of a folder is a link to somewhere else."""
    root = None if folder is None else folder.resolve()
    for file in files:
        if root is None or not file.resolve().is_relative_to(root):
            raise BacktestRefused(f"{file.name} is a link out of the folder of {PREFIX}BACKTEST_DIR", path=file.name)


def export_log(log: EventLog, stream: str, folder: Path, now_us: int, since_ms: int = 0) -> tuple[Path, ...]:
    """Write the events of a stream that the log has between two times, one file of lines for each shard."""
    files = []
    for shard in range(log.layout.read().shards):
        file = folder / f"shard-{shard:05d}.jsonl"
        with file.open("wb") as lines:
            for entry in log.read_range(shard, after=f"{since_ms}-0", until=str(now_us // _MS_US)):
                if entry.kind is RecordKind.EVENTS and entry.stream == stream and not entry.route:
                    for event in EventBatch.from_bytes(entry.body).to_events():
                        lines.write(orjson.dumps(render_plain(event)) + b"\n")
        files.append(file)
    return tuple(files)

"""Backups of a stopped service as one file: the data in Redis, the pipeline's checkpoint, and the saved states.

These three are consistent with each other, because no process is running. So a restored service continues exactly from
the offsets of the checkpoint and the saved states, and emits each alert once. A backup contains no handover files,
because they are rebuilt, and no compiled kernels, logs or files of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import orjson

from pipeline import remove_folder
from service.errors import BackupDamaged, BackupRefused, FileUnreadable, StoreNewer
from service.migrations import NEWEST_FORMAT
from service.observing.overview import require_stopped
from service.runtime import Stores
from service.settings import Settings
from service.stores import (
    FIRST_FORMAT,
    FORMAT_KEY,
    KeyPart,
    Keyspace,
    ProjectStore,
    TableStore,
    WebhookStore,
    WorkflowStore,
)
from service.upkeep.backup_file import BackupWriter, frames, writing
from streams import STREAMS_KEY, Clock

Telling = Callable[[float], None]

_SECOND_US = 1_000_000
_BLOCK = 1024 * 1024
_CHECKPOINTS = "checkpoint*"  # one checkpoint for each layout of the log
_WORDS = {"redis": "Redis", "folder": "a folder"}
_OF_DATA = tuple(  # at least one key begins like this, unless the service was only started
    key.encode()
    for key in (
        *(STREAMS_KEY, TableStore.key, WorkflowStore.key, WebhookStore.key, ProjectStore.key),
        *("forestall:alerts", "forestall:incidents"),
    )
)
_PROGRESS_KEYS = (
    b"forestall:log:counts",
    b"forestall:log:matched",
    b"forestall:log:stepped",
    b"forestall:deliveries:due",
    b"forestall:deliveries:turns",
    b"forestall:deliveries:digests",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupContent:
    """The contents of a backup: the numbers of Redis keys and of the pipeline's files, and the time of the backup.

    ``states`` is the place of the saved states: among the keys (``redis``) or the files (``folder``).
    """

    made_us: int
    keys: int
    files: int
    states: str


def back_up(
    settings: Settings, stores: Stores, path: Path, clock: Clock, tell: Telling, *, replace: bool = False
) -> BackupContent:
    """Write a backup to a file, which gets its name only when it is complete. With ``replace``, the file may exist.

    ``tell`` is called with the finished share, up to 1. Raises ``BackupRefused`` if the service runs, if events were
    appended or matched or results were delivered while the backup was written, if nothing was registered in the
    service, if the file exists, if an interrupted restoration must be repeated first, or if a restoration would delete
    the file.
    """
    _require_outside(settings, path)
    if path.is_dir():
        raise BackupRefused(f"{path} is a folder; name the file to write, such as {path / 'orders.backup'}")
    if path.exists() and not replace:
        raise BackupRefused(f"the file {path} exists already; --replace overwrites it for good")
    require_stopped(settings, stores, clock, BackupRefused)
    keyspace = Keyspace(stores.client)
    if keyspace.is_restoring():
        raise BackupRefused("a backup was being restored and is not complete: restore it again first")
    before = _progress(keyspace)
    keys, files = keyspace.names(), list(_files(settings))
    if not any(key.startswith(_OF_DATA) for key in keys):
        raise BackupRefused(
            f"Redis has no streams, tables, workflows, webhooks or alerts of a service with the data folder "
            f"{settings.data_dir}, so the backup would be empty: set FORESTALL_DATA_DIR and FORESTALL_REDIS_URL as for "
            "the service"
        )
    content = BackupContent(made_us=clock.now_us(), keys=len(keys), files=len(files), states=_place_of_states(settings))
    with writing(path) as out:
        out.write(b"H", [orjson.dumps(asdict(content))])
        for done, key in enumerate(keys, 1):
            for part in keyspace.read(key):
                out.write(b"K", [part.key, part.kind.encode(), str(part.expires_ms).encode(), *part.values])
            tell(done / (len(keys) + len(files)))
        for done, (name, file) in enumerate(files, len(keys) + 1):
            _write_file(out, name, file)
            tell(done / (len(keys) + len(files)))
        if _progress(keyspace) != before:
            raise BackupRefused(
                "events were appended or matched, or results delivered, while they were copied: stop the pipeline, the "
                "API, all feeds and the deliverer"
            )
        require_stopped(settings, stores, clock, BackupRefused)
    return content


def restore(
    settings: Settings, stores: Stores, path: Path, tell: Telling, *, clock: Clock, replace: bool
) -> BackupContent:
    """Restore a backup. The service does not start until all contents of the backup are restored.

    The file is read to its end before anything is changed. ``tell`` is called with the finished share, up to 1. With
    ``replace``, existing data is deleted. Raises ``BackupRefused`` if the service runs, if the backup is empty, if data
    exists already, if the settings and the backup keep states in different places, or if the file would be deleted.
    Raises ``FileUnreadable`` if an existing file cannot be removed.
    """
    _require_outside(settings, path)
    content = look_into(path)
    require_stopped(settings, stores, clock, BackupRefused)
    if content.states != (place := _place_of_states(settings)):
        raise BackupRefused(
            f"the backup has its saved states in {_WORDS[content.states]}, and these settings keep them in "
            f"{_WORDS[place]}: set FORESTALL_SNAPSHOTS as it was"
        )
    keyspace = Keyspace(stores.client)
    _make_room(settings, stores, clock, replace=replace)
    done, total, last = 0, max(1, content.keys + content.files), b""
    for kind, values in frames(path):
        if kind == b"K":
            key, form, expires_ms, *contents = values
            keyspace.write(KeyPart(key=key, kind=form.decode(), expires_ms=int(expires_ms), values=tuple(contents)))
        elif kind == b"F":
            _restore_block(settings, *values)
        if kind != b"H":
            done, last = done + (values[0] != last), values[0]
            tell(done / total)
    keyspace.skip_numbers()
    keyspace.end_restoring()
    return content


def look_into(path: Path) -> BackupContent:
    """Return the contents of a backup, after reading the whole file.

    Raises ``BackupDamaged`` if the file was changed, ``StoreNewer`` if its data has the format of a newer release, and
    ``BackupRefused`` if nothing was registered in its service.
    """
    head: bytes | None = None
    store_format, is_empty = FIRST_FORMAT, True
    for kind, values in frames(path):
        if kind == b"H":
            head = values[0]
        elif kind == b"K" and values[0].startswith(_OF_DATA):
            is_empty = False
        elif kind == b"K" and values[0] == FORMAT_KEY.encode():
            store_format = int(values[3])
    if head is None:
        raise BackupDamaged(f"{path} is damaged: its list of contents is missing")
    if store_format > NEWEST_FORMAT:
        raise StoreNewer(
            f"the data in {path} has format {store_format}, of a newer release; this one reads {NEWEST_FORMAT} at "
            "most. Restore it with that release",
            found=store_format,
            newest=NEWEST_FORMAT,
        )
    if is_empty:
        raise BackupRefused(f"{path} contains no data of a service; a restore would only delete the present data")
    return BackupContent(**orjson.loads(head))


def _progress(keyspace: Keyspace) -> list[dict[bytes, bytes]]:
    hashes = [[value for part in keyspace.read(key) for value in part.values] for key in _PROGRESS_KEYS]
    return [dict(zip(values[::2], values[1::2], strict=True)) for values in hashes]


def _make_room(settings: Settings, stores: Stores, clock: Clock, *, replace: bool) -> None:
    keyspace = Keyspace(stores.client)
    is_repeated = keyspace.is_restoring()
    folders = [folder for folder in _state_folders(settings) if any(folder.iterdir())]
    keys = keyspace.names()
    if (keys or folders) and not replace and not is_repeated:
        existing = [f"{len(keys):,} keys in Redis"] * bool(keys) + [str(folder) for folder in folders]
        raise BackupRefused(f"data exists already: {', '.join(existing)}; --replace deletes it for good")
    keyspace.begin_restoring()
    try:  # a pipeline reports its start before it reads the mark, so one of the two sees the other
        require_stopped(settings, stores, clock, BackupRefused)
    except BackupRefused:
        if not is_repeated:
            keyspace.end_restoring()
        raise
    keyspace.delete()
    for folder in [*folders, settings.data_dir / "handover"]:
        try:
            remove_folder(folder)
        except OSError as error:  # what remains would be mixed with the files of the backup
            name = str(error.filename or folder)
            raise FileUnreadable(f"{name} cannot be removed: {error.strerror or error}", file=name) from error


def _require_outside(settings: Settings, path: Path) -> None:
    parents = [parent for place in (path.absolute(), path.resolve()) for parent in place.parents if parent.exists()]
    for folder in [*_state_folders(settings), settings.data_dir / "handover"]:
        if folder.is_dir() and any(parent.samefile(folder) for parent in parents):
            raise BackupRefused(f"a restore deletes {folder}, and the backup {path} with it: keep the file elsewhere")


def _state_folders(settings: Settings) -> list[Path]:
    folders = [*settings.data_dir.glob(_CHECKPOINTS), *filter(None, [_snapshot_folder(settings)])]
    return [folder for folder in folders if folder.is_dir()]


def _files(settings: Settings) -> Iterator[tuple[str, Path]]:
    for checkpoint in sorted(settings.data_dir.glob(_CHECKPOINTS)):
        yield from _below(checkpoint.name, checkpoint)
    if (folder := _snapshot_folder(settings)) is not None:
        yield from _below("snapshots", folder)


def _below(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield str(PurePosixPath(name, *file.relative_to(folder).parts)), file


def _place_of_states(settings: Settings) -> str:
    return "redis" if _snapshot_folder(settings) is None else "folder"


def _snapshot_folder(settings: Settings) -> Path | None:
    place = settings.snapshot_place
    return None if place == "redis" else Path(place)


def _write_file(out: BackupWriter, name: str, file: Path) -> None:
    with file.open("rb") as source:
        block = source.read(_BLOCK)
        while True:  # at least once, because an empty file is one frame
            out.write(b"F", [name.encode(), block])
            block = source.read(_BLOCK)
            if not block:
                return


def _restore_block(settings: Settings, name: bytes, block: bytes) -> None:
    target = _place_of(settings, PurePosixPath(name.decode()))
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as out:
        out.write(block)


def _place_of(settings: Settings, name: PurePosixPath) -> Path:
    """Return where a file of a backup is restored. Raise ``BackupDamaged`` if this is outside the service's folders."""
    top, *rest = name.parts
    if not rest or ".." in rest or name.is_absolute() or not (top == "snapshots" or top.startswith("checkpoint")):
        raise BackupDamaged(f"the backup names a file {name}, which none has")
    if top != "snapshots":
        return settings.data_dir.joinpath(top, *rest)
    folder = _snapshot_folder(settings)
    assert folder is not None, "restore has compared where states are kept"
    return folder.joinpath(*rest)

"""Feeds: inputs besides the API. Each row of a feed enters the event log exactly once.

A feed has a name, its own folder in the data folder (``feeds/<name>``), and a mark in Redis: the row that it reads
next. The script that appends rows advances the mark in the same transaction. So a micro-batch that is repeated after a
crash continues after the last row in the log.

The feed's checkpoint numbers the micro-batches, and the mark contains the id of the checkpoint. If mark and checkpoint
do not agree, the feed refuses to continue, because it would lose or duplicate events.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Signal
from typing import Protocol, TypeVar
from uuid import uuid4

import orjson

from pipeline.feeds import FeedRow
from service.errors import DataFolderUnusable, FeedInUse, FeedMisplaced
from service.intake.posting import FeedPart, IntakeReport, Unreadable
from service.processes.data_folder import FEEDS_FOLDER
from service.settings import Limits
from service.stores import FeedMark, FeedStep, FeedStore
from service.stores.records import decode, encode
from streams import ForestallError, decode_json, replacing

T = TypeVar("T")

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
_ADVICE = "to read everything from the beginning, run the feed under another --name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed that this process may run.

    ``folder`` contains the checkpoint of the feed. ``checkpoint`` is the id of the checkpoint.
    """

    name: str
    stream: str
    folder: Path
    checkpoint: str


@dataclass(slots=True)
class FeedProgress:
    """Counts of a feed since its process began.

    Attributes:
        duplicates: Events that were dropped because an earlier event of the stream has the same id.
        repeated: Rows that were skipped because they were already in the log.
        waiting: The error that the feed retries at present. It is empty if the feed does not wait.
    """

    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0
    repeated: int = 0
    waiting: str = ""


@contextmanager
def opened_feed(data_folder: Path, name: str, stream: str, source: str) -> Iterator[Feed]:
    """Open a feed exclusively for this process while the block runs. ``source`` describes its input.

    Raises ``FeedInUse`` if another process runs the feed, or its name belongs to another source or stream.
    """
    folder = (data_folder / FEEDS_FOLDER / name).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise DataFolderUnusable(f"{folder} cannot be written: {error.strerror or error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FeedInUse(
                f"feed {name!r} is run by another process; stop that one, or choose another --name", feed=name
            ) from error
        yield Feed(name=name, stream=stream, folder=folder, checkpoint=_identity(folder, name, stream, source))


def _identity(folder: Path, name: str, stream: str, source: str) -> str:
    path = folder / "feed.json"
    if not path.exists():
        with replacing(path) as file:
            file.write(encode(checkpoint=uuid4().hex, stream=stream, source=source))
    record = decode(path.read_bytes(), f"feed {name!r}")
    if (record["stream"], record["source"]) != (stream, source):
        raise FeedInUse(
            f"feed {name!r} reads {record['source']} into stream {record['stream']!r}, not {source} into {stream!r}; "
            f"choose another --name",
            feed=name,
        )
    return str(record["checkpoint"])


class Taker(Protocol):
    """The method of ``Intake`` that feeds use."""

    def ingest(self, stream: str, objects: Sequence[object], *, part: FeedPart | None) -> IntakeReport: ...


class FeedSink:
    """Appends the rows of micro-batches, in portions within the limits of a request. Retries temporary errors.

    When ``stop`` is set, a pause between two attempts is cut short, because the process has to end.
    """

    def __init__(self, intake: Taker, marks: FeedStore, feed: Feed, limits: Limits, stop: Signal) -> None:
        self._intake = intake
        self._marks = marks
        self._feed = feed
        self._limits = limits
        self._stop = stop
        self.progress = FeedProgress()

    def check(self) -> None:
        """Raise ``FeedMisplaced`` if the feed's mark in the log belongs to another checkpoint."""
        mark = self._patiently(lambda: self._marks.mark(self._feed.name))
        if mark is not None and mark.checkpoint != self._feed.checkpoint:
            raise FeedMisplaced(
                f"the log contains rows of feed {self._feed.name!r} under another checkpoint than that in "
                f"{self._feed.folder}; restore that folder, or, {_ADVICE}",
                feed=self._feed.name,
            )

    def __call__(self, rows: Sequence[FeedRow], batch: int) -> None:
        """Append the rows of a micro-batch that are not in the log yet.

        Raises ``FeedMisplaced`` if the feed's mark in the log is at an earlier micro-batch, or if another process
        advances the mark. Temporary errors are retried until ``stop`` is set. Other errors are raised at once.
        """
        mark = self._feed_mark(batch)
        if mark.batch > batch:
            self.progress.repeated += len(rows)
            return
        new_rows = [row for row in rows if row.place >= mark.row]
        self.progress.repeated += len(rows) - len(new_rows)
        portions = list(_portions(new_rows, self._limits)) or [[]]
        for portion in portions[:-1]:
            after = FeedMark(checkpoint=mark.checkpoint, batch=batch, row=portion[-1].place + 1)
            mark = self._take(portion, mark, after)
        self._take(portions[-1], mark, FeedMark(checkpoint=mark.checkpoint, batch=batch + 1))

    def _feed_mark(self, batch: int) -> FeedMark:
        self.check()
        name = self._feed.name
        mark = self._patiently(lambda: self._marks.mark(name))
        if mark is None and batch == 0:
            mark = FeedMark(checkpoint=self._feed.checkpoint)
            initial_mark = mark
            self._patiently(lambda: self._marks.begin(name, initial_mark, self._feed.stream))
        if mark is None or mark.batch < batch:
            reason = "knows nothing of it" if mark is None else f"has taken its micro-batches before {mark.batch} only"
            raise FeedMisplaced(
                f"the checkpoint of feed {name!r} is at micro-batch {batch}, and the log {reason}: the log was "
                f"emptied, or restored to an earlier state; {_ADVICE}",
                feed=name,
            )
        return mark

    def _take(self, rows: Sequence[FeedRow], before: FeedMark, after: FeedMark) -> FeedMark:
        part = FeedPart(
            step=FeedStep(feed=self._feed.name, before=before, after=after), origins=[row.origin for row in rows]
        )
        objects = [_object(row) for row in rows]
        report = self._patiently(lambda: self._intake.ingest(self._feed.stream, objects, part=part))
        self.progress.accepted += report.accepted
        self.progress.rejected += len(report.rejected)
        self.progress.duplicates += report.duplicates
        return after

    def _patiently(self, call: Callable[[], T]) -> T:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                answer = call()
            except ForestallError as error:
                if not error.is_retryable:
                    raise
                self.progress.waiting = error.message
                requested_s = error.details.get("retry_after_s")
                if self._stop.wait(
                    min(float(requested_s) if isinstance(requested_s, int | float) else pause_s, _LONGEST_PAUSE_S)
                ):
                    raise
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                self.progress.waiting = ""
                return answer


def _portions(rows: Sequence[FeedRow], limits: Limits) -> Iterator[list[FeedRow]]:
    """Yield portions of at least one row, each within a request's limits of events and bytes."""
    portion: list[FeedRow] = []
    size = 0
    for row in rows:
        is_full = len(portion) == limits.max_batch_events or size + len(row.body) > limits.max_body_bytes
        if portion and is_full:
            yield portion
            portion, size = [], 0
        portion.append(row)
        size += len(row.body)
    if portion:
        yield portion


def _object(row: FeedRow) -> object:
    text = row.body.decode(errors="replace")
    if row.fault is not None:
        return Unreadable(detail=row.fault, text=text)
    try:
        return decode_json(row.body)
    except orjson.JSONDecodeError as error:
        detail = f"not JSON: {error.msg} at column {error.colno}; an event is one JSON object"
        return Unreadable(detail=detail, text=text)

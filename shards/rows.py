"""Rows, the results that leave a shard, from alerts to dead letters, with deterministic ids.

The id of a row is a hash of its content, and does not depend on when or how often the row was computed. A replay, a
retry and a restart give the same ids, so a sink that stores rows by id stores each row once.

A shard returns rows as columns, in blocks of one kind; single rows are for readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from shards.entries import Entry
from shards.results import DEAD_LETTER, REKEYED, ResultKind
from streams import EventBatch, ForestallError, column_of, text_digests

ID_LENGTH = 32

_COLUMNS = ("ids", "bodies", "subjects", "counters")
_ROW_EVENTS = 1_000  # bounds the size of a row


class OutputRow(NamedTuple):
    """One result of a shard. It is a named tuple, because many are made at once.

    Attributes:
        stream: Name of the stream; may be empty in a dead letter.
        id: 32 hexadecimal digits, the same however often the row is computed.
        body: JSON object in UTF-8, including ``id`` and ``stream``; for the kind ``REKEYED`` an event batch.
        position: Position, in the shard's log, of the entry that caused the result.
        subject: Name of the result's operator; empty: none.
        counter: Name of the result's counter, as ``ResultKind.counter_of`` returns it.
    """

    kind: str
    stream: str
    id: str
    body: bytes
    position: str
    shard: int
    subject: str = ""
    counter: str = "[]"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultRows:
    """Results of one kind as columns.

    Attributes:
        ids: Strings, as in ``OutputRow``.
        bodies: Bytes, as in ``OutputRow``.
        subjects: Strings, as in ``OutputRow``; may be a dictionary array.
        counters: Strings, as in ``OutputRow``; may be a dictionary array.
        stream: Stream of the rows. If it is empty, this is the stream of the place that made them.
        events: The events, for the kind ``REKEYED``. Until ``with_bodies`` is called, they are one row without a body.
    """

    kind: ResultKind
    ids: pa.Array
    bodies: pa.Array
    subjects: pa.Array
    counters: pa.Array
    stream: str = ""
    events: EventBatch | None = None

    @classmethod
    def of(cls, kind: ResultKind, results: Sequence[tuple[str, Mapping[str, Any]]]) -> ResultRows:
        """Create rows from pairs of id and JSON object. The columns are built when they are read."""
        return _SingleRows(
            kind,
            [
                (identity, orjson.dumps(body), kind.subject_of(body), kind.counter_of(body))
                for identity, body in results
            ],
        )

    def __len__(self) -> int:
        return len(self.ids)

    def singles(self) -> Iterable[tuple[str, bytes, str, str]]:
        """Return id, body, subject and counter of each row."""
        columns = self.ids, self.bodies, self.subjects, self.counters
        return zip(*(column.to_pylist() for column in columns), strict=True)

    @classmethod
    def about(
        cls,
        kind: ResultKind,
        ids: pa.Array,
        bodies: pa.Array,
        about: Sequence[Mapping[str, Any]],
        which: NDArray[np.integer],
    ) -> ResultRows:
        """Create columns whose subjects and counters come from the JSON objects in ``about``.

        ``which`` has the index of each row's object. Several rows may share one object.
        """
        places = column_of(which.astype(np.int32))
        subjects, counters = (
            pa.DictionaryArray.from_arrays(places, pa.array([read(members) for members in about], pa.string()))
            for read in (kind.subject_of, kind.counter_of)
        )
        return cls(kind=kind, ids=ids, bodies=bodies.cast(pa.binary()), subjects=subjects, counters=counters)

    def take(self, rows: NDArray[np.int64]) -> ResultRows:
        return replace(self, **{name: getattr(self, name).take(column_of(rows)) for name in _COLUMNS})

    @classmethod
    def rekeyed(cls, into: str, events: EventBatch) -> ResultRows:
        """Return one row for the log with re-keyed events of the derived stream ``into``.

        Decoded attributes of the events are dropped.
        """
        return cls._rekeyed(into, [b""], EventBatch(events.columns, {}, events.arrivals))

    @classmethod
    def _rekeyed(cls, into: str, bodies: Sequence[bytes], events: EventBatch | None = None) -> ResultRows:
        ids, subjects, counters = (pa.array([text] * len(bodies), pa.string()) for text in ("", into, "[]"))
        body_column = pa.array(bodies, pa.binary())
        return cls(kind=REKEYED, ids=ids, bodies=body_column, subjects=subjects, counters=counters, events=events)

    def with_bodies(self) -> ResultRows:
        """Return the rows with their bodies. Re-keyed events become several rows of limited size, which have no id."""
        if self.events is None:
            return self
        bodies = [part.to_bytes() for part in self.events.slices(_ROW_EVENTS)]
        return ResultRows._rekeyed(self.subjects[0].as_py(), bodies)

    def counts_by(self, member: str) -> Counter[str]:
        """Count the results for each value of a member of ``ResultKind.counted_by``."""
        counts: Counter[str] = Counter()
        for pair in self.counters.value_counts().to_pylist():
            counts[self.kind.counted(pair["values"])[member]] += pair["counts"]
        return counts


class _SingleRows(ResultRows):
    """Single results as columns. A column is built when it is read."""

    _rows: Sequence[tuple[str, bytes, str, str]]

    def __init__(self, kind: ResultKind, rows: Sequence[tuple[str, bytes, str, str]]) -> None:
        for name, value in (("kind", kind), ("stream", ""), ("events", None), ("_rows", rows)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self._rows)

    def __getattr__(self, name: str) -> pa.Array:
        if name not in _COLUMNS:
            raise AttributeError(name)
        place = _COLUMNS.index(name)
        return pa.array([row[place] for row in self._rows], pa.binary() if name == "bodies" else pa.string())

    def singles(self) -> Iterable[tuple[str, bytes, str, str]]:
        return self._rows

    def take(self, rows: NDArray[np.int64]) -> ResultRows:
        return _SingleRows(self.kind, [self._rows[row] for row in rows.tolist()])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBlock:
    """Rows of one kind that the same entry caused.

    Attributes:
        stream, position, shard: As in ``OutputRow``.
    """

    found: ResultRows
    stream: str
    position: str
    shard: int

    def __len__(self) -> int:
        return len(self.found)

    @property
    def kind(self) -> str:
        return self.found.kind.name

    def __iter__(self) -> Iterator[OutputRow]:
        kind = self.found.kind.name
        for identity, body, subject, counter in self.found.with_bodies().singles():
            yield OutputRow(kind, self.stream, identity, body, self.position, self.shard, subject, counter)


def results_of(blocks: Iterable[RowBlock]) -> list[RowBlock]:
    """Return the blocks with results. Blocks of re-keyed events are left out, because they only go to the log."""
    return [block for block in blocks if block.found.events is None]


def rows_of(blocks: Iterable[RowBlock]) -> list[OutputRow]:
    """Return the rows of blocks, in order."""
    return [row for block in blocks for row in block]


def row_ids(texts: pa.Array) -> pa.Array:
    """Hash the ids of many rows, as ``row_id`` does. Each text is a JSON list: the kind, then the other values."""
    return text_digests(texts, ID_LENGTH)


def row_id(kind: ResultKind, *parts: Any) -> str:
    """Hash plain JSON values to an id: the first 32 hexadecimal digits of SHA-256 of their canonical JSON."""
    return sha256(orjson.dumps([kind.name, *parts], option=orjson.OPT_SORT_KEYS)).hexdigest()[:ID_LENGTH]


def dead_letter(shard: int, entry: Entry, error: ForestallError) -> RowBlock:
    """Return the dead letter of an entry that could not be applied. The entry remains in the log."""
    body = dead_letter_body(shard, entry, error)
    rows = ResultRows.of(DEAD_LETTER, [(body["id"], body)])
    return RowBlock(found=rows, stream=entry.stream, position=entry.position, shard=shard)


def dead_letter_body(shard: int, entry: Entry, error: ForestallError, *parts: Any) -> dict[str, Any]:
    """Return the body of an entry's dead letter. Several letters of one entry differ in ``parts`` (JSON)."""
    return {
        "id": row_id(DEAD_LETTER, shard, entry.position, *parts),
        "stream": entry.stream,
        "shard": shard,
        "position": entry.position,
        "kind": entry.kind,
        **({"route": entry.route} if entry.route else {}),
        "size_bytes": len(entry.body),
        "code": error.code,
        "reason": error.message,
    }

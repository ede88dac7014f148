"""All streams of one shard: what the log of the shard means, entry by entry, without Spark.

``ShardState`` is a function of its entries. However they are cut into calls of ``apply``, and wherever the state is
saved and loaded in between, the same rows come out with the same ids. An entry that was applied before is passed over,
and one that cannot be applied becomes a dead letter and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson

from nfa import MatcherStats
from pipeline.blob import pack, unpack
from pipeline.entries import Entry
from pipeline.errors import SavedStateError
from pipeline.rows import OutputRow, dead_letter
from pipeline.stream_state import Finding, StreamState
from streams import (
    ConstraintsOn,
    ControlRecordError,
    ForestallError,
    PatternOff,
    PatternOn,
    RecordKind,
    StreamOn,
    decode_control,
    position_order,
)

_BEGINNING = "0-0"
_KINDS = frozenset(kind.value for kind in RecordKind)


class ShardState:
    """The state of one shard.

    Args:
        shard: Its number.
        position: The last entry that was applied.
        streams: States by stream name.
    """

    def __init__(
        self, shard: int, *, position: str = _BEGINNING, streams: Mapping[str, StreamState] | None = None
    ) -> None:
        self._shard = shard
        self._position = position
        self._streams = dict(streams or {})

    @property
    def shard(self) -> int:
        """Number of the shard."""
        return self._shard

    @property
    def position(self) -> str:
        """The last entry that was applied."""
        return self._position

    @property
    def stats(self) -> Mapping[str, MatcherStats]:
        """Counts by stream name."""
        return {name: stream.stats for name, stream in self._streams.items()}

    def apply(self, entries: Iterable[Entry]) -> list[OutputRow]:
        """What the entries cause, in order; entries at or before ``position`` are passed over.

        Args:
            entries: In the order of the shard's log.
        """
        rows: list[OutputRow] = []
        reached = position_order(self._position)
        for entry in entries:
            order = position_order(entry.position)
            if order <= reached:
                continue
            rows.extend(self._apply_one(entry))
            self._position, reached = entry.position, order
        return rows

    def dump(self) -> bytes:
        """The whole state as bytes, versioned and checksummed."""
        saved = [stream.dump() for stream in self._streams.values()]
        head = {"shard": self._shard, "position": self._position, "streams": [stream_head for stream_head, _ in saved]}
        return pack(head, [matcher for _, matcher in saved])

    @classmethod
    def load(cls, body: bytes) -> ShardState:
        """The state that ``dump`` returned.

        Raises:
            SavedStateError: The bytes are damaged, or some part is of a version that this release does not know.
        """
        head, sections = unpack(body)
        try:
            streams = [
                StreamState.load(saved, matcher) for saved, matcher in zip(head["streams"], sections, strict=True)
            ]
        except ForestallError as error:
            raise SavedStateError(f"saved state of shard {head['shard']} cannot be read: {error}") from error
        named = {stream.declaration.name: stream for stream in streams}
        return cls(head["shard"], position=head["position"], streams=named)

    def _apply_one(self, entry: Entry) -> list[OutputRow]:
        try:
            return [
                OutputRow(
                    kind=kind,
                    stream=entry.stream,
                    id=identity,
                    body=orjson.dumps(body),
                    position=entry.position,
                    shard=self._shard,
                )
                for kind, identity, body in self._findings(entry)
            ]
        except ForestallError as error:
            return [dead_letter(self._shard, entry, error)]

    def _findings(self, entry: Entry) -> Iterator[Finding]:
        if entry.kind not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            raise ControlRecordError(f"record kind {entry.kind!r} is unknown; this release knows {known}")
        kind = RecordKind(entry.kind)
        if kind is RecordKind.EVENTS:
            yield from self._declared(entry).process(self._shard, entry)
        else:
            self._safe_control(kind, entry)

    def _safe_control(self, kind: RecordKind, entry: Entry) -> None:
        """Apply a control record; everything in it is read before any state changes, so a failure changes nothing."""
        try:
            self._control(kind, entry)
        except (ForestallError, MemoryError):
            raise
        # house: allow broad-except: one odd record must not stop its shard for good; it becomes a dead letter
        except Exception as error:
            raise ControlRecordError(
                f"{entry.kind} record of stream {entry.stream!r} cannot be applied: {type(error).__name__}: {error}"
            ) from error

    def _control(self, kind: RecordKind, entry: Entry) -> None:
        match decode_control(kind, entry.body):
            case StreamOn(declaration):
                if declaration.name != entry.stream:
                    raise ControlRecordError(
                        f"stream-on record of stream {entry.stream!r} declares a stream {declaration.name!r}"
                    )
                if entry.stream in self._streams:
                    self._streams[entry.stream].declare(declaration)
                else:
                    self._streams[entry.stream] = StreamState.declared(declaration)
            case PatternOn() | PatternOff() as record:
                self._declared(entry).switch_pattern(record)
            case ConstraintsOn() as record:
                self._declared(entry).follow(record)

    def _declared(self, entry: Entry) -> StreamState:
        try:
            return self._streams[entry.stream]
        except KeyError:
            raise ControlRecordError(
                f"{entry.kind} record: stream {entry.stream!r} is not declared before this place of the log"
            ) from None

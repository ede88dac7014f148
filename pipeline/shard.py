"""All streams of one shard: what the log of the shard means, entry by entry, without Spark.

``ShardState`` is a function of its entries. However they are cut into calls of ``apply``, and wherever the state is
saved and loaded in between, the same rows come out with the same ids; where ``limit_endings`` was called, the same but
for which endings are told and which counted. An entry that was applied before is passed over, and one that cannot be
applied becomes a dead letter and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from nfa import MatcherStats
from pipeline.blob import pack, unpack
from pipeline.decoding import decode_batches
from pipeline.entries import QUARANTINED, Entry, EventsEntry, StoredEntry, quarantine_reason
from pipeline.errors import EntryQuarantined, SavedStateError
from pipeline.findings import Finding, in_columns
from pipeline.rows import OutputRow, RowBlock, dead_letter, rows_of
from pipeline.stream_state import TELLS_NOTHING, StreamState
from streams import (
    BatchFormatError,
    ConstraintsOn,
    ControlRecord,
    ControlRecordError,
    EventBatch,
    ForestallError,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    RecordKind,
    StreamOn,
    Tick,
    TraceEnd,
    decode_control,
    position_order,
)

_BEGINNING = "0-0"
_GROUP_BYTES = 8_000_000  # some 65,536 events; from here on more at once save nothing
_MAIN = ""
_Place: TypeAlias = tuple[str, str]
_KINDS = frozenset(kind.value for kind in RecordKind)


_Decoder: TypeAlias = Callable[[Sequence[Entry]], Sequence[EventBatch | BatchFormatError]]


def _decoded(entries: Sequence[Entry]) -> list[EventBatch | BatchFormatError]:
    return decode_batches([entry.body for entry in entries])


class _Group:
    """Entries of one stream and route, one after the other in the log, that are matched together."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._size_bytes = 0

    def takes(self, entry: Entry) -> bool:
        """Whether one more entry may be matched with those that are there."""
        if not self._entries:
            return True
        last = self._entries[-1]
        return self._size_bytes < _GROUP_BYTES and (last.stream, last.route) == (entry.stream, entry.route)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        self._entries.append(entry)
        self._size_bytes += len(entry.body)

    def taken(self) -> list[Entry]:
        """All entries; the group is empty then."""
        found, self._entries, self._size_bytes = self._entries, [], 0
        return found


class ShardState:
    """The state of one shard.

    Args:
        shard: Its number.
        position: The last entry that was applied.
        streams: States by stream name and route; that of the correlation key, which is there for every declared
            stream, is empty.
    """

    def __init__(
        self, shard: int, *, position: str = _BEGINNING, streams: Mapping[_Place, StreamState] | None = None
    ) -> None:
        self._shard = shard
        self._position = position
        self._streams = dict(streams or {})
        self._endings_told: int | None = None

    def limit_endings(self, most: int | None) -> None:
        """Tell of the endings of events that are matched together only the newest one by one, and count the others.

        Not part of the saved state.

        Args:
            most: So many per stream and correlation key; None: all, as it is from the start.
        """
        self._set_telling(most)

    def _set_telling(self, endings_told: int | None) -> None:
        self._endings_told = endings_told
        for state in self._streams.values():
            state.endings_told = endings_told

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
        """Counts by stream name; those of a further key under ``<stream>@<key>``."""
        return {_label(place): stream.stats for place, stream in self._streams.items()}

    def measures(self) -> dict[str, Any]:
        """Numbers of each stream, for monitoring: plain JSON, named as ``stats``."""
        return {_label(place): stream.measures() for place, stream in self._streams.items()}

    def apply(self, entries: Iterable[Entry]) -> list[OutputRow]:
        """What the entries cause, in order; entries at or before ``position`` are passed over.

        Args:
            entries: In the order of the shard's log.
        """
        return rows_of(self.advance(entries))

    def advance(self, entries: Iterable[Entry]) -> list[RowBlock]:
        """As ``apply``, with the rows as columns."""
        rows: list[RowBlock] = []
        group = _Group()
        reached = position_order(self._position)
        for entry in entries:
            order = position_order(entry.position)
            if order <= reached:
                continue
            if entry.kind != RecordKind.EVENTS:
                rows += self._matched(group.taken())
                rows += self._rows(entry, self._control_findings)
            else:
                if not group.takes(entry):
                    rows += self._matched(group.taken())
                group.add(entry)
            self._position, reached = entry.position, order
        return rows + self._matched(group.taken())

    def take(self, entry: EventsEntry) -> list[RowBlock]:
        """As ``advance`` of one entry, for events of which it is certain that nothing in them harms the matcher."""
        if position_order(entry.position) <= position_order(self._position):
            return []
        self._position = entry.position
        return self._matched([entry], lambda _: [entry.batch])

    def replay(self, entries: Iterable[Entry]) -> None:
        """Apply entries whose rows are known already: the same state comes out, and nothing is put into words.

        Args:
            entries: In the order of the shard's log.
        """
        told = self._endings_told
        self._set_telling(TELLS_NOTHING)
        try:
            self.advance(entries)
        finally:
            self._set_telling(told)

    def finish(self) -> list[RowBlock]:
        """What follows from the end of a finite input: every trace ends, and all time has passed.

        No entries may come afterwards.
        """
        rows: list[RowBlock] = []
        for name, route in self._streams:
            end = StoredEntry(position=self._position, kind="end-of-input", stream=name, body=b"", route=route)
            rows.extend(self._rows(end, lambda entry: self._routed(entry).finish(self._shard, entry)))
        return rows

    def split(self, shards: int, new_shards: int) -> Iterator[ShardState]:
        """The states of the shards that take the place of this one: each has the traces of its keys, as they are.

        The first keeps the number, the position and the counts; the others are at the beginning of their logs.

        Args:
            shards: How many shards there are.
            new_shards: How many there will be, a multiple.
        """
        body = self.dump()
        for shard in range(self._shard, new_shards, shards):
            part, is_first = ShardState.load(body), shard == self._shard
            for stream in part._streams.values():
                stream.keep(shard, new_shards, has_counts=is_first)
            position = self._position if is_first else _BEGINNING
            yield ShardState(shard, position=position, streams=part._streams)

    def dump(self) -> bytes:
        """The whole state as bytes, versioned and checksummed."""
        saved = [stream.dump() for stream in self._streams.values()]
        head = {
            "shard": self._shard,
            "position": self._position,
            "streams": [stream_head for stream_head, _ in saved],
            "sections": [len(sections) for _, sections in saved],
        }
        return pack(head, [section for _, sections in saved for section in sections])

    @classmethod
    def load(cls, body: bytes) -> ShardState:
        """The state that ``dump`` returned.

        Raises:
            SavedStateError: The bytes are damaged, or some part is of a version that this release does not know.
        """
        head, sections = unpack(body)
        try:
            sizes = head.get("sections", [1] * len(sections))
            borders = list(accumulate(sizes, initial=0))
            streams = [
                StreamState.load(saved, sections[first : first + size])
                for saved, first, size in zip(head["streams"], borders, sizes, strict=False)
            ]
        except ForestallError as error:
            raise SavedStateError(f"saved state of shard {head['shard']} cannot be read: {error}") from error
        named = {(stream.declaration.name, stream.route): stream for stream in streams}
        return cls(head["shard"], position=head["position"], streams=named)

    def _matched(self, entries: Sequence[Entry], decode: _Decoder = _decoded) -> list[RowBlock]:
        """Match the events of entries of one stream and route; the rows have the position of the last one.

        Entries that hold no events that can be matched become dead letters.
        """
        if not entries:
            return []
        try:
            state = self._routed(entries[-1])
        except ControlRecordError as error:
            return [dead_letter(self._shard, entry, error) for entry in entries]
        decoded = list(zip(entries, decode(entries), strict=True))
        rows = [dead_letter(self._shard, entry, found) for entry, found in decoded if isinstance(found, ForestallError)]
        good = [(entry, found) for entry, found in decoded if isinstance(found, EventBatch)]
        if good:
            told, batches = [entry for entry, _ in good], [batch for _, batch in good]
            rows += self._rows(told[-1], lambda _: state.process(self._shard, told, batches))
        return rows

    def _rows(self, entry: Entry, findings: Callable[[Entry], Iterable[Finding]]) -> list[RowBlock]:
        try:
            return [
                RowBlock(found=found, stream=entry.stream, position=entry.position, shard=self._shard)
                for found in in_columns(findings(entry))
            ]
        except ForestallError as error:
            return [dead_letter(self._shard, entry, error)]

    def _control_findings(self, entry: Entry) -> Iterable[Finding]:
        if entry.kind == QUARANTINED:
            raise EntryQuarantined(quarantine_reason(entry.body))
        if entry.kind not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            raise ControlRecordError(f"record kind {entry.kind!r} is unknown; this release knows {known}")
        return self._safe_control(RecordKind(entry.kind), entry)

    def _safe_control(self, kind: RecordKind, entry: Entry) -> Iterable[Finding]:
        """Apply a control record; everything in it is read before any state changes, so a failure changes nothing."""
        try:
            record = decode_control(kind, entry.body)
            self._control(record, entry)
        except (ForestallError, MemoryError):
            raise
        # house: allow broad-except: one odd record must not stop its shard for good; it becomes a dead letter
        except Exception as error:
            raise ControlRecordError(
                f"{entry.kind} record of stream {entry.stream!r} cannot be applied: {type(error).__name__}: {error}"
            ) from error
        return self._of_time(record, entry)

    def _of_time(self, record: ControlRecord, entry: Entry) -> Iterator[Finding]:
        """What follows from a record about time or the end of a trace. Time is that of all routes of a stream."""
        main = self._declared(entry)
        match record:
            case Tick(time_us=time_us):
                for state in self._states_of(entry.stream):
                    yield from state.tick(self._shard, entry, time_us)
            case TraceEnd(key=key, time_us=time_us):
                yield from main.end_trace(self._shard, entry, key, time_us)
            case Punctuation(before_us=before_us, key=key):
                if before_us is not None:
                    for state in self._states_of(entry.stream):
                        yield from state.advance_time(self._shard, entry, before_us)
                if key is not None:
                    yield from main.end_trace(self._shard, entry, key, None)

    def _control(self, record: ControlRecord, entry: Entry) -> None:
        match record:
            case StreamOn(declaration):
                if declaration.name != entry.stream:
                    raise ControlRecordError(
                        f"stream-on record of stream {entry.stream!r} declares a stream {declaration.name!r}"
                    )
                if (entry.stream, _MAIN) not in self._streams:
                    self._begin(StreamState.declared(declaration))
                for state in self._states_of(entry.stream):
                    state.declare(declaration)
            case PatternOn() as record:
                self._start_pattern(entry, record)
            case PatternOff(name) | PatternPause(name):
                self._stop_pattern(entry, name)
            case ConstraintsOn() as record:
                self._declared(entry).follow(record)

    def _start_pattern(self, entry: Entry, record: PatternOn) -> None:
        """Start a pattern on its route; where it ran on another one it stops."""
        place = entry.stream, record.route
        declaration = self._declared(entry).declaration
        state = self._streams.get(place) or StreamState.declared(declaration, record.route)
        state.start_pattern(record)
        self._begin(state)
        for other in self._states_of(entry.stream):
            if other is not state and other.runs(record.name):
                other.stop_pattern(record.name)
        self._forget_unused(entry.stream)

    def _begin(self, state: StreamState) -> None:
        state.endings_told = self._endings_told
        self._streams[state.declaration.name, state.route] = state

    def _stop_pattern(self, entry: Entry, name: str) -> None:
        """Stop a pattern on whatever route it runs.

        Raises:
            PatternError: No such pattern runs.
        """
        running = [state for state in self._states_of(entry.stream) if state.runs(name)]
        for state in running or [self._declared(entry)]:
            state.stop_pattern(name)
        self._forget_unused(entry.stream)

    def _forget_unused(self, stream: str) -> None:
        """Give up routes that no pattern is on: no events will come for them."""
        for place, state in list(self._streams.items()):
            if place[0] == stream and place[1] and not state.has_patterns:
                del self._streams[place]

    def _states_of(self, stream: str) -> list[StreamState]:
        return [state for (name, _), state in self._streams.items() if name == stream]

    def _routed(self, entry: Entry) -> StreamState:
        """The state that the events of an entry are for."""
        self._declared(entry)
        try:
            return self._streams[entry.stream, entry.route]
        except KeyError:
            raise ControlRecordError(
                f"{entry.kind} entry for the further key {entry.route!r}: no pattern of the stream {entry.stream!r} is "
                "matched by it at this place of the log"
            ) from None

    def _declared(self, entry: Entry) -> StreamState:
        try:
            return self._streams[entry.stream, _MAIN]
        except KeyError:
            raise ControlRecordError(
                f"{entry.kind} record: stream {entry.stream!r} is not declared before this place of the log"
            ) from None


def _label(place: _Place) -> str:
    stream, route = place
    return f"{stream}@{route}" if route else stream

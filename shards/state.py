"""The state of one shard, computed from its log entry by entry, without Spark.

``ShardState`` is a function of its entries. The rows and their ids do not depend on how entries are split into calls of
``apply``, or on when the state is saved and loaded. There is one exception: with ``limit_endings``, the split may
decide which early terminations are counted instead of emitted. Entries at or before the position are ignored. An entry
that cannot be applied becomes a dead letter and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shards.blob import pack, seal, sections_below, unpack
from shards.decoding import batches_of
from shards.derivation import MAIN as _MAIN
from shards.derivation import Derivation
from shards.derivation import PlaceKey as _PlaceKey
from shards.derived_place import DerivedPlace, EndTime, declared_place, loaded_place
from shards.entries import QUARANTINED, Entry, EventGroup, EventsEntry, StoredEntry, TickEntry, quarantine_reason
from shards.errors import EntryQuarantined, SavedStateError
from shards.feeds import Feeds
from shards.format_1 import from_format_1
from shards.kinds import KINDS_BY_NAME
from shards.lookups import tables_after
from shards.metering import UNMETERED, Cost, Metering
from shards.operators import Host, Kind, Observation, Origin, Renderer, Result, in_columns, no_results, own_results
from shards.place import Answer, Place, Step
from shards.policy import Decoded, Decoder, OldestFirst, Policy, in_turns, ticks_last
from shards.rows import OutputRow, ResultRows, RowBlock, dead_letter, results_of, rows_of
from shards.stops import STOPPED, Stops, operator_of
from streams import (
    CLOSED_US,
    Ask,
    ConstraintsOn,
    ControlRecord,
    ControlRecordError,
    Definition,
    EventBatch,
    ForestallError,
    KeysClosed,
    LatenessChange,
    OperatorOff,
    OperatorOn,
    PatternOff,
    PatternOn,
    PatternPause,
    Punctuation,
    RecordKind,
    Start,
    StateLost,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    TableOff,
    TableOn,
    TableRow,
    Tick,
    TraceEnd,
    decode_control,
    position_order,
    shard_of,
)
from streams.tables import TableFiles, Tables

_BEGINNING = "0-0"
NO_FEEDS = Feeds({})
_KINDS = frozenset(kind.value for kind in RecordKind)


class ShardState:
    """The state of one shard, a function of the entries of its log.

    ``position`` is that of the last applied entry. ``places`` are by stream and route. Every declared stream has a
    place with the empty route, for its correlation key. ``stops`` are operators that stop before the log reaches their
    pause.
    """

    def __init__(
        self,
        shard: int,
        *,
        position: str = _BEGINNING,
        places: Mapping[_PlaceKey, Place] | None = None,
        kinds: Mapping[str, Kind] = KINDS_BY_NAME,
        feeds: Feeds = NO_FEEDS,
        stops: Stops | None = None,
    ) -> None:
        self._stops = stops or Stops()
        self._kinds = kinds
        self.shard = shard
        self.position = position
        self._places = dict(places or {})
        self._routes: dict[str, dict[str, None]] = {}  # by stream, so that a record need not search all places
        for stream, route in self._places:
            self._routes.setdefault(stream, {})[route] = None
        self._derivation = Derivation(self._places, feeds)
        self._newest: int | None = None
        self._policy: Policy = OldestFirst()
        self._metering = UNMETERED
        self._render: Renderer = own_results
        self.tables = Tables()

    def render(self, renderer: Renderer) -> None:
        """Set the function that turns the outputs of hosts into results. The function is not saved with the state."""
        self._render = renderer

    def limit_endings(self, most: int | None) -> None:
        """Report only the newest ``most`` early terminations one by one, and count the others.

        The limit holds for each place and per-key matcher, among events that are matched together. None reports all.
        """
        self._newest = most

    def schedule(self, policy: Policy) -> None:
        """Set the policy that chooses the next place. The policy changes no result and is not saved."""
        self._policy = policy

    def use_tables(self, tables: Tables) -> None:
        """Let lookups in reference tables read ``tables`` from now on."""
        self.tables = tables
        for place in self._places.values():
            place.use_tables(tables)

    def meter(self, metering: Metering) -> None:
        """Measure the calls of hosts with ``metering`` from now on. The metering is not saved with the state."""
        self._metering = metering
        for place in self._places.values():
            place.metering = metering

    @property
    def costs(self) -> dict[str, dict[str, tuple[Cost, Collection[str]]]]:
        """The cost and the operator names of each host, grouped by stream (as in ``measures``) and then by kind."""
        return {_label(key): costs for key, place in self._places.items() if (costs := place.costs)}

    @property
    def feeds(self) -> Feeds:
        """The feeds of the shard: which operators feed which derived streams."""
        return self._derivation.feeds

    @property
    def stops(self) -> frozenset[str]:
        """The positions of pauses that the log has not reached yet, although their operators are already stopped."""
        return self._stops.names

    def host(self, kind: str, stream: str, route: str = "") -> Host:
        """Return the host of a kind at a place. The caller must not change it."""
        return self._places[stream, route].host(kind)

    def measures(self) -> dict[str, dict[str, int | None]]:
        """Return metrics by stream name. Metrics of a further key are under ``<stream>@<key>``."""
        return {_label(key): place.measures() for key, place in self._places.items()}

    def observations(self, stream: str | None = None) -> list[Observation]:
        """Return the observations since the last call, for deciders. They are not saved.

        If ``stream`` is given, the observations of other posted streams are left for a later call.
        """
        every = self._places.values()
        places = [
            candidate
            for candidate in every
            if stream in (None, candidate.declaration.name) or candidate.declaration.derived
        ]
        observed = (observation for place in places for observation in place.observed())
        return [replace(observation, summary={**observation.summary, "shard": self.shard}) for observation in observed]

    def promises(self) -> dict[str, int | None]:
        """Return the promise of this shard to each derived stream with re-keyed events, which arrive through the log.

        A promise is the time in microseconds before which this shard adds no more events, or None if it is unknown.
        """
        return self._derivation.promises()

    @property
    def routed(self) -> frozenset[str]:
        """The names of the streams of which operators use further keys."""
        return frozenset(stream for stream, route in self._places if route)

    @property
    def streams(self) -> tuple[str, ...]:
        """The declared streams. A derived stream follows the streams that feed it."""
        names = dict.fromkeys(stream for stream, _ in self._places)
        derived = self.feeds.order
        return (*(name for name in names if name not in derived), *derived)

    def apply(self, entries: Iterable[Entry]) -> list[OutputRow]:
        """Apply entries of the log and return their rows in order. Entries at or before ``position`` are ignored."""
        return rows_of(results_of(self.advance(entries)))

    def advance(self, entries: Iterable[Entry]) -> list[RowBlock]:
        """Apply entries as ``apply`` does, but return columns, including re-keyed events for the log (``REKEYED``)."""
        rows: list[RowBlock] = []
        group = EventGroup()
        reached = position_order(self.position)
        for entry in entries:
            order = position_order(entry.position)
            if order <= reached:
                continue
            if entry.kind == STOPPED:
                rows += self._matched(group.take_all())
                self._stop_all(entry)
                continue
            member = entry if entry.kind == RecordKind.EVENTS else self._derived_tick(entry)
            if member is None:
                rows += self._matched(group.take_all())
                rows += self._rows(entry, self._controlled)
            else:
                if group.is_full:
                    rows += self._matched(group.take_all())
                group.add(member)
            self.position, reached = entry.position, order
            if self._stops:
                rows += self._matched(group.take_all())
                self._stops.pass_to(entry.position)
        return rows + self._matched(group.take_all())

    def _derived_tick(self, entry: Entry) -> TickEntry | None:
        """Decode a tick of a derived stream.

        Return None for other entries, for ticks that become dead letters, and for ticks that close a stream's log.
        """
        place = self._places.get((entry.stream, _MAIN)) if entry.kind == RecordKind.TICK else None
        if not isinstance(place, DerivedPlace):
            return None
        with suppress(ControlRecordError):
            tick = decode_control(RecordKind.TICK, entry.body)
            if isinstance(tick, Tick) and tick.time_us < CLOSED_US:
                return TickEntry(position=entry.position, stream=entry.stream, tick=tick, body=entry.body)
        return None

    def answer(self, stream: str, record: Ask) -> dict[str, Any]:
        """Return a host's answer to a question. It is exact at ``position``, between two entries. No state changes."""
        entry = StoredEntry(position=self.position, kind=record.KIND, stream=stream, body=b"")
        return self._answered(entry, record).body(self.shard, self.position, stream)

    def _answered(self, entry: Entry, record: Ask) -> Answer:
        return (self._places.get((entry.stream, record.route)) or self._declared(entry)).answer(record)

    def take(self, entry: EventsEntry) -> list[RowBlock]:
        """Apply one entry as ``advance`` does, but without checks. The caller guarantees that the events are valid."""
        if position_order(entry.position) <= position_order(self.position):
            return []
        self.position = entry.position
        return self._matched([entry], lambda _: [entry.batch])

    @property
    def files(self) -> frozenset[str]:
        """Names of the files that store parts of the state. The result of ``dump`` names them, too."""
        return frozenset(name for place in self._places.values() for host in place.spilling for name in host.files)

    def verify(self) -> None:
        """Verify the checksums of the state's files."""
        for place in self._places.values():
            for host in place.spilling:
                host.verify()

    def replay(self, entries: Iterable[Entry]) -> None:
        """Apply entries whose rows are already known. The state changes, but no rows are made."""
        renderer, self._render = self._render, no_results
        try:
            self.advance(entries)
            self.observations()
        finally:
            self._render = renderer

    def finish(
        self, streams: Collection[str] | None = None, ends_us: Mapping[str, int] | None = None
    ) -> list[RowBlock]:
        """Finish a finite input, so that every trace ends and every deadline expires, and return the rows.

        No entries of ``streams`` may follow (None: all streams). Each stream follows the streams that feed it.
        ``ends_us`` has the newest event times of derived streams in all shards, as far as they are known.
        """
        rows: list[RowBlock] = []
        for name in self.streams if streams is None else streams:
            for place in self._places_of(name):
                end = StoredEntry(position=self.position, kind="end-of-input", stream=name, body=b"", route=place.route)
                rows.extend(self._rows(end, partial(self._finished, place, (ends_us or {}).get(name))))
        return rows

    def _finished(self, place: Place, end_us: int | None, end: Entry) -> Iterator[Step]:
        yield from self._derivation.with_derived_steps(end.stream, place.drain(end))
        self._derivation.hold(end.stream)
        yield from self._derivation.with_derived_steps(end.stream, place.finish(end, end_us))

    def newest_us(self, stream: str) -> int | None:
        """Return the time of a derived stream's newest event or its watermark, whichever is later, or None."""
        return self._derivation.newest_us(stream)

    @property
    def ends(self) -> dict[str, EndTime]:
        """The times of derived streams at the end of a finite input. Streams that do not depend on time are missing."""
        return self._derivation.ends

    def split(self, shards: int, new_shards: int) -> Iterator[ShardState]:
        """Divide the state, and yield the states of the new shards. Each has the traces of its keys, unchanged.

        ``new_shards`` is a multiple of ``shards``, the current number. The first shard keeps number, position and
        counters. The others start at the beginning of their logs.
        """
        body = self.dump()
        for shard in range(self.shard, new_shards, shards):
            part, is_first = ShardState.load(body, self._kinds, self.tables.files), shard == self.shard

            def is_kept(hashes: NDArray[np.uint64], home: int = shard) -> NDArray[np.bool_]:
                is_stranger = shard_of(hashes, shards) != self.shard  # a key made for an event without a usable key
                at_home: NDArray[np.bool_] = shard_of(hashes, new_shards) == home
                return np.where(is_stranger, home == self.shard, at_home)

            for place in part._places.values():
                place.keep(is_kept, has_counts=is_first)
            position, stops = (self.position, part._stops) if is_first else (_BEGINNING, None)
            new_state = ShardState(
                shard, position=position, places=part._places, kinds=self._kinds, feeds=part.feeds, stops=stops
            )
            new_state.use_tables(self.tables)
            yield new_state

    def dump(self) -> bytes:
        """Return the whole state as bytes, versioned and checksummed."""
        return b"".join(seal(self.dumped()))

    def dumped(self) -> list[bytes]:
        """Return the parts that ``seal`` turns into saved state. Later changes of the state do not affect them."""
        saved = [place.dump() for place in self._places.values()]
        head = {"shard": self.shard, "position": self.position, "places": [place_head for place_head, _ in saved]}
        head |= {"stops": self._stops.to_json()} if self._stops else {}
        head |= {"feeds": self.feeds.to_json()} if self.feeds.of else {}
        head |= {"tables": self.tables.to_json()} if self.tables.versions else {}
        sections = {
            f"{number}/{name}": body
            for number, (_, place_sections) in enumerate(saved)
            for name, body in place_sections.items()
        }
        return pack(head, sections)

    @classmethod
    def load(
        cls, body: bytes, kinds: Mapping[str, Kind] = KINDS_BY_NAME, files: TableFiles | None = None
    ) -> ShardState:
        """Load the state that ``dump`` returned in this or the previous release. ``files`` is the store of its files.

        Raises ``SavedStateError`` if the bytes are damaged or a part has a version that this release does not know.
        """
        version, head, sections = unpack(body)
        if version == 1:
            head, sections = from_format_1(head, sections)
        try:
            places = [
                loaded_place(saved, sections_below(sections, str(number)), kinds)
                for number, saved in enumerate(head["places"])
            ]
        except StateLost:
            raise
        except ForestallError as error:
            raise SavedStateError(f"saved state of shard {head['shard']} cannot be read: {error}") from error
        places_by_key = {(place.declaration.name, place.route): place for place in places}
        feeds = Feeds.from_json(head.get("feeds", []))
        stops, position = Stops(head.get("stops", ())), head["position"]
        state = cls(head["shard"], position=position, places=places_by_key, kinds=kinds, feeds=feeds, stops=stops)
        state.use_tables(Tables.from_json(head.get("tables", ()), files or TableFiles()))
        return state

    def _matched(self, entries: Sequence[Entry], decode: Decoder = batches_of) -> list[RowBlock]:
        rows: list[RowBlock] = []
        for decoded, ticks in ticks_last(entries, decode, self._derivation):
            for block in in_turns(decoded, self._derivation, self._policy):
                rows += self._matched_run(block)
            for tick in ticks:
                rows += self._rows(tick, partial(self._ticked, tick.tick))
        return rows

    def _ticked(self, tick: Tick, entry: Entry) -> Iterator[Step]:
        return self._derivation.follow(entry, self._applied(tick, entry))

    def _matched_run(self, decoded: Sequence[Decoded]) -> list[RowBlock]:
        try:
            place = self._routed(decoded[-1][0])
        except ControlRecordError as error:
            if self._stops.reads(decoded[-1][0].stream):  # only a stopped operator used the key
                return []
            return [dead_letter(self.shard, entry, error) for entry, _ in decoded]
        rows = [
            dead_letter(self.shard, entry, batch_or_error)
            for entry, batch_or_error in decoded
            if isinstance(batch_or_error, ForestallError)
        ]
        matchable = [
            (entry, batch_or_error) for entry, batch_or_error in decoded if isinstance(batch_or_error, EventBatch)
        ]
        if matchable:
            valid, batches = [entry for entry, _ in matchable], [batch for _, batch in matchable]
            is_timed = self._derivation.is_timed(valid[-1].stream)
            steps = place.process(valid, batches, is_timed=is_timed)
            rows += self._rows(valid[-1], lambda entry: self._derivation.follow(entry, steps))
        return rows

    def _rows(self, entry: Entry, steps: Callable[[Entry], Iterable[Step]]) -> list[RowBlock]:
        try:
            return [
                RowBlock(found=rows, stream=stream, position=entry.position, shard=self.shard)
                for stream, results in groupby(self._results(steps(entry)), itemgetter(0))
                for rows in in_columns(result for _, result in results)
            ]
        except StateLost:
            raise  # the state is only partly changed, and has to be rebuilt
        except ForestallError as error:
            return [dead_letter(self.shard, entry, error)]

    def _results(self, steps: Iterable[Step]) -> Iterator[tuple[str, Result]]:
        for entry, output in steps:
            for result in self._render(output, Origin(shard=self.shard, entry=entry, newest=self._newest)):
                yield (result.stream if isinstance(result, ResultRows) else "") or entry.stream, result

    def _controlled(self, entry: Entry) -> Iterable[Step]:
        if entry.kind == QUARANTINED:
            raise EntryQuarantined(quarantine_reason(entry.body))
        if entry.kind not in _KINDS:
            kind_names = ", ".join(sorted(_KINDS))
            raise ControlRecordError(f"record kind {entry.kind!r} is unknown; this release knows {kind_names}")
        return self._safe_control(RecordKind(entry.kind), entry)

    def _safe_control(self, kind: RecordKind, entry: Entry) -> Iterable[Step]:
        """Apply a control record. If it fails, no state has changed, because the record is read completely first."""
        try:
            record = decode_control(kind, entry.body)
            if self._stops.ignores(entry.stream, record):
                self._derivation = self._derivation.after_ignored(record, self._declared(entry), self._kinds)
                return ()
            self._control(record, entry)
        except (ForestallError, MemoryError):
            raise
        # house: allow broad-except: one odd record must not stop its shard for good; it becomes a dead letter
        except Exception as error:
            raise ControlRecordError(
                f"{entry.kind} record of stream {entry.stream!r} cannot be applied: {type(error).__name__}: {error}"
            ) from error
        if isinstance(record, StreamOff | TableOn | TableOff | TableRow):
            return ()
        steps = self._started(entry) if isinstance(record, OperatorOn) else self._applied(record, entry)
        return self._derivation.follow(entry, steps)

    def _started(self, entry: Entry) -> Iterator[Step]:
        for place in self._places_of(entry.stream):
            yield from place.started(entry)

    def _applied(self, record: ControlRecord, entry: Entry) -> Iterator[Step]:
        """Apply a control record that is no start or stop of an operator, and yield its steps.

        Declarations and times apply at all places of the stream, because its routes share the same time. The end of a
        trace applies to the correlation key only.
        """
        main, places = self._declared(entry), self._places_of(entry.stream)
        match record:
            case StreamOn(declaration):
                yield from chain.from_iterable(place.declare(entry, declaration) for place in places)
            case Tick(time_us=time_us) if time_us >= CLOSED_US:
                yield from self._derivation.released(entry)
            case Tick(time_us=time_us):
                yield from chain.from_iterable(place.tick(entry, time_us) for place in places)
            case LatenessChange() as change:
                yield from chain.from_iterable(place.change_lateness(entry, change) for place in places)
            case TraceEnd(key=key, time_us=time_us):
                yield from main.end_trace(entry, key, time_us)
            case Punctuation() as promise:
                yield from self._promised(promise, main, entry)
            case KeysClosed() as closed:
                yield from main.close_keys(entry, closed)
            case Ask() as question_record:
                yield entry, self._answered(entry, question_record)

    def _promised(self, promise: Punctuation, main: Place, entry: Entry) -> Iterator[Step]:
        places = self._places_of(entry.stream)
        if promise.before_us is not None:
            for place in places:
                yield from place.advance_time(entry, promise.before_us)
        for key in promise.ended:
            yield from main.end_trace(entry, key, None)
        for place in places if promise.range is not None else ():
            yield from place.finish_keys(entry, promise)

    def _control(self, record: ControlRecord, entry: Entry) -> None:
        match record:
            case StreamOn(declaration):
                self._declare(declaration, entry)
            case StreamOff():
                self._declared(entry)
                self._forget(entry.stream)
            case PatternOn() | OperatorOn():
                self._start(record.definition(entry.stream), record.start, entry)
            case PatternOff() | PatternPause() | OperatorOff():  # also OperatorPause
                self._stop(*operator_of(record), entry)
            case ConstraintsOn() as record:
                self._declared(entry).follow(record)
            case Tick(time_us=time_us) if time_us >= CLOSED_US:
                self._derivation = self._derivation.close_log(self._declared(entry), time_us)
            case TableOn() | TableOff() | TableRow():
                self.use_tables(tables_after(self.tables, record))

    def _declare(self, declaration: StreamDeclaration, entry: Entry) -> None:
        if declaration.name != entry.stream:
            raise ControlRecordError(
                f"stream-on record of stream {entry.stream!r} declares a stream {declaration.name!r}"
            )
        if (main := (entry.stream, _MAIN)) not in self._places:
            self._enter(main, declared_place(declaration, _MAIN, self._kinds))
        for place in self._places_of(entry.stream):
            place.check(declaration)

    def _forget(self, stream: str) -> None:
        for place in self._places_of(stream):
            del self._places[stream, place.route], self._routes[stream][place.route]
        self._derivation = Derivation(self._places, self.feeds.without_stream(stream))

    def _start(self, definition: Definition, start: Start, entry: Entry) -> None:
        """Start an operator at the place of its input. Stop its earlier version if this reads events by another key."""
        if len(definition.inputs) != 1 or definition.inputs[0].stream != entry.stream:
            streams = ", ".join(repr(source.stream) for source in definition.inputs)
            raise ControlRecordError(
                f"{entry.kind} record of stream {entry.stream!r}: the {definition.kind} {definition.name!r} listens to "
                f"{streams}; this release runs operators with one input, which is the stream of the record"
            )
        (source,) = definition.inputs
        declaration = self._declared(entry).declaration
        key = source.stream, source.key
        if (place := self._places.get(key)) is None:
            place = declared_place(declaration, source.key, self._kinds)
            place.begin_like(self._declared(entry))
        feeds = self._derivation.fed_by(definition, start, self._kinds)
        place.start(definition, start)
        self._enter(key, place)
        for other_place in self._places_of(source.stream):
            if other_place is not place and other_place.runs(definition.kind, definition.name):
                other_place.host(definition.kind).stop(definition.name)
        self._derivation = self._derivation.started(definition, feeds, self._kinds)
        self._forget_unused(source.stream)

    def _stop(self, kind: str, name: str, entry: Entry) -> None:
        self._stop_host(kind, name, entry)
        self._derivation = Derivation(self._places, self.feeds.without_operator(entry.stream, kind, name))

    def _stop_host(self, kind: str, name: str, entry: Entry) -> None:
        running = [place for place in self._places_of(entry.stream) if place.runs(kind, name)]
        for place in running or [self._declared(entry)]:
            place.host(kind).stop(name)
        self._forget_unused(entry.stream)

    def _stop_all(self, note: Entry) -> None:
        for stream, (kind, name) in self._stops.begin(note, self.position):
            if any(place.runs(kind, name) for place in self._places_of(stream)):
                entry = StoredEntry(position=note.position, kind=note.kind, stream=stream, body=note.body)
                self._stop_host(kind, name, entry)

    def _forget_unused(self, stream: str) -> None:
        """Drop the places of further keys without operators, because they receive no more events."""
        for place in self._places_of(stream):
            if place.route and not place.is_used:
                del self._places[stream, place.route], self._routes[stream][place.route]

    def _places_of(self, stream: str) -> list[Place]:
        return [self._places[stream, route] for route in self._routes.get(stream, ())]

    def _enter(self, key: _PlaceKey, place: Place) -> None:
        self._places[key] = place
        place.metering = self._metering
        place.use_tables(self.tables)
        self._routes.setdefault(key[0], {})[key[1]] = None

    def _routed(self, entry: Entry) -> Place:
        self._declared(entry)
        try:
            return self._places[entry.stream, entry.route]
        except KeyError:
            raise ControlRecordError(
                f"{entry.kind} entry for the further key {entry.route!r}: no pattern of the stream {entry.stream!r} is "
                "matched by it at this place of the log"
            ) from None

    def _declared(self, entry: Entry) -> Place:
        try:
            return self._places[entry.stream, _MAIN]
        except KeyError:
            raise ControlRecordError(
                f"{entry.kind} record: stream {entry.stream!r} is not declared before this place of the log"
            ) from None


def _label(key: _PlaceKey) -> str:
    stream, route = key
    return f"{stream}@{route}" if route else stream

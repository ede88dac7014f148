"""Matches of patterns with INTO as events of derived streams, by columns; their corrections as retractions.

Events leave in the order in which their matches were decided, event by event; this does not depend on how the log is
cut.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa import DECIDED_BY, FEW_ROWS, Correction, Into, LaneOutput, Match, RunningPattern
from shards.kinds.patterns.alert_columns import match_ids
from shards.kinds.patterns.errors import NotDerivable
from shards.kinds.patterns.result_kinds import ALERT, CORRECTION, alert_id
from shards.kinds.patterns.sources import RESOLUTION, alerts_stream
from shards.kinds.patterns.suppression import Suppression
from shards.operators import Origin, Result, Single, in_columns
from shards.results import DEAD_LETTER, DERIVED
from shards.rows import FoundRows, dead_letter_body, row_id
from streams import (
    EARLIEST_US,
    LATEST_US,
    RETRACTED,
    EventBatch,
    chosen_texts,
    column_of,
    format_time,
    joined_texts,
    json_contents,
    json_text,
    key_of,
    pieces_of,
    texts_of,
    time_texts,
)

_WINDOW = next(number for number, word in DECIDED_BY.items() if word == "window")
_NO_PLACE = -1
_LAST = "~"  # sorts after hexadecimal digits, in the order of ids


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Derived events from matches or corrections of one per-key matcher.

    Attributes:
        intos: For each pattern, the stream of its events, their type, and whether they have keys of their own.
        keys: Keys of the events whose patterns have KEY; None: the value is not a key, or the event has the key of its
            trace.
        places: int64 (found, 2): the index of the event in the batch that decided it, and 1; for a decision by time the
            index of the next event, and 0.
    """

    patterns: Sequence[RunningPattern]
    intos: Sequence[Into]
    pattern: NDArray[np.intp]
    ids: pa.Array
    times_us: NDArray[np.int64]
    sources: pa.Array
    keys: Sequence[str | None]
    data: Sequence[bytes]
    places: NDArray[np.int64]
    is_retraction: bool


class DerivedEvents:
    """The events that patterns of one place derive from a batch, or as time passes.

    ``newest_us``: how far time had come before; None before the first event.
    """

    def __init__(self, lanes: Sequence[LaneOutput], batch: EventBatch, stream: str, newest_us: int | None) -> None:
        self._stream, self._passed_us = stream, passed_us(batch, newest_us)
        found = [one for lane in lanes for one in (*self._matches(lane), *self._corrections(lane))]
        self._all = _Events.of(found, batch.arrivals, self._passed_us) if found else None

    def batches(self) -> Iterator[tuple[str, EventBatch]]:
        """The events with the keys of their traces, by derived stream."""
        return iter(()) if self._all is None else self._all.batches(is_rekeyed=False)

    def rows(self) -> Iterator[FoundRows]:
        """A result row for each event; then the events with keys of their own, for the log."""
        if self._all is not None:
            yield from self._all.rows(self._stream)
            yield from itertools.starmap(FoundRows.rekeyed, self._all.batches(is_rekeyed=True))

    def dead_letters(self, origin: Origin) -> Iterator[Single]:
        """Dead letters of matches that cannot become events."""
        if self._all is not None:
            yield from self._all.dead_letters(self._stream, origin)

    def _matches(self, lane: LaneOutput) -> Iterator[_Found]:
        if not len(lane.matches):
            return
        table = lane.matches
        used, pattern = np.unique(table.patterns, return_inverse=True)
        patterns = [lane.patterns[number] for number in used.tolist()]
        values: list[Mapping[str, Any]]
        if lane.has_few_matches:
            matches = list(lane.values_of_matches())
            ids = texts_of([self._id_of(one) for one in matches])
            sources, values = texts_of([one.key for one in matches]), [one.returns for one in matches]
        else:
            columns = lane.columns_of_matches()
            ids, sources = match_ids(columns, self._stream), columns.key
            values = list(lane.values_of_returns()) or [{}] * len(table)
        yield _Found(
            patterns=patterns,
            intos=list(map(_into, patterns)),
            pattern=pattern,
            ids=ids,
            times_us=table.detected_us,
            sources=sources,
            keys=_keys(patterns, pattern, values),
            data=[orjson.dumps(one) for one in values],
            places=self._places(lane, table.rows, table.detected_us, table.how == _WINDOW),
            is_retraction=False,
        )

    def _corrections(self, lane: LaneOutput) -> Iterator[_Found]:
        """Corrections of matches that became events; a match that could not become one has nothing to retract."""
        patterns = list(lane.patterns)
        is_derived = np.array([one.query.pattern.into is not None for one in patterns], np.bool_)
        keep = is_derived[lane.corrections.patterns]
        if not keep.any():
            return
        table = lane.corrections.chosen(keep)
        found = [one for one, wanted in zip(lane.values_of_corrections(), keep.tolist(), strict=True) if wanted]
        used, pattern = np.unique(table.patterns, return_inverse=True)
        patterns = [patterns[number] for number in used.tolist()]
        retracted = [self._id_of(one) for one in found]
        times_us = np.array([one.time_us for one in found], np.int64)
        yield _Found(
            patterns=patterns,
            intos=list(map(_into, patterns)),
            pattern=pattern,
            ids=texts_of(
                [row_id(CORRECTION, match, one.event_id) for match, one in zip(retracted, found, strict=True)]
            ),
            times_us=times_us,
            sources=texts_of([one.key for one in found]),
            keys=_keys(patterns, pattern, list(lane.values_of_returns(table))),
            data=[orjson.dumps({"retracts": one}) for one in retracted],
            places=self._places(lane, table.rows, times_us, np.zeros(len(found), np.bool_)),
            is_retraction=True,
        )

    def _id_of(self, one: Match | Correction) -> str:
        return alert_id(self._stream, one.pattern, one.version, one.key, one.bindings, one.row)

    def _places(
        self, lane: LaneOutput, rows: NDArray[np.int64], times_us: NDArray[np.int64], is_due: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Where results were decided: at an event, or as time passed, which is before the first event of that time."""
        places = lane.places_of(rows)
        by_time = is_due | (places == _NO_PLACE)
        return np.column_stack([np.where(by_time, np.searchsorted(self._passed_us, times_us), places), ~by_time])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    """All events in their order, and those that are not valid; the members are as in ``_Found``.

    Attributes:
        arrivals: For each event, the number of the event that decided it, 0 if time did; None: unknown.
    """

    patterns: Sequence[RunningPattern]
    intos: Sequence[Into]
    pattern: NDArray[np.intp]
    ids: pa.Array
    times_us: NDArray[np.int64]
    sources: pa.Array
    keys: pa.Array
    data: pa.Array
    is_retraction: NDArray[np.bool_]
    is_good: NDArray[np.bool_]
    arrivals: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, found: Sequence[_Found], arrivals: NDArray[np.int64] | None, passed_us: NDArray[np.int64]) -> _Events:
        """Join the events of all per-key matchers.

        ``passed_us``: how far time has come at each event of the batch.
        """
        firsts = np.cumsum([0, *(len(one.patterns) for one in found)])
        patterns = [pattern for one in found for pattern in one.patterns]
        intos = [into for one in found for into in one.intos]
        pattern = np.concatenate([one.pattern + first for one, first in zip(found, firsts, strict=False)])
        ids, sources = (_joined([getattr(one, name) for one in found]) for name in ("ids", "sources"))
        times_us = np.concatenate([one.times_us for one in found])
        has_key = np.array([into.key is not None for into in intos])[pattern]
        keys = [key for one in found for key in one.keys]
        is_good = np.array([key is not None for key in keys], np.bool_) | ~has_key
        is_good &= (times_us >= EARLIEST_US) & (times_us <= LATEST_US)
        own = texts_of([key or "" for key in keys]) if has_key.any() else sources
        if has_key.any() and not has_key.all():
            own = pa.compute.if_else(column_of(has_key), own, sources)
        places = np.concatenate([one.places for one in found])
        if arrivals is not None:
            by_event = (places[:, 1] == 1) & (np.append(passed_us, 0)[places[:, 0]] == times_us)
            arrivals = np.where(by_event, np.append(arrivals, 0)[places[:, 0]], 0)
        events = cls(
            patterns=patterns,
            intos=intos,
            pattern=pattern,
            ids=ids,
            times_us=times_us,
            sources=sources,
            keys=own,
            data=pieces_of([piece for one in found for piece in one.data], pa.binary()),
            is_retraction=np.repeat([one.is_retraction for one in found], [len(one.pattern) for one in found]),
            is_good=is_good,
            arrivals=arrivals,
        )
        return events._taken(_order(places, times_us, patterns, pattern, ids))

    def chosen(self, keep: NDArray[np.bool_]) -> _Events:
        """The events that a mask keeps."""
        return self if keep.all() else self._taken(np.flatnonzero(keep))

    def _taken(self, rows: NDArray[np.intp]) -> _Events:
        taken = column_of(rows)
        found = {name: getattr(self, name).take(taken) for name in ("ids", "sources", "keys", "data")}
        found |= {name: getattr(self, name)[rows] for name in ("pattern", "times_us", "is_retraction", "is_good")}
        return replace(self, **found, arrivals=None if self.arrivals is None else self.arrivals[rows])

    def batches(self, *, is_rekeyed: bool) -> Iterator[tuple[str, EventBatch]]:
        """The events with the keys of their traces, or those with keys of their own, by derived stream."""
        own = [into.stream if (into.key is not None) is is_rekeyed else None for into in self.intos]
        for stream in dict.fromkeys(one for one in own if one is not None):
            is_there = np.array([one == stream for one in own])
            part = self.chosen(is_there[self.pattern] & self.is_good)
            if len(part.pattern):
                columns = part.ids, part.types().dictionary_encode(), part.times_us, part.keys, part.data
                yield stream, replace(EventBatch.of_columns(*columns), arrivals=None if is_rekeyed else part.arrivals)

    def types(self) -> pa.Array:
        """The type of each event."""
        usual = [into.event_type or one.name for one, into in zip(self.patterns, self.intos, strict=True)]
        return _type_names(tuple(usual)).take(column_of(self.pattern + len(usual) * self.is_retraction))

    def rows(self, stream: str) -> Iterator[FoundRows]:
        """A result row for each event."""
        part = self.chosen(self.is_good)
        if not len(part.pattern):
            return
        if len(part.pattern) <= FEW_ROWS:
            yield FoundRows.of(DERIVED, part._singles(stream))
            return
        intos = self.intos
        where = f'","stream":{json_text(stream)},"into":'
        heads = [f'{where}{json_text(into.stream)},"type":"' for into in intos]
        named = [f',"pattern":{json_text(one.name)},"version":{one.version},"source_key":"' for one in self.patterns]
        ends = [f'","rekeyed":{"false" if into.key is None else "true"}}}' for into in intos]
        parts = ['{"id":"', part.ids, chosen_texts(heads, part.pattern), json_contents(part.types())]
        parts += ['","time":"', time_texts(part.times_us), '","key":"', json_contents(part.keys), '","data":']
        parts += [part.data.cast(pa.string()), chosen_texts(named, part.pattern), json_contents(part.sources)]
        about = [
            {"stream": stream, "pattern": one.name, "into": into.stream}
            for one, into in zip(self.patterns, intos, strict=True)
        ]
        bodies = joined_texts([*parts, chosen_texts(ends, part.pattern)])
        yield FoundRows.about(DERIVED, part.ids, bodies, about, part.pattern)

    def _singles(self, stream: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Ids and JSON objects of the rows, made one at a time, which is faster than columns for few rows."""
        columns = (column.to_pylist() for column in (self.ids, self.types(), self.keys, self.data, self.sources))
        found: list[tuple[str, Mapping[str, Any]]] = []
        for number, time_us, *texts in zip(self.pattern.tolist(), self.times_us.tolist(), *columns, strict=True):
            (identity, event_type, key, data, source), one, into = texts, self.patterns[number], self.intos[number]
            body = {
                "id": identity,
                "stream": stream,
                "into": into.stream,
                "type": event_type,
                "time": format_time(time_us),
                "key": key,
                "data": orjson.Fragment(data),
                "pattern": one.name,
                "version": one.version,
                "source_key": source,
                "rekeyed": into.key is not None,
            }
            found.append((identity, body))
        return found

    def dead_letters(self, stream: str, origin: Origin) -> Iterator[Single]:
        """Dead letters of matches that cannot become events; nothing is retracted for them."""
        is_bad = ~self.is_good & ~self.is_retraction
        if not is_bad.any():
            return
        part = self.chosen(is_bad)
        columns = zip(part.pattern.tolist(), part.ids.to_pylist(), part.sources.to_pylist(), strict=True)
        for number, match, key in columns:
            pattern = self.patterns[number]
            error = NotDerivable(
                f"the match {match} of the pattern {pattern.name!r} cannot be an event of {_into(pattern).stream!r}: "
                f"{_reason(pattern)}; the pattern continues"
            )
            identity = row_id(DEAD_LETTER, stream, error.code, match)
            body = {
                **dead_letter_body(origin.shard, origin.entry, error),
                "id": identity,
                "stream": stream,
                "pattern": pattern.name,
                "version": pattern.version,
                "key": key,
                "match": match,
            }
            yield DEAD_LETTER, identity, body


class QuietAlerts(DerivedEvents):
    """The alerts of patterns with ``suppress``, ``incident`` or ``resolves`` as events of inner streams.

    The data of an event is the whole alert. Alerts that close incidents come last among alerts of the same time and
    place, because their ids sort after all others.

    ``suppressions`` has the rules by pattern name; ``alerts_of`` makes the alerts of a per-key matcher.
    """

    def __init__(
        self,
        suppressions: Mapping[str, Suppression],
        alerts_of: Callable[[LaneOutput], Iterable[Result]],
        *found: Any,
    ) -> None:
        self._suppressions, self._alerts_of = suppressions, alerts_of
        super().__init__(*found)

    def rows(self) -> Iterator[FoundRows]:
        """The alerts that go to the places of their groups."""
        if self._all is not None:
            yield from itertools.starmap(FoundRows.rekeyed, self._all.batches(is_rekeyed=True))

    def _matches(self, lane: LaneOutput) -> Iterator[_Found]:
        if not len(lane.matches):
            return
        rows, columns = list(in_columns(self._alerts_of(lane))), lane.columns_of_matches()
        used, pattern = np.unique(columns.pattern, return_inverse=True)
        patterns = [columns.patterns[number] for number in used.tolist()]
        own = [self._suppressions[one.name] for one in patterns]
        data = [body for some in rows for body in some.bodies.to_pylist()]
        yield _Found(
            patterns=patterns,
            intos=[
                Into(
                    stream=alerts_stream(how.resolves or one.name),
                    key="group" if how.is_rekeyed else None,
                    event_type=RESOLUTION if how.resolves else ALERT.name,
                )
                for one, how in zip(patterns, own, strict=True)
            ],
            pattern=pattern,
            ids=pa.compute.binary_join_element_wise(
                texts_of([_LAST if how.resolves else "" for how in own]).take(column_of(pattern)),
                _joined([some.ids for some in rows]),
                "",
            ),
            times_us=columns.detected_us.clip(EARLIEST_US, LATEST_US),
            sources=columns.key,
            keys=[
                own[number].group_of(orjson.loads(body)) if own[number].is_rekeyed else None
                for number, body in zip(pattern.tolist(), data, strict=True)
            ],
            data=data,
            places=self._places(lane, lane.matches.rows, columns.detected_us, columns.how == _WINDOW),
            is_retraction=False,
        )

    def _corrections(self, lane: LaneOutput) -> Iterator[_Found]:
        return iter(())


def passed_us(batch: EventBatch, newest_us: int | None) -> NDArray[np.int64]:
    """How far time has come at each event of a batch, ``newest_us`` before it."""
    passed = np.maximum.accumulate(batch.time_us) if len(batch) else batch.time_us
    return passed if newest_us is None else np.maximum(passed, newest_us)


def _into(pattern: RunningPattern) -> Into:
    """The INTO clause of a pattern that has one."""
    into = pattern.query.pattern.into
    if into is None:
        raise ValueError(f"the pattern {pattern.name!r} has no INTO")
    return into


def _reason(pattern: RunningPattern) -> str:
    key = _into(pattern).key
    column = "its time is outside the years 1 to 9999"
    return column if key is None else f"its column {key} is no key, a text that is not empty or an integer, or {column}"


def _keys(
    patterns: Sequence[RunningPattern], pattern: NDArray[np.intp], values: Sequence[Mapping[str, Any]]
) -> list[str | None]:
    """The key of each match from its KEY column; None if the value is not a key or the pattern has no KEY."""
    names = [_into(one).key for one in patterns]
    if not any(name is not None for name in names):
        return [None] * len(pattern)
    return [
        None if names[number] is None else key_of(value.get(names[number]))
        for number, value in zip(pattern.tolist(), values, strict=True)
    ]


@lru_cache(maxsize=256)
def _type_names(usual: tuple[str, ...]) -> pa.Array:
    """Types of events, then those of their retractions."""
    return texts_of([*usual, *(f"{name}{RETRACTED}" for name in usual)])


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _order(
    places: NDArray[np.int64],
    times_us: NDArray[np.int64],
    patterns: Sequence[RunningPattern],
    pattern: NDArray[np.intp],
    ids: pa.Array,
) -> NDArray[np.intp]:
    """The order by place and time, then by pattern and id, needed when one event completes several matches."""
    order = np.lexsort((times_us, places[:, 1], places[:, 0]))
    some = np.column_stack([places, times_us])[order]
    if not np.any(np.all(some[1:] == some[:-1], axis=1)):
        return order
    names = [(one.name, one.version) for one in patterns]
    ranks = np.array([sorted(set(names)).index(name) for name in names])
    texts = np.array(ids.to_pylist(), "S")
    return np.lexsort((texts, ranks[pattern], times_us, places[:, 1], places[:, 0]))

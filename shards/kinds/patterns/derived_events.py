"""Matches of patterns with INTO as events of derived streams, and corrections of these matches as retractions.

Both are computed by columns. Events are ordered by the event that decided their match, so batch boundaries do not
change the order.
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
from shards.rows import ResultRows, dead_letter_body, row_id
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
_LAST = "~"  # sorts after the hexadecimal digits of ids


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaneEvents:
    """Derived events from matches or corrections of one per-key matcher.

    Attributes:
        intos: For each pattern, the stream of its events, their type, and whether they have keys of their own.
        keys: The key of each event whose pattern has KEY, or None if the value cannot be a key. None also if the
            pattern has no KEY. The event then has the key of its trace.
        places: An int64 pair for each event. (i, 1) means that event i of the batch decided the match. (i, 0) means
            that passing time decided it before event i.
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
    """The events that the patterns of one place derive from a batch, or from passing time.

    ``newest_us`` is the event time reached before the batch, or None before the first event.
    """

    def __init__(self, lanes: Sequence[LaneOutput], batch: EventBatch, stream: str, newest_us: int | None) -> None:
        self._stream, self._passed_us = stream, passed_us(batch, newest_us)
        parts = [part for lane in lanes for part in (*self._matches(lane), *self._corrections(lane))]
        self._all = _Events.of(parts, batch.arrivals, self._passed_us) if parts else None

    def batches(self) -> Iterator[tuple[str, EventBatch]]:
        """Return the derived events that keep the keys of their traces, by derived stream."""
        return iter(()) if self._all is None else self._all.batches(is_rekeyed=False)

    def rows(self) -> Iterator[ResultRows]:
        """Yield the result rows of the derived events, and rows for the log.

        The rows for the log have the events with keys of their own.
        """
        if self._all is not None:
            yield from self._all.rows(self._stream)
            yield from itertools.starmap(ResultRows.rekeyed, self._all.batches(is_rekeyed=True))

    def dead_letters(self, origin: Origin) -> Iterator[Single]:
        """Yield the dead letters of matches that cannot become events."""
        if self._all is not None:
            yield from self._all.dead_letters(self._stream, origin)

    def _matches(self, lane: LaneOutput) -> Iterator[_LaneEvents]:
        if not len(lane.matches):
            return
        table = lane.matches
        pattern_numbers, pattern = np.unique(table.patterns, return_inverse=True)
        patterns = [lane.patterns[number] for number in pattern_numbers.tolist()]
        values: list[Mapping[str, Any]]
        if lane.has_few_matches:
            matches = list(lane.values_of_matches())
            ids = texts_of([self._id_of(match) for match in matches])
            sources, values = texts_of([match.key for match in matches]), [match.returns for match in matches]
        else:
            columns = lane.columns_of_matches()
            ids, sources = match_ids(columns, self._stream), columns.key
            values = list(lane.values_of_returns()) or [{}] * len(table)
        yield _LaneEvents(
            patterns=patterns,
            intos=list(map(_into, patterns)),
            pattern=pattern,
            ids=ids,
            times_us=table.detected_us,
            sources=sources,
            keys=_keys(patterns, pattern, values),
            data=[orjson.dumps(returns) for returns in values],
            places=self._places(lane, table.rows, table.detected_us, table.how == _WINDOW),
            is_retraction=False,
        )

    def _corrections(self, lane: LaneOutput) -> Iterator[_LaneEvents]:
        patterns = list(lane.patterns)
        is_derived = np.array(
            [running_pattern.query.pattern.into is not None for running_pattern in patterns], np.bool_
        )
        keep = is_derived[lane.corrections.patterns]
        if not keep.any():
            return
        table = lane.corrections.chosen(keep)
        corrections = [
            correction
            for correction, is_kept in zip(lane.values_of_corrections(), keep.tolist(), strict=True)
            if is_kept
        ]
        pattern_numbers, pattern = np.unique(table.patterns, return_inverse=True)
        patterns = [patterns[number] for number in pattern_numbers.tolist()]
        retracted = [self._id_of(correction) for correction in corrections]
        times_us = np.array([correction.time_us for correction in corrections], np.int64)
        yield _LaneEvents(
            patterns=patterns,
            intos=list(map(_into, patterns)),
            pattern=pattern,
            ids=texts_of(
                [
                    row_id(CORRECTION, match, correction.event_id)
                    for match, correction in zip(retracted, corrections, strict=True)
                ]
            ),
            times_us=times_us,
            sources=texts_of([correction.key for correction in corrections]),
            keys=_keys(patterns, pattern, list(lane.values_of_returns(table))),
            data=[orjson.dumps({"retracts": match_id}) for match_id in retracted],
            places=self._places(lane, table.rows, times_us, np.zeros(len(corrections), np.bool_)),
            is_retraction=True,
        )

    def _id_of(self, decision: Match | Correction) -> str:
        return alert_id(self._stream, decision.pattern, decision.version, decision.key, decision.bindings, decision.row)

    def _places(
        self, lane: LaneOutput, rows: NDArray[np.int64], times_us: NDArray[np.int64], is_due: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return where each result was decided, as pairs like ``_LaneEvents.places``.

        An event decided the result ``rows[i]``, unless ``is_due`` or the matcher says that time did. Then the place is
        before the first event at which event time reached ``times_us``.
        """
        places = lane.places_of(rows)
        by_time = is_due | (places == _NO_PLACE)
        return np.column_stack([np.where(by_time, np.searchsorted(self._passed_us, times_us), places), ~by_time])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    """Derived events of all per-key matchers of a place, sorted, including invalid ones.

    The members without a description are as in ``_LaneEvents``.

    Attributes:
        is_good: Whether key and time of each event are valid.
        arrivals: For each event, the arrival number of the event that decided it. It is 0 if time decided the event.
            None means that arrival numbers are unknown.
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
    def of(
        cls, parts: Sequence[_LaneEvents], arrivals: NDArray[np.int64] | None, passed_us: NDArray[np.int64]
    ) -> _Events:
        """Combine the derived events of all matchers, and sort them.

        ``passed_us`` is the event time reached at each event of the batch.
        """
        firsts = np.cumsum([0, *(len(part.patterns) for part in parts)])
        patterns = [pattern for part in parts for pattern in part.patterns]
        intos = [into for part in parts for into in part.intos]
        pattern = np.concatenate([part.pattern + first for part, first in zip(parts, firsts, strict=False)])
        ids, sources = (_joined([getattr(part, name) for part in parts]) for name in ("ids", "sources"))
        times_us = np.concatenate([part.times_us for part in parts])
        has_key = np.array([into.key is not None for into in intos])[pattern]
        keys = [key for part in parts for key in part.keys]
        is_good = np.array([key is not None for key in keys], np.bool_) | ~has_key
        is_good &= (times_us >= EARLIEST_US) & (times_us <= LATEST_US)
        event_keys = texts_of([key or "" for key in keys]) if has_key.any() else sources
        if has_key.any() and not has_key.all():
            event_keys = pa.compute.if_else(column_of(has_key), event_keys, sources)
        places = np.concatenate([part.places for part in parts])
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
            keys=event_keys,
            data=pieces_of([piece for part in parts for piece in part.data], pa.binary()),
            is_retraction=np.repeat([part.is_retraction for part in parts], [len(part.pattern) for part in parts]),
            is_good=is_good,
            arrivals=arrivals,
        )
        return events._take(_order(places, times_us, patterns, pattern, ids))

    def chosen(self, keep: NDArray[np.bool_]) -> _Events:
        return self if keep.all() else self._take(np.flatnonzero(keep))

    def _take(self, rows: NDArray[np.intp]) -> _Events:
        indices = column_of(rows)
        columns = {name: getattr(self, name).take(indices) for name in ("ids", "sources", "keys", "data")}
        columns |= {name: getattr(self, name)[rows] for name in ("pattern", "times_us", "is_retraction", "is_good")}
        return replace(self, **columns, arrivals=None if self.arrivals is None else self.arrivals[rows])

    def batches(self, *, is_rekeyed: bool) -> Iterator[tuple[str, EventBatch]]:
        """Yield the valid events of each derived stream: the re-keyed ones if ``is_rekeyed``, otherwise all others."""
        streams = [into.stream if (into.key is not None) is is_rekeyed else None for into in self.intos]
        for stream in dict.fromkeys(name for name in streams if name is not None):
            is_in_stream = np.array([name == stream for name in streams])
            part = self.chosen(is_in_stream[self.pattern] & self.is_good)
            if len(part.pattern):
                columns = part.ids, part.types().dictionary_encode(), part.times_us, part.keys, part.data
                yield stream, replace(EventBatch.of_columns(*columns), arrivals=None if is_rekeyed else part.arrivals)

    def types(self) -> pa.Array:
        type_names = [into.event_type or pattern.name for pattern, into in zip(self.patterns, self.intos, strict=True)]
        return _type_names(tuple(type_names)).take(column_of(self.pattern + len(type_names) * self.is_retraction))

    def rows(self, stream: str) -> Iterator[ResultRows]:
        part = self.chosen(self.is_good)
        if not len(part.pattern):
            return
        if len(part.pattern) <= FEW_ROWS:
            yield ResultRows.of(DERIVED, part._singles(stream))
            return
        intos = self.intos
        where = f'","stream":{json_text(stream)},"into":'
        heads = [f'{where}{json_text(into.stream)},"type":"' for into in intos]
        origins = [
            f',"pattern":{json_text(pattern.name)},"version":{pattern.version},"source_key":"'
            for pattern in self.patterns
        ]
        ends = [f'","rekeyed":{"false" if into.key is None else "true"}}}' for into in intos]
        parts = ['{"id":"', part.ids, chosen_texts(heads, part.pattern), json_contents(part.types())]
        parts += ['","time":"', time_texts(part.times_us), '","key":"', json_contents(part.keys), '","data":']
        parts += [part.data.cast(pa.string()), chosen_texts(origins, part.pattern), json_contents(part.sources)]
        about = [
            {"stream": stream, "pattern": pattern.name, "into": into.stream}
            for pattern, into in zip(self.patterns, intos, strict=True)
        ]
        bodies = joined_texts([*parts, chosen_texts(ends, part.pattern)])
        yield ResultRows.about(DERIVED, part.ids, bodies, about, part.pattern)

    def _singles(self, stream: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return id and JSON object of each event as result of ``stream``.

        For few events this is faster than by columns.
        """
        columns = (column.to_pylist() for column in (self.ids, self.types(), self.keys, self.data, self.sources))
        rows: list[tuple[str, Mapping[str, Any]]] = []
        for number, time_us, *texts in zip(self.pattern.tolist(), self.times_us.tolist(), *columns, strict=True):
            (identity, event_type, key, data, source), pattern, into = texts, self.patterns[number], self.intos[number]
            body = {
                "id": identity,
                "stream": stream,
                "into": into.stream,
                "type": event_type,
                "time": format_time(time_us),
                "key": key,
                "data": orjson.Fragment(data),
                "pattern": pattern.name,
                "version": pattern.version,
                "source_key": source,
                "rekeyed": into.key is not None,
            }
            rows.append((identity, body))
        return rows

    def dead_letters(self, stream: str, origin: Origin) -> Iterator[Single]:
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
    """Alerts of patterns with ``suppress``, ``incident`` or ``resolves`` as events of inner streams.

    An operator that reads the inner stream then suppresses alerts and manages incidents. The data of an event is the
    whole alert. Among alerts of the same time and place, alerts that close incidents are last, because their ids sort
    after all others.

    ``suppressions`` has the rules by pattern name. ``alerts_of`` makes the alerts of a per-key matcher.
    """

    def __init__(
        self,
        suppressions: Mapping[str, Suppression],
        alerts_of: Callable[[LaneOutput], Iterable[Result]],
        *arguments: Any,
    ) -> None:
        self._suppressions, self._alerts_of = suppressions, alerts_of
        super().__init__(*arguments)

    def rows(self) -> Iterator[ResultRows]:
        """Yield the re-keyed alerts as rows for the log. The log carries each alert to the place of its group."""
        if self._all is not None:
            yield from itertools.starmap(ResultRows.rekeyed, self._all.batches(is_rekeyed=True))

    def _matches(self, lane: LaneOutput) -> Iterator[_LaneEvents]:
        if not len(lane.matches):
            return
        rows, columns = list(in_columns(self._alerts_of(lane))), lane.columns_of_matches()
        pattern_numbers, pattern = np.unique(columns.pattern, return_inverse=True)
        patterns = [columns.patterns[number] for number in pattern_numbers.tolist()]
        suppressions = [self._suppressions[running_pattern.name] for running_pattern in patterns]
        data = [body for alert_rows in rows for body in alert_rows.bodies.to_pylist()]
        yield _LaneEvents(
            patterns=patterns,
            intos=[
                Into(
                    stream=alerts_stream(suppression.resolves or running_pattern.name),
                    key="group" if suppression.is_rekeyed else None,
                    event_type=RESOLUTION if suppression.resolves else ALERT.name,
                )
                for running_pattern, suppression in zip(patterns, suppressions, strict=True)
            ],
            pattern=pattern,
            ids=pa.compute.binary_join_element_wise(
                texts_of([_LAST if suppression.resolves else "" for suppression in suppressions]).take(
                    column_of(pattern)
                ),
                _joined([alert_rows.ids for alert_rows in rows]),
                "",
            ),
            times_us=columns.detected_us.clip(EARLIEST_US, LATEST_US),
            sources=columns.key,
            keys=[
                suppressions[number].group_of(orjson.loads(body)) if suppressions[number].is_rekeyed else None
                for number, body in zip(pattern.tolist(), data, strict=True)
            ],
            data=data,
            places=self._places(lane, lane.matches.rows, columns.detected_us, columns.how == _WINDOW),
            is_retraction=False,
        )

    def _corrections(self, lane: LaneOutput) -> Iterator[_LaneEvents]:
        return iter(())


def passed_us(batch: EventBatch, newest_us: int | None) -> NDArray[np.int64]:
    """Return the event time reached at each event of a batch. ``newest_us`` is the time reached before the batch."""
    passed = np.maximum.accumulate(batch.time_us) if len(batch) else batch.time_us
    return passed if newest_us is None else np.maximum(passed, newest_us)


def _into(pattern: RunningPattern) -> Into:
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
    names = [_into(running_pattern).key for running_pattern in patterns]
    if not any(name is not None for name in names):
        return [None] * len(pattern)
    return [
        None if names[number] is None else key_of(value.get(names[number]))
        for number, value in zip(pattern.tolist(), values, strict=True)
    ]


@lru_cache(maxsize=256)
def _type_names(names: tuple[str, ...]) -> pa.Array:
    return texts_of([*names, *(f"{name}{RETRACTED}" for name in names)])


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _order(
    places: NDArray[np.int64],
    times_us: NDArray[np.int64],
    patterns: Sequence[RunningPattern],
    pattern: NDArray[np.intp],
    ids: pa.Array,
) -> NDArray[np.intp]:
    """Sort derived events by place and time, then by pattern and id."""
    order = np.lexsort((times_us, places[:, 1], places[:, 0]))
    places_and_times = np.column_stack([places, times_us])[order]
    if not np.any(np.all(places_and_times[1:] == places_and_times[:-1], axis=1)):
        return order
    names = [(running_pattern.name, running_pattern.version) for running_pattern in patterns]
    ranks = np.array([sorted(set(names)).index(name) for name in names])
    texts = np.array(ids.to_pylist(), "S")
    return np.lexsort((texts, ranks[pattern], times_us, places[:, 1], places[:, 0]))

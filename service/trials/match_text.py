"""Matches as JSON text, written by columns: the same bytes as from their values, in a fraction of the time.

The meaning is ``matching.match_document`` in the order of ``nfa.match_order``. The text of a match is a head (pattern
and key), a piece for each bound event (its id, with what stands between it and the event before) and a tail (times and
marks). Few of them differ: each is made once, and the text is one column of them, taken by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import LaneOutput, MatchColumns, RunningPattern
from shards import BOUND_FIRST, BOUND_PLACES, BOUND_SAME, bound_openings, bound_places, match_marks
from streams import (
    EARLIEST_US,
    LATEST_US,
    Texts,
    borders_of,
    bytes_of,
    chosen_texts,
    column_of,
    joined_texts,
    json_contents,
    json_text,
    numbers_of,
    ragged_order,
    ragged_places,
    texts_of,
    time_texts,
)

_PART_BYTES = 1 << 23  # of text that is made at once: far from the end of 32-bit offsets
_TAIL_BYTES = 192  # at most
_SPARSE = 8  # a table that is so many times longer than what is looked up costs as much as sorting


def matches_text(lanes: Sequence[LaneOutput], with_returns: frozenset[str] = frozenset()) -> list[bytes]:
    """The matches as ``match_document`` shows them, between commas, in parts that follow one another.

    Args:
        lanes: Where they were found, in the order of the log.
        with_returns: Names of the patterns whose matches show what RETURN makes of them.

    Raises:
        EventRejected: A time is outside the years 1 to 9999.
    """
    filled = [lane for lane in lanes if len(lane.matches)]
    if not filled:
        return []
    found = _Found.of([lane.columns_of_matches() for lane in filled], _returned(filled, with_returns))
    *parts, last = (bytes(part) for part in found.parts(found.order()))
    return [*parts, last[:-1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All matches, those of each batch and lane behind those before.

    Attributes:
        patterns: Those that they are of.
        pattern: Of each match the place of its pattern among them.
        keys: Correlation keys, each once.
        key: Of each match the place of its key among them.
        start_us: Time of its earliest event.
        end_us: Time of its latest.
        detected_us: When its last condition was decided, within the years 1 to 9999.
        how: What decided it.
        is_deviating: Whether its trace had broken a constraint.
        is_lost: Whether eviction would have lost it.
        returns: What RETURN makes of it, as the last member of the object; None where no pattern has one.
        ends: Place behind its last event.
        alias: Of each bound event its alias, numbered through all patterns.
        event: Its place among ``names``.
        place: How it follows the one before.
        names: Ids of events.
    """

    patterns: Sequence[RunningPattern]
    pattern: NDArray[np.int64]
    keys: pa.Array
    key: NDArray[np.int64]
    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    how: NDArray[np.int8]
    is_deviating: NDArray[np.bool_]
    is_lost: NDArray[np.bool_]
    returns: pa.Array | None
    ends: NDArray[np.int64]
    alias: NDArray[np.int64]
    event: NDArray[np.int64]
    place: NDArray[np.int8]
    names: pa.Array

    @classmethod
    def of(cls, found: Sequence[MatchColumns], returns: pa.Array | None) -> _Found:
        """Those of some batches and lanes."""
        known: dict[RunningPattern, int] = {}
        pattern = np.concatenate([_pattern_places(columns, known) for columns in found])
        keys = pa.chunked_array([columns.key for columns in found]).dictionary_encode().combine_chunks()
        ends = _stacked([(columns.ends, len(columns.events)) for columns in found])
        firsts = np.cumsum([0, *(len(one.automaton.aliases) for one in known)])
        alias = np.concatenate([columns.aliases for columns in found]) + np.repeat(
            firsts[pattern], np.diff(ends, prepend=0)
        )
        detected_us = np.concatenate([columns.detected_us for columns in found])
        return cls(
            patterns=list(known),
            pattern=pattern,
            keys=keys.dictionary,
            key=numbers_of(keys.indices).astype(np.int64),
            start_us=np.concatenate([columns.start_us for columns in found]),
            end_us=np.concatenate([columns.end_us for columns in found]),
            detected_us=np.clip(detected_us, EARLIEST_US, LATEST_US),
            how=np.concatenate([columns.how for columns in found]),
            is_deviating=np.concatenate([columns.is_deviating for columns in found]),
            is_lost=np.concatenate([columns.is_lost for columns in found]),
            returns=returns,
            ends=ends,
            alias=alias,
            event=_stacked([(columns.events, len(columns.names)) for columns in found]),
            place=bound_places(alias, ends),
            names=pa.concat_arrays([columns.names for columns in found]),
        )

    def order(self) -> NDArray[np.intp]:
        """The matches in the order of ``match_order``."""
        found = ragged_order([self.end_us, self.start_us], self._words(), self.ends)
        rows, repeats = found.rows, found.repeats
        is_tied = repeats.copy()
        is_tied[:-1] |= repeats[1:]
        tied = np.flatnonzero(is_tied)
        if len(tied):
            some, groups = rows[tied], np.cumsum(~repeats[tied])
            by_name = _ranks(texts_of([one.name for one in self.patterns]))[self.pattern[some]]
            rows[tied] = some[np.lexsort((_ranks(self.keys)[self.key[some]], by_name, groups))]
        return rows

    def _words(self) -> NDArray[np.int64]:
        """The bindings of each match as numbers that are in order as their sorted items are.

        Those of an alias end where another one begins, so an event that goes on with the alias is above all others.
        """
        names = texts_of([name for one in self.patterns for name in one.automaton.aliases])
        alias, ids, place = _ranks(names)[self.alias], _ranks(self.names)[self.event], self.place
        if np.any((alias[1:] < alias[:-1]) & (place[1:] != BOUND_FIRST)):
            order = np.lexsort((alias, np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))))
            alias, ids = alias[order], ids[order]
            place = bound_places(alias, self.ends)
        alias[place == BOUND_SAME] = len(names)
        return alias * len(self.names) + ids

    def parts(self, rows: NDArray[np.intp]) -> Iterator[memoryview]:
        """Their text, a comma behind each, some at a time.

        Args:
            rows: All of them, in the order that is wanted.
        """
        heads, head = self._heads()
        pieces, piece = self._pieces()
        sizes = np.diff(self.ends, prepend=0)
        shared = pa.concat_arrays([heads, pieces])
        lengths = np.diff(borders_of(shared))
        size_bytes = np.add.reduceat(lengths[piece + len(heads)], self.ends - sizes) + lengths[head] + _TAIL_BYTES
        if self.returns is not None:
            size_bytes += np.diff(borders_of(self.returns))
        at_once = max(_PART_BYTES, 4 * int(lengths.sum()))
        for some in np.split(rows, np.flatnonzero(np.diff(np.cumsum(size_bytes[rows]) // at_once)) + 1):
            tails, tail = self._tails(some)
            counts = sizes[some]
            borders = np.cumsum(counts + 2)
            numbers = np.empty(int(borders[-1]), np.int64)
            is_event = np.ones(len(numbers), np.bool_)
            is_event[borders - 1] = is_event[borders - counts - 2] = False
            numbers[borders - counts - 2] = head[some]
            numbers[borders - 1] = tail + len(shared)
            numbers[is_event] = piece[ragged_places(self.ends[some] - counts, counts)] + len(heads)
            yield bytes_of(pa.concat_arrays([shared, tails]).take(column_of(numbers)))

    def _heads(self) -> tuple[pa.Array, NDArray[np.int64]]:
        """The beginning of the text of each pattern and key, and the number of each match's."""
        used, number = _numbered(self.pattern * len(self.keys) + self.key, len(self.patterns) * len(self.keys))
        before = [f'{{"pattern":{json_text(one.name)},"key":"' for one in self.patterns]
        keys = json_contents(self.keys).take(column_of(used % len(self.keys)))
        return joined_texts([chosen_texts(before, used // len(self.keys)), keys, '","bindings":{']), number

    def _pieces(self) -> tuple[pa.Array, NDArray[np.int64]]:
        """The id of each event as it is bound to an alias in some place, and the number of each bound event's."""
        before = bound_openings(name for one in self.patterns for name in one.automaton.aliases)
        code = (BOUND_PLACES * self.alias + self.place) * len(self.names) + self.event
        used, number = _numbered(code, len(before) * len(self.names))
        ids = json_contents(self.names).take(column_of(used % len(self.names)))
        return joined_texts([chosen_texts(before, used // len(self.names)), ids]), number

    def _tails(self, rows: NDArray[np.intp]) -> tuple[pa.Array, NDArray[np.int64]]:
        """The end of the text of some matches, and the number of each one's: neighbours share it where they can."""
        columns = (self.end_us, self.start_us, self.detected_us, self.how, self.is_deviating, self.is_lost)
        is_new = np.full(len(rows), self.returns is not None)
        is_new[0] = True
        for column in columns:
            is_new[1:] |= column[rows[1:]] != column[rows[:-1]]
        some = rows[is_new]
        end, detected_us = time_texts(self.end_us[some]), self.detected_us[some]
        is_at_end = np.array_equal(detected_us, self.end_us[some])
        parts: list[Texts] = ['"]},"start":"', time_texts(self.start_us[some]), '","end":"', end, '","detected_at":"']
        parts += [end if is_at_end else time_texts(detected_us), '"']
        parts += match_marks(self.how[some], self.is_deviating[some], self.is_lost[some])
        parts += ["" if self.returns is None else self.returns.take(column_of(some)), "},"]
        return joined_texts(parts), np.cumsum(is_new) - 1


def _returned(lanes: Sequence[LaneOutput], with_returns: frozenset[str]) -> pa.Array | None:
    """What RETURN makes of each match, as the last member of its object; nothing where its pattern has none."""
    if not with_returns:
        return None
    texts: list[str] = []
    for lane in lanes:
        shown = [pattern.name in with_returns for pattern in lane.patterns]
        values = list(lane.values_of_returns()) or [{}] * len(lane.matches)
        texts += [
            f',"returns":{orjson.dumps(value).decode()}' if shown[number] else ""
            for number, value in zip(lane.matches.patterns.tolist(), values, strict=True)
        ]
    return texts_of(texts)


def _pattern_places(columns: MatchColumns, known: dict[RunningPattern, int]) -> NDArray[np.int64]:
    """Of each match the place of its pattern among those that are known, which grow."""
    used, number = _numbered(columns.pattern.astype(np.int64), len(columns.patterns))
    places = [known.setdefault(columns.patterns[one], len(known)) for one in used.tolist()]
    return np.array(places, np.int64)[number]


def _stacked(parts: Sequence[tuple[NDArray[np.integer], int]]) -> NDArray[np.int64]:
    """Places in parts as places in the whole; each part with its length."""
    firsts = np.cumsum([0, *(length for _, length in parts)]).tolist()
    return np.concatenate([places + first for (places, _), first in zip(parts, firsts, strict=False)])


def _numbered(codes: NDArray[np.int64], reach: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct codes, all below ``reach``, in ascending order, and of each code its number among them."""
    if reach > _SPARSE * len(codes):
        used, number = np.unique(codes, return_inverse=True)
        return used, number
    is_used = np.zeros(reach, np.bool_)
    is_used[codes] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


def _ranks(texts: pa.Array) -> NDArray[np.int64]:
    """The place of each text among the distinct ones in ascending order."""
    order = numbers_of(pc.array_sort_indices(texts)).astype(np.int64)
    ascending = texts.take(column_of(order))
    is_new = np.zeros(len(order), np.int64)
    is_new[1:] = numbers_of(pc.not_equal(ascending[1:], ascending[:-1]).cast(pa.int8()))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new)
    return ranks

"""Writes matches as sorted JSON text, from the same columns from which alerts are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import LaneOutput, MatchColumns, RunningPattern
from shards import BOUND_SAME, BoundTexts, match_marks, match_rows, match_times
from streams import (
    Texts,
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
)

_EVENTS_AT_ONCE = 32_768  # bound events per part, so that the columns of a part fit into a processor's cache


def matches_text(lanes: Sequence[LaneOutput], with_returns: frozenset[str] = frozenset()) -> list[bytes]:
    """Write matches as JSON objects separated by commas, in the order in which runs list matches.

    The text is returned in parts, for the caller to write one after the other. ``with_returns`` names the patterns with
    RETURN. Only their matches have the member ``returns``.
    """
    filled = [lane for lane in lanes if len(lane.matches)]
    if not filled:
        return []
    matches = joined_matches([lane.columns_of_matches() for lane in filled])
    returns = _returned(filled, with_returns)
    rows, sizes = _order(matches), np.diff(matches.ends, prepend=0)
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes[rows]) // _EVENTS_AT_ONCE)) + 1
    *parts, last = (
        bytes(_text(_chosen(matches, part_rows), "" if returns is None else returns.take(column_of(part_rows))))
        for part_rows in np.split(rows, cuts)
    )
    return [*parts, last[:-1]]


def _text(matches: MatchColumns, returns: Texts) -> memoryview:
    """Write matches as JSON objects, each followed by a comma. ``returns`` is the text of each object's last member."""
    heads = [f'{{"pattern":{json_text(pattern.name)},"key":"' for pattern in matches.patterns]
    bound = BoundTexts.of(matches, matches.patterns, matches.pattern)
    parts = [chosen_texts(heads, matches.pattern), json_contents(matches.key), '",']
    parts += [*match_rows(matches.rows), '"bindings":{', bound.bindings]
    parts += ['"]},', *match_times(matches)]
    parts += [*match_marks(matches.how, matches.is_deviating, matches.is_lost), returns, "},"]
    return bytes_of(joined_texts(parts))


def joined_matches(parts: Sequence[MatchColumns]) -> MatchColumns:
    """Concatenate the matches of several batches and per-key matchers. The keys become a dictionary array."""
    numbers: dict[RunningPattern, int] = {}
    return MatchColumns(
        pattern=np.concatenate([_pattern_places(columns, numbers) for columns in parts]),
        patterns=list(numbers),
        key=pa.chunked_array([columns.key for columns in parts]).dictionary_encode().combine_chunks(),
        start_us=np.concatenate([columns.start_us for columns in parts]),
        end_us=np.concatenate([columns.end_us for columns in parts]),
        detected_us=np.concatenate([columns.detected_us for columns in parts]),
        how=np.concatenate([columns.how for columns in parts]),
        is_deviating=np.concatenate([columns.is_deviating for columns in parts]),
        is_lost=np.concatenate([columns.is_lost for columns in parts]),
        ends=_stacked([(columns.ends, len(columns.events)) for columns in parts]),
        aliases=np.concatenate([columns.aliases for columns in parts]),
        events=_stacked([(columns.events, len(columns.names)) for columns in parts]),
        names=pa.concat_arrays([columns.names for columns in parts]),
        rows=_joined_rows(parts),
    )


def _joined_rows(parts: Sequence[MatchColumns]) -> pa.Array | None:
    if all(columns.rows is None for columns in parts):
        return None
    return pa.concat_arrays([texts_of([""] * len(part)) if part.rows is None else part.rows for part in parts])


def _chosen(matches: MatchColumns, rows: NDArray[np.intp]) -> MatchColumns:
    ends = matches.ends[rows]
    sizes = ends - np.where(rows > 0, matches.ends[rows - 1], 0)
    bound = ragged_places(ends - sizes, sizes)
    return replace(
        matches,
        pattern=matches.pattern[rows],
        key=matches.key.take(column_of(rows)).cast(pa.string()),
        start_us=matches.start_us[rows],
        end_us=matches.end_us[rows],
        detected_us=matches.detected_us[rows],
        how=matches.how[rows],
        is_deviating=matches.is_deviating[rows],
        is_lost=matches.is_lost[rows],
        ends=np.cumsum(sizes),
        aliases=matches.aliases[bound],
        events=matches.events[bound],
        rows=None if matches.rows is None else matches.rows.take(column_of(rows)),
    )


def _order(matches: MatchColumns) -> NDArray[np.intp]:
    """Return the indices of matches in the order of ``match_order``."""
    ordering = ragged_order([matches.end_us, matches.start_us], _words(matches), matches.ends)
    rows, repeats = ordering.rows, ordering.repeats
    is_tied = repeats.copy()
    is_tied[:-1] |= repeats[1:]
    tied = np.flatnonzero(is_tied)
    if len(tied):
        tied_rows, groups = rows[tied], np.cumsum(~repeats[tied])
        by_name = _ranks(texts_of([pattern.name for pattern in matches.patterns]))[matches.pattern[tied_rows]]
        by_key = _ranks(matches.key.dictionary)[numbers_of(matches.key.indices)[tied_rows]]
        by_row = [] if matches.rows is None else [_ranks(matches.rows)[tied_rows]]
        rows[tied] = tied_rows[np.lexsort((*by_row, by_key, by_name, groups))]
    return rows


def _words(matches: MatchColumns) -> NDArray[np.int64]:
    """Return numbers for the bound events. Two matches compare by these numbers as by the texts of their bindings.

    Texts are compared by alias, then by event. If an alias binds several events, the events after the first get an
    alias above all others, because a shorter list sorts first.
    """
    bound = BoundTexts.of(matches, matches.patterns, matches.pattern).by_name()
    alias = np.where(bound.separators == BOUND_SAME, len(bound.ranks), bound.ranks[bound.alias])
    return alias * len(matches.names) + _ranks(matches.names)[bound.event]


def _returned(lanes: Sequence[LaneOutput], with_returns: frozenset[str]) -> pa.Array | None:
    """Return the text of ``returns`` for each match, or "" without RETURN. If no pattern has RETURN, return None."""
    if not with_returns:
        return None
    texts: list[str] = []
    for lane in lanes:
        has_returns = [pattern.name in with_returns for pattern in lane.patterns]
        values = list(lane.values_of_returns()) or [{}] * len(lane.matches)
        texts += [
            f',"returns":{orjson.dumps(value).decode()}' if has_returns[number] else ""
            for number, value in zip(lane.matches.patterns.tolist(), values, strict=True)
        ]
    return texts_of(texts)


def _pattern_places(columns: MatchColumns, numbers: dict[RunningPattern, int]) -> NDArray[np.int32]:
    """Return the number of each match's pattern. New patterns are added to ``numbers``."""
    used, number = np.unique(columns.pattern, return_inverse=True)
    places = [numbers.setdefault(columns.patterns[code], len(numbers)) for code in used.tolist()]
    return np.array(places, np.int32)[number]


def _stacked(parts: Sequence[tuple[NDArray[np.integer], int]]) -> NDArray[np.int64]:
    """Concatenate indices of several parts, each shifted by the total length of the parts before."""
    firsts = np.cumsum([0, *(length for _, length in parts)]).tolist()
    return np.concatenate([places + first for (places, _), first in zip(parts, firsts, strict=False)])


def _ranks(texts: pa.Array) -> NDArray[np.int64]:
    return numbers_of(pc.rank(texts, tiebreaker="dense")).astype(np.int64)

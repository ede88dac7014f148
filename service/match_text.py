"""Matches as JSON text, written by columns: the same text as from their values, in a fraction of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import DECIDED_BY, MatchColumns
from nfa import RegisteredPattern as Pattern
from streams import (
    EARLIEST_US,
    LATEST_US,
    chosen_texts,
    column_of,
    flag_texts,
    is_plain,
    joined_texts,
    json_text,
    numbers_of,
    time_texts,
)


def matches_text(found: Sequence[MatchColumns]) -> bytes | None:
    """The matches in the order of ``match_order`` as ``match_document`` shows them, between commas.

    Returns:
        None where columns will not do: matches of one pattern bind different numbers of events, a pattern has RETURN,
        or a name has to be escaped.
    """
    blocks = [block for columns in found for block in _blocks(columns)]
    if not all(block.is_plain for block in blocks):
        return None
    texts = [block.text() for block in blocks]
    if not texts:
        return b""
    start_us = np.concatenate([block.start_us for block in blocks])
    end_us = np.concatenate([block.end_us for block in blocks])
    if len(blocks) == 1:
        return _joined(texts[0])
    order = np.lexsort((start_us, end_us))
    owners = np.repeat(np.arange(len(blocks)), [len(block.rows) for block in blocks])[order]
    is_tied = (np.diff(start_us[order]) == 0) & (np.diff(end_us[order]) == 0)
    if np.any(is_tied & (np.diff(owners) != 0)):
        return None
    return _joined(pa.concat_arrays(texts).take(column_of(order)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Sorted matches of one pattern, each with as many events.

    Attributes:
        pattern: It.
        columns: All matches that were found.
        rows: Those that are meant, in their order.
        ids: (matches, events) place of each event's id in ``names``.
        aliases: Alias of each of the events; none where matches differ in that.
        names: Ids.
    """

    pattern: Pattern
    columns: MatchColumns
    rows: NDArray[np.intp]
    ids: NDArray[np.int64]
    aliases: NDArray[np.int32]
    names: pa.Array

    @property
    def start_us(self) -> NDArray[np.int64]:
        return self.columns.start_us[self.rows]

    @property
    def end_us(self) -> NDArray[np.int64]:
        return self.columns.end_us[self.rows]

    @property
    def is_plain(self) -> bool:
        """Whether its text can be written by columns."""
        is_each_once = np.array_equal(self.aliases, np.arange(len(self.pattern.automaton.aliases)))
        return (
            is_each_once
            and not self.pattern.query.pattern.returns
            and all(map(is_plain, (self.columns.key, self.names)))
        )

    def text(self) -> pa.Array:
        """Each match, with a comma behind it."""
        all_of, rows = self.columns, self.rows
        key = all_of.key.take(column_of(rows))
        parts: list[pa.Array | str] = [f'{{"pattern":{json_text(self.pattern.name)},"key":"', key, '","bindings":{']
        for place, alias in enumerate(self.pattern.automaton.aliases):
            bound = self.names.take(column_of(self.ids[:, place]))
            parts += [f'{"," if place else ""}{json_text(alias)}:["', bound, '"]']
        end_us, shown_us = self.end_us, np.clip(all_of.detected_us[rows], EARLIEST_US, LATEST_US)
        end = time_texts(end_us)
        detected = end if np.array_equal(shown_us, end_us) else time_texts(shown_us)
        parts += ['},"start":"', time_texts(self.start_us), '","end":"', end, '","detected":"', detected, '"']
        how = all_of.how[rows]
        if how.any():
            known = [DECIDED_BY[number] for number in range(len(DECIDED_BY))]
            parts.append(chosen_texts(["" if word is None else f',"decided_by":"{word}"' for word in known], how))
        parts += [
            flag_texts(all_of.is_deviating[rows], ',"deviating":true'),
            flag_texts(all_of.is_lost[rows], ',"would_be_lost":true'),
            "},",
        ]
        return joined_texts(parts)


def _blocks(columns: MatchColumns) -> list[_Block]:
    """The matches by pattern and number of events, sorted."""
    starts = np.concatenate([np.zeros(1, np.int64), columns.ends[:-1]])
    sizes = columns.ends - starts
    named = columns.ids.dictionary_encode()
    rank = np.empty(len(named.dictionary), np.int64)
    rank[numbers_of(pc.array_sort_indices(named.dictionary))] = np.arange(len(rank))
    places = numbers_of(named.indices).astype(np.int64)
    found = []
    kinds = columns.pattern.astype(np.int64) << 32 | sizes
    for kind in [int(kinds[0])] if np.all(kinds == kinds[0]) else np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        events = starts[rows][:, None] + np.arange(kind & 0xFFFFFFFF)
        pattern, aliases = columns.patterns[kind >> 32], columns.aliases[events]
        names = pattern.automaton.aliases
        by_name = sorted(range(events.shape[1]), key=lambda place: names[aliases[0, place]])
        ids = places[events]
        order = np.lexsort(
            (*(rank[ids[:, place]] for place in reversed(by_name)), columns.start_us[rows], columns.end_us[rows])
        )
        found.append(
            _Block(
                pattern=pattern,
                columns=columns,
                rows=rows[order],
                ids=ids[order],
                aliases=aliases[0] if np.all(aliases == aliases[0]) else np.zeros(0, np.int32),
                names=named.dictionary,
            )
        )
    return found


def _joined(texts: pa.Array) -> bytes:
    """The strings one after the other, without the last comma."""
    first, last = (int(place) for place in np.frombuffer(texts.buffers()[1], np.int32)[[0, len(texts)]])
    return memoryview(texts.buffers()[2])[first : last - 1].tobytes()

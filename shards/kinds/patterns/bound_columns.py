"""Bindings, times and marks of matches as columns of JSON text.

Alerts and the documents of a local run are written from these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa import DECIDED_BY, MatchColumns, RunningPattern
from streams import (
    EARLIEST_US,
    LATEST_US,
    Texts,
    chosen_texts,
    column_of,
    flag_texts,
    joined_texts,
    json_contents,
    json_text,
    run_texts,
    time_texts,
)

# How a bound event follows the previous one: first of its match, same alias, other alias.
BOUND_FIRST, BOUND_SAME, BOUND_OTHER = 0, 1, 2
_PLACES = 3


@dataclass(frozen=True, kw_only=True)
class BoundTexts:
    """The bound events of some matches, by match and alias.

    Attributes:
        ranks: Place of each alias among the distinct names in ascending order.
    """

    aliases: Sequence[str]
    ranks: NDArray[np.int64]
    alias: NDArray[np.int64]
    names: pa.Array
    event: NDArray[np.intp]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, columns: MatchColumns, patterns: Sequence[RunningPattern], place: NDArray[np.integer]) -> BoundTexts:
        """The bound events of some matches.

        ``place``: for each match, the index of its pattern in ``patterns``.
        """
        named = [pattern.automaton.aliases for pattern in patterns]
        aliases = [alias for names in named for alias in names]
        alias = columns.aliases.astype(np.int64)
        if len(patterns) > 1:
            firsts = np.cumsum([0, *map(len, named)])
            alias += np.repeat(firsts[place], np.diff(columns.ends, prepend=0))
        return cls(
            aliases=aliases,
            ranks=np.unique(np.array(aliases, object), return_inverse=True)[1],
            alias=alias,
            names=columns.names,
            event=columns.events,
            ends=columns.ends,
        )

    @cached_property
    def place(self) -> NDArray[np.int8]:
        """How each event follows the previous one: first of its match, same alias, or other alias."""
        found = np.full(len(self.alias), BOUND_OTHER, np.int8)
        found[1:][self.alias[1:] == self.alias[:-1]] = BOUND_SAME
        found[:1] = BOUND_FIRST
        found[self.ends[:-1]] = BOUND_FIRST
        return found

    @cached_property
    def ids(self) -> pa.Array:
        """The id of each event as JSON text."""
        return json_contents(self.names.take(column_of(self.event)))

    def by_name(self) -> BoundTexts:
        """A copy with the events of each match in the order of alias names."""
        ranks = self.ranks[self.alias]
        if not np.any((ranks[1:] < ranks[:-1]) & (self.place[1:] != BOUND_FIRST)):
            return self
        order = np.lexsort((ranks, np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))))
        return replace(self, alias=self.alias[order], event=self.event[order])

    @cached_property
    def bindings(self) -> pa.Array:
        """The bindings of each match as a JSON object, without its braces and without the last quote and bracket."""
        openings: list[str] = []
        for name in map(json_text, self.aliases):
            openings += [f'{name}:["', '","', f'"],{name}:["']
        before = chosen_texts(openings, _PLACES * self.alias + self.place)
        return run_texts(joined_texts([before, self.ids]), self.ends)


def match_times(columns: MatchColumns) -> list[Texts]:
    """Begin, end and detection time of each match as JSON members with commas between: parts to be joined.

    A detection time after the year 9999 is written as the last moment of it.
    """
    starts, ends = time_texts(columns.start_us), time_texts(columns.end_us)
    is_at_end = np.array_equal(columns.detected_us, columns.end_us)
    detected = ends if is_at_end else time_texts(np.clip(columns.detected_us, EARLIEST_US, LATEST_US))
    return ['"start":"', starts, '","end":"', ends, '","detected_at":"', detected, '"']


def match_rows(rows: pa.Array | None) -> list[Texts]:
    """The row of each result as a JSON member and a comma: parts to be joined; empty without rows."""
    if rows is None:
        return []
    has_row = np.asarray(pc.not_equal(rows, "")).astype(np.int64)
    return [chosen_texts(["", '"row":'], has_row), rows, chosen_texts(["", ","], has_row)]


def match_marks(how: NDArray[np.int8], is_deviating: NDArray[np.bool_], is_lost: NDArray[np.bool_]) -> list[Texts]:
    """The rare members of a match, each with a comma before: parts to be joined.

    Args:
        how: How each match was decided, as an index into ``nfa.DECIDED_BY``.
        is_deviating: Whether its trace had broken a constraint.
        is_lost: Whether eviction would have lost it.
    """
    known = [DECIDED_BY[number] for number in range(len(DECIDED_BY))]
    words = ["" if word is None else f',"decided_by":"{word}"' for word in known]
    return [
        chosen_texts(words, how) if how.any() else "",
        flag_texts(is_deviating, ',"deviating":true'),
        flag_texts(is_lost, ',"would_be_lost":true'),
    ]

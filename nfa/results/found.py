"""Matches as columns: the output of the engines, before they are converted to values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.arena import distinct
from nfa.kernels.runs import tables as run_tables
from streams import ascending_words, ragged_order, ragged_places, zeros_of

DecidedBy: TypeAlias = Literal["constraint", "window", "trace_end"]

DECIDED_BY: Mapping[int, DecidedBy | None] = {
    run_tables.NOT_WAITED: None,
    run_tables.BY_WINDOW: "window",
    run_tables.BY_TRACE_END: "trace_end",
    run_tables.BY_CONSTRAINT: "constraint",
}


_OF_MATCHES = ("patterns", "rows", "detected_us", "how", "traces")
_OF_EVENTS = ("aliases", "sequences")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchTable:
    """Matches or partial matches as columns.

    The events of a match lie between two ``ends``, in the order of binding. ``rows`` has the row of the batch at which
    each match was emitted, or -1 if the passing of time decided the match. ``detected_us`` is the time at which the
    last condition was decided. ``how`` is a key of ``DECIDED_BY``. ``aliases`` are alias numbers of the pattern.
    """

    patterns: NDArray[np.int32]
    rows: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    ends: NDArray[np.int64]
    how: NDArray[np.int8]
    traces: NDArray[np.int32]
    aliases: NDArray[np.int32]
    sequences: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[: len(self)]

    def chosen(self, keep: NDArray[np.bool_]) -> MatchTable:
        sizes = self.ends - self.starts
        bound = np.repeat(keep, sizes)
        columns = {name: getattr(self, name)[keep] for name in _OF_MATCHES}
        columns |= {name: getattr(self, name)[bound] for name in _OF_EVENTS}
        return MatchTable(**columns, ends=np.cumsum(sizes[keep]))


NO_MATCHES = zeros_of(MatchTable, 0)


def of_runs(matches: MatchTable, numbers: NDArray[np.int32], aliases: NDArray[np.int32]) -> MatchTable:
    """Return matches of the run engine with the lane's pattern numbers, and with alias numbers for atoms.

    ``numbers`` has the lane's number for each pattern number of the engine. ``aliases`` (patterns, atoms) has the alias
    number of each atom.
    """
    owners = np.repeat(matches.patterns, np.diff(matches.ends, prepend=0))
    return replace(
        matches,
        patterns=numbers[matches.patterns] if len(numbers) else matches.patterns,
        aliases=aliases[owners, matches.aliases] if len(owners) else matches.aliases,
    )


def without_repeats(table: MatchTable, patterns: Sequence[int]) -> MatchTable:
    """Return the table without duplicate matches. Only the automata of ``patterns`` may find a match more than once."""
    if len(table) < 2 or not len(patterns):
        return table
    is_repeating = np.zeros(max(*patterns, int(table.patterns.max())) + 1, np.bool_)
    is_repeating[patterns] = True
    places = np.flatnonzero(is_repeating[table.patterns])
    if len(places) < 2:
        return table
    starts = table.starts[places]
    sizes = table.ends[places] - starts
    bound, ends = ragged_places(starts, sizes), np.cumsum(sizes)
    aliases, sequences = table.aliases[bound].astype(np.int64), table.sequences[bound]
    words = (sequences - sequences.min()) * (aliases.max() + 1) + aliases
    totals = np.add.reduceat(words, ends - sizes)  # rarely equal, so few matches are compared event by event
    if len(distinct(totals)) == len(totals):
        return table
    order = ragged_order([table.patterns[places], totals], ascending_words(words, ends), ends)
    keep = np.ones(len(table), np.bool_)
    keep[places[order.rows[order.repeats]]] = False
    return table.chosen(keep)


def joined(tables: Sequence[MatchTable]) -> MatchTable:
    """Return the matches of all tables as one table."""
    tables = [table for table in tables if len(table)] or [NO_MATCHES]
    if len(tables) == 1:
        return tables[0]
    offsets = np.cumsum([0, *(len(table.sequences) for table in tables)])
    ends = [table.ends + offset for table, offset in zip(tables, offsets, strict=False)]
    names = (*_OF_MATCHES, *_OF_EVENTS)
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
    return MatchTable(**columns, ends=np.concatenate(ends))

"""The bound events of matches: ids, times and keys, looked up for all matches of a table at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from nfa.conditions.predicates import attributes_of
from nfa.conditions.projection import BoundEvent
from nfa.conditions.table_rows import split_names
from nfa.registered import RunningPattern
from nfa.results.event_store import StoredEvents, shown_columns
from nfa.results.found import MatchTable
from streams import NEVER_US, column_of, shown_texts

_SPARSE = 8  # a longer table, as a multiple of the number of lookups, costs as much as searching


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchColumns:
    """Matches as columns. A match starts with its earliest event and ends with its latest.

    The bound events of a match lie between two ``ends``. They are sorted by the number of their alias in the pattern,
    then as in the log. ``names`` has the distinct ids of events, and ``events`` has indices in ``names``.
    ``detected_us`` is the time at which the last condition was decided. ``how`` is a key of ``found.DECIDED_BY``.
    ``rows`` has the key of each match's table row (FOR EACH ROW) as a JSON object, or an empty text for a match without
    such a row. If no match has a row, ``rows`` is None. In compact columns, ids may be numbers and keys may be a
    dictionary.
    """

    patterns: Sequence[RunningPattern]
    pattern: NDArray[np.int32]
    key: pa.Array
    start_us: NDArray[np.int64]
    end_us: NDArray[np.int64]
    detected_us: NDArray[np.int64]
    how: NDArray[np.int8]
    is_deviating: NDArray[np.bool_]
    is_lost: NDArray[np.bool_]
    ends: NDArray[np.int64]
    aliases: NDArray[np.int32]
    events: NDArray[np.intp]
    names: pa.Array
    rows: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.pattern)

    @property
    def ids(self) -> pa.Array:
        return self.names.take(column_of(self.events))

    def parts(self, events: int) -> Iterator[MatchColumns]:
        """Divide the matches into consecutive parts, each with about ``events`` bound events, and yield the parts."""
        number = 0
        while number < len(self):
            first = int(self.ends[number - 1]) if number else 0
            end = max(number + 1, int(np.searchsorted(self.ends, first + events, "right")))
            yield (
                self if end - number == len(self) else self._part(slice(number, end), slice(first, self.ends[end - 1]))
            )
            number = end

    def _part(self, matches: slice, bound: slice) -> MatchColumns:
        names = ("pattern", "key", "start_us", "end_us", "detected_us", "how", "is_deviating", "is_lost")
        return replace(
            self,
            **{name: getattr(self, name)[matches] for name in names},
            ends=self.ends[matches] - bound.start,
            aliases=self.aliases[bound],
            events=self.events[bound],
            rows=None if self.rows is None else self.rows[matches],
        )


@dataclass(frozen=True, kw_only=True)
class BoundEvents:
    """The bound events of a table's matches, with the key and the times of each match.

    ``rows`` has the index in ``events`` of each bound event, sorted by match, alias and log order. ``row_keys`` and
    ``row_values`` describe the table rows of FOR EACH ROW as JSON: their keys, and the columns that patterns read.
    """

    table: MatchTable
    events: StoredEvents
    patterns: Sequence[RunningPattern]
    rows: NDArray[np.intp]
    aliases: NDArray[np.int32]
    keys: pa.Array
    starts_us: NDArray[np.int64]
    ends_us: NDArray[np.int64]
    row_keys: pa.Array | None = None
    row_values: pa.Array | None = None

    @classmethod
    def of(cls, table: MatchTable, events: StoredEvents, patterns: Sequence[RunningPattern]) -> BoundEvents:
        """Look up the bound events of a table's matches in ``events``. These events are sorted by sequence number."""
        rows, aliases, firsts = _rows_of(events.sequences, table.sequences), table.aliases, table.starts
        order = _by_alias(table, rows)
        if order is not None:
            rows, aliases = rows[order], aliases[order]
        starts_us, ends_us = _spans(events.times_us, rows, table)
        keys = events.columns.column("key").take(column_of(rows[firsts]))
        has_rows = any(pattern.query.pattern.rows is not None for pattern in patterns)
        key, row_keys, row_values = split_names(keys) if has_rows else (keys, None, None)
        return cls(
            table=table,
            events=events,
            patterns=patterns,
            rows=rows,
            aliases=aliases,
            keys=key,
            starts_us=starts_us,
            ends_us=ends_us,
            row_keys=row_keys,
            row_values=row_values,
        )

    def members(self) -> Iterator[tuple[RunningPattern, dict[str, Any]]]:
        """Yield the pattern of each match with the members that Match, Timeout and Correction have in common.

        Bindings have their aliases in the order of the text. ``row`` is None if the pattern has no FOR EACH ROW.
        """
        ids = shown_texts(self.events.columns.column("id").take(column_of(self.rows))).to_pylist()
        numbers, ends, aliases = self.table.patterns.tolist(), self.table.ends.tolist(), self.aliases.tolist()
        rows = [None] * len(ends) if self.row_keys is None else map(orjson.loads, self.row_keys.to_pylist())
        first = 0
        for number, end, key, row in zip(numbers, ends, shown_texts(self.keys).to_pylist(), rows, strict=True):
            pattern = self.patterns[number]
            bindings = _bindings(pattern.automaton.aliases, aliases[first:end], ids[first:end])
            first = end
            shared = {"pattern": pattern.name, "version": pattern.version, "key": key}
            yield pattern, {**shared, "bindings": bindings, "row": row}

    def read(self, number: int) -> Mapping[str, list[BoundEvent]]:
        """Return a match's events by alias, with their attributes."""
        pattern = self.patterns[self.table.patterns[number]]
        bound = slice(self.table.ends[number - 1] if number else 0, self.table.ends[number])
        events: dict[str, list[BoundEvent]] = {}
        for alias, row in zip(self.aliases[bound].tolist(), self.rows[bound].tolist(), strict=True):
            events.setdefault(pattern.automaton.aliases[alias], []).append(self._read[row])
        rows = pattern.query.pattern.rows
        if rows is not None and self.row_values is not None:
            values = orjson.loads(self.row_values[number].as_py())
            events[rows.alias] = [BoundEvent("", "", NEVER_US, self.keys[number].as_py(), values)]
        return events

    @cached_property
    def _read(self) -> list[BoundEvent]:
        """Return all events as values. Each is converted once, because several matches usually bind the same event."""
        text_columns = shown_columns(self.events.columns)
        if self.row_keys is not None:
            text_columns = text_columns.set_column(1, "key", split_names(text_columns.column("key"))[0])
        columns = [column.to_pylist() for column in text_columns.columns]
        return [
            BoundEvent(name, kind, time_us, key, attributes_of(data) if data else {})
            for name, key, kind, data, time_us in zip(*columns, self.events.times_us.tolist(), strict=True)
        ]


def _bindings(names: Sequence[str], aliases: list[int], ids: list[str]) -> dict[str, tuple[str, ...]]:
    if len(set(aliases)) == len(aliases):
        return {names[alias]: (name,) for alias, name in zip(aliases, ids, strict=True)}
    bindings: dict[str, list[str]] = {}
    for alias, name in zip(aliases, ids, strict=True):
        bindings.setdefault(names[alias], []).append(name)
    return {alias: tuple(bound) for alias, bound in bindings.items()}


def _rows_of(values: NDArray[np.int64], lookups: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the index of each lookup in ``values``, which must be sorted and contain all lookups."""
    reach = int(values[-1] - values[0]) + 1 if len(values) else 0
    if not 0 < reach <= _SPARSE * len(lookups):
        return np.searchsorted(values, lookups)
    rows = np.empty(reach, np.intp)
    rows[values - values[0]] = np.arange(len(values))
    indices: NDArray[np.intp] = rows[lookups - values[0]]
    return indices


def _by_alias(table: MatchTable, rows: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Return the order that sorts bound events by match, alias and row, or None if they are already sorted."""
    if not len(table):
        return None
    rises = table.aliases[1:] > table.aliases[:-1]
    rises[table.ends[:-1] - 1] = True
    if not rises.all():
        rises |= (table.aliases[1:] == table.aliases[:-1]) & (rows[1:] > rows[:-1])
    if rises.all():
        return None
    return np.lexsort((rows, table.aliases, np.repeat(np.arange(len(table)), table.ends - table.starts)))


def _spans(
    times_us: NDArray[np.int64], rows: NDArray[np.intp], table: MatchTable
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if not len(table):
        none = np.zeros(0, np.int64)
        return none, none
    if np.all(times_us[1:] >= times_us[:-1]):
        rises = rows[1:] >= rows[:-1]
        rises[table.ends[:-1] - 1] = True
        if rises.all():  # true for most patterns, and ten times as fast as the minimum and maximum
            return times_us[rows[table.starts]], times_us[rows[table.ends - 1]]
    bound_us = times_us[rows]
    return np.minimum.reduceat(bound_us, table.starts), np.maximum.reduceat(bound_us, table.starts)

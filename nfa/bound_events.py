"""What the matches of a table bind: ids, times and keys, looked up for all matches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nfa.conditions.predicates import attributes_of
from nfa.event_store import StoredEvents
from nfa.found import MatchTable
from nfa.registered import RegisteredPattern
from streams import Event


@dataclass(frozen=True, slots=True)
class BoundEvents:
    """Bound events by match.

    Attributes:
        patterns: Of each match.
        keys: Of each match: the correlation key of its trace.
        starts_us: Of each match: the time of its earliest event.
        ends_us: The time of its latest.
    """

    patterns: list[RegisteredPattern]
    keys: list[str]
    starts_us: list[int]
    ends_us: list[int]
    _borders: list[int]
    _aliases: list[int]  # of the events of each match in the order of the text, those of an alias in that of the log
    _ids: list[str]
    _rows: list[int]
    _events: StoredEvents

    @classmethod
    def of(cls, table: MatchTable, events: StoredEvents, patterns: Sequence[RegisteredPattern]) -> BoundEvents:
        """What the matches of a table bind.

        Args:
            table: The matches.
            events: All that they bind, ascending by sequence number.
            patterns: By pattern number.
        """
        rows, sizes = np.searchsorted(events.sequences, table.sequences), table.ends - table.starts
        order = np.lexsort((rows, table.aliases, np.repeat(np.arange(len(table)), sizes)))
        rows, times_us, firsts = rows[order], events.times_us[rows[order]], table.starts
        names = events.columns.select(["id", "key"])
        return cls(
            patterns=[patterns[number] for number in table.patterns.tolist()],
            keys=names.column("key").take(pa.array(rows[firsts])).to_pylist(),
            starts_us=np.minimum.reduceat(times_us, firsts).tolist() if len(table) else [],
            ends_us=np.maximum.reduceat(times_us, firsts).tolist() if len(table) else [],
            _borders=[0, *table.ends.tolist()],
            _aliases=table.aliases[order].tolist(),
            _ids=names.column("id").take(pa.array(rows)).to_pylist(),
            _rows=rows.tolist(),
            _events=events,
        )

    def bindings(self, number: int) -> dict[str, tuple[str, ...]]:
        """Ids of a match's events by alias, aliases in the order of the text."""
        names, first, end = self.patterns[number].automaton.aliases, self._borders[number], self._borders[number + 1]
        aliases = self._aliases[first:end]
        if len(set(aliases)) == len(aliases):
            return {names[alias]: (name,) for alias, name in zip(aliases, self._ids[first:end], strict=True)}
        found: dict[str, list[str]] = {}
        for alias, name in zip(aliases, self._ids[first:end], strict=True):
            found.setdefault(names[alias], []).append(name)
        return {alias: tuple(ids) for alias, ids in found.items()}

    def events(self, number: int) -> Mapping[str, list[Event]]:
        """A match's events by alias, with their attributes."""
        names = self.patterns[number].automaton.aliases
        found: dict[str, list[Event]] = {}
        for place in range(self._borders[number], self._borders[number + 1]):
            found.setdefault(names[self._aliases[place]], []).append(self._event(self._rows[place]))
        return found

    def _event(self, row: int) -> Event:
        event = {name: self._events.columns.column(name)[row].as_py() for name in ("id", "type", "key", "data")}
        return Event(
            id=event["id"],
            type=event["type"],
            time_us=int(self._events.times_us[row]),
            key=event["key"],
            data=attributes_of(event["data"]) if event["data"] else {},
        )

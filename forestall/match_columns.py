"""Matches as one table, with a row per match, bound events as lists of ids, and RETURN values as typed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from nfa import DECIDED_BY, Attribute, LaneOutput, MatchColumns, Pattern, ValueKind, atoms_of, kind_of_value
from streams import column_of, numbers_of, time_column
from streams.tables import Lookup

KindOf: TypeAlias = Callable[[Attribute | Lookup], ValueKind]
_TIME = pa.timestamp("us", tz="UTC")
FIXED = pa.schema(
    [
        ("pattern", pa.string()),
        ("key", pa.string()),
        ("start", _TIME),
        ("end", _TIME),
        ("detected_at", _TIME),
        ("decided_by", pa.string()),
        ("deviating", pa.bool_()),
        ("would_be_lost", pa.bool_()),
    ]
)
"""The columns that all matches have."""

_TYPES: Mapping[ValueKind, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "null": pa.string(),
    "any": pa.string(),
}


@dataclass(frozen=True, slots=True)
class MatchForm:
    """The form of a table of matches: ``FIXED`` columns, then the columns of RETURN, then a column for each alias.

    If a column of RETURN or of an alias has the name of an earlier column, underscores are appended to its name.

    Attributes:
        returns: The names in RETURN, in the order of the schema.
        aliases: The aliases, in the order of the schema.
        event: The type of event ids.
        has_rows: Whether a pattern has FOR EACH ROW, so that matches name their row.
    """

    schema: pa.Schema
    returns: Sequence[str]
    aliases: Sequence[str]
    event: pa.DataType
    has_rows: bool

    @classmethod
    def of(cls, patterns: Sequence[Pattern], kind_of: KindOf, event: pa.DataType) -> MatchForm:
        """Return the form of the table of matches for the given patterns. ``event`` is the Arrow type of event ids."""
        fields, returns = list(FIXED), _return_kinds(patterns, kind_of)
        has_rows = any(pattern.rows is not None for pattern in patterns)
        fields += [pa.field("row", pa.string())] if has_rows else []
        aliases = dict.fromkeys(atom.alias for pattern in patterns for atom in atoms_of(pattern.event))
        for name, kind in returns.items():
            fields.append(pa.field(free_name(name, [field.name for field in fields]), _TYPES[kind]))
        for alias in aliases:
            fields.append(pa.field(free_name(alias, [field.name for field in fields]), pa.list_(event)))
        return cls(pa.schema(fields), tuple(returns), tuple(aliases), event, has_rows)

    def table(self, lanes: Sequence[LaneOutput]) -> pa.Table:
        """Return the matches as a table, sorted by end time.

        ``lanes`` are the outputs of per-key matchers, in log order.
        """
        return self.coded_table(lanes).cast(self.schema)

    def coded_table(self, lanes: Sequence[LaneOutput]) -> pa.Table:
        """Return the same table as ``table``, with patterns and keys as dictionary columns (Arrow)."""
        parts = [self._part(lane) for lane in lanes if len(lane.matches)]
        if not parts:
            return self.schema.empty_table()
        table = pa.concat_tables(parts).unify_dictionaries()
        ends_us = np.concatenate([numbers_of(chunk) for chunk in table.column("end").chunks])
        is_ordered = np.all(ends_us[1:] >= ends_us[:-1])
        return table if is_ordered else table.take(column_of(np.argsort(ends_us, kind="stable")))

    def _part(self, lane: LaneOutput) -> pa.Table:
        matches = lane.columns_of_matches(is_compact=True)
        columns = [*_fixed(matches), *self._row(matches), *self._returned(lane), *self._bound(matches)]
        return pa.table(columns, names=self.schema.names)

    def _row(self, matches: MatchColumns) -> Iterator[pa.Array]:
        """Yield the column of the rows of FOR EACH ROW, if a pattern has it. Matches of other patterns have null."""
        if self.has_rows and matches.rows is not None:
            yield pc.if_else(pc.equal(matches.rows, ""), pa.scalar(None, pa.string()), matches.rows)
        elif self.has_rows:
            yield pa.nulls(len(matches), pa.string())

    def _returned(self, lane: LaneOutput) -> Iterator[pa.Array]:
        if not self.returns:
            return
        values = list(lane.values_of_returns()) or [{}] * len(lane.matches)
        for place, name in enumerate(self.returns, len(FIXED) + self.has_rows):
            yield typed_column([returned.get(name) for returned in values], self.schema.field(place).type)

    def _bound(self, matches: MatchColumns) -> Iterator[pa.Array]:
        """Yield a column of event ids for each alias. If a match binds no event to the alias, its value is null."""
        places = {alias: place for place, alias in enumerate(self.aliases)}
        widest = max(len(pattern.automaton.aliases) for pattern in matches.patterns)
        table = np.full((len(matches.patterns), widest), -1, np.int32)
        for row, pattern in zip(table, matches.patterns, strict=True):
            row[: len(pattern.automaton.aliases)] = [places[alias] for alias in pattern.automaton.aliases]
        if len(table) == 1 and np.all(table == np.arange(widest)):
            alias_of = matches.aliases
        else:
            alias_of = table[np.repeat(matches.pattern, np.diff(matches.ends, prepend=0)), matches.aliases]
        ids = matches.names.cast(self.event)
        width = len(self.aliases)
        if len(alias_of) == width * len(matches) and np.all(alias_of.reshape(-1, width) == np.arange(width)):
            once = column_of(np.arange(len(matches) + 1, dtype=np.int32))  # one event per alias
            for events in matches.events.reshape(-1, width).T:
                yield pa.ListArray.from_arrays(once, ids.take(column_of(events)))
            return
        for place in range(width):
            is_own = alias_of == place
            offsets = np.zeros(len(matches) + 1, np.int32)
            np.take(np.cumsum(is_own, dtype=np.int32), matches.ends - 1, out=offsets[1:])
            is_none = offsets[1:] == offsets[:-1]
            values = ids.take(column_of(matches.events[is_own]))
            mask = column_of(is_none) if is_none.any() else None
            yield pa.ListArray.from_arrays(column_of(offsets), values, mask=mask)


def _fixed(matches: MatchColumns) -> Iterator[pa.Array]:
    names = pa.array([pattern.name for pattern in matches.patterns])
    yield pa.DictionaryArray.from_arrays(column_of(matches.pattern), names, safe=False)
    yield matches.key if pa.types.is_dictionary(matches.key.type) else matches.key.dictionary_encode()
    yield from map(time_column, (matches.start_us, matches.end_us, matches.detected_us))
    reasons = [DECIDED_BY[code] for code in range(len(DECIDED_BY))]
    yield pa.array(reasons, pa.string()).take(column_of(matches.how))
    yield column_of(matches.is_deviating)
    yield column_of(matches.is_lost)


def typed_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert plain values to a column. A text column has JSON for values of other types."""
    if pa.types.is_string(kind):
        values = [
            value if value is None or isinstance(value, str) else orjson.dumps(value).decode() for value in values
        ]
    elif pa.types.is_float64(kind):
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, kind)


def _return_kinds(patterns: Sequence[Pattern], kind_of: KindOf) -> dict[str, ValueKind]:
    kinds: dict[str, ValueKind] = {}
    for pattern in patterns:
        for column in pattern.returns:
            kind = kind_of_value(column.expression, kind_of)
            kinds[column.name] = kind if kinds.get(column.name, kind) == kind else "any"
    return kinds


def free_name(name: str, column_names: Sequence[str]) -> str:
    """Return a name with enough underscores appended that no other column has it."""
    return free_name(f"{name}_", column_names) if name in column_names else name

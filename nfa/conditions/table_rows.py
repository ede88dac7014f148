"""The rows of a table for patterns with FOR EACH ROW, and the index that finds the rows that an event concerns.

A conjunct ``attribute = t.column`` of a step is a filter whose constants are the values of the column (ADR 30). With
such conjuncts, an event concerns the rows whose columns equal its attributes. Without them, the event concerns every
row if a match can begin at the step, and otherwise the rows that have open traces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nfa.conditions.filter_index import NO_CELL, FilterIndex
from nfa.conditions.filters import Constant, Dimension
from nfa.conditions.predicates import BatchColumns, evaluate, leaf_of, leaves_of
from nfa.conditions.residuals import all_of, conjuncts_of, split_condition
from nfa.conditions.values import Values
from nfa.syntax import (
    Atom,
    Attribute,
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    Node,
    Path,
    Repeat,
    can_be_empty,
    subexpressions,
)
from nfa.syntax import Sequence as Parts
from streams import EventBatch, column_of, key_hash, ragged_places

ROW: Path = ("",)
"""The attribute with the name of the row, in the events of a row's trace. Patterns cannot read this attribute."""

SEPARATOR = "\x1e"  # a character that JSON never contains unescaped
_MOST_EQUALITIES = 3  # maximum number of equalities of one step in the index


def split_names(keys: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Split the keys of traces with table rows into three columns: the event's key, the row's key and the row's values.

    The last two are JSON.
    """
    parts = pc.split_pattern(keys, SEPARATOR, max_splits=2, reverse=True)
    key, row, values = (pc.list_element(parts, place) for place in range(3))
    return key, row, values


def row_keys(names: pa.Array) -> pa.Array:
    """Return the keys of table rows, as JSON, from their names (see ``TableRows.names``)."""
    return pc.list_element(pc.split_pattern(names, SEPARATOR, max_splits=1), 0)


class RowsRead(NamedTuple):
    """The table, the row's alias and the columns that the patterns of a lane (per-key matcher) read."""

    table: str
    alias: str
    columns: tuple[str, ...]

    @property
    def keys(self) -> tuple[Path, ...]:
        """The keys of the lane: one artificial path, which distinguishes the lane from others.

        The first name of the path is empty. ``WHERE [..]`` cannot contain such a path.
        """
        return (("", *self[:2], *self.columns),)

    @classmethod
    def of_keys(cls, keys: Collection[Path]) -> Self | None:
        """Return the table that a lane with these keys reads, or None if the lane reads no rows."""
        for first, *rest in keys:
            if not first:
                table, alias, *columns = rest
                return cls(table, alias, tuple(columns))
        return None


@dataclass(frozen=True, eq=False)
class TableRows:
    """The rows of one version of a table, with the columns that patterns read.

    Attributes:
        names: For each row, a text that identifies its content. The text joins two JSON objects: the key of the row,
            with columns sorted by name, and the values that patterns read.
        hashes: For each row, the hash of its name. Rows with equal keys and values have equal hashes in all versions.
    """

    names: pa.Array
    hashes: NDArray[np.uint64]
    columns: Mapping[str, pa.Array]

    @classmethod
    def of(cls, rows: pa.RecordBatch, key: Sequence[str], read: Sequence[str]) -> Self:
        """Build the rows of a table with the columns ``read``. A column that the table lacks is null."""
        columns = {
            name: rows.column(name) if name in rows.schema.names else pa.nulls(len(rows), pa.string()) for name in read
        }
        keys = rows.select(list(key)).to_pylist()
        values = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)).to_pylist() or [{}] * len(keys)
        names = [
            f"{orjson.dumps(row_key, option=orjson.OPT_SORT_KEYS).decode()}{SEPARATOR}{orjson.dumps(members).decode()}"
            for row_key, members in zip(keys, values, strict=True)
        ]
        hashes = np.array([key_hash(name) for name in names], np.uint64)
        return cls(pa.array(names, pa.string()), hashes, columns)

    @classmethod
    def none(cls, read: Sequence[str]) -> Self:
        nothing = pa.array([], pa.string())
        return cls(nothing, np.zeros(0, np.uint64), dict.fromkeys(read, nothing))

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.hashes)

    def numbers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return, for each hash, the index of the row whose name has this hash, or -1 if there is no such row."""
        if not len(self):
            return np.full(len(hashes), -1, np.int64)
        rows = self._order[np.searchsorted(self.hashes, hashes, sorter=self._order) % len(self)]
        return np.where(self.hashes[rows] == hashes, rows, -1)


@dataclass(frozen=True, slots=True)
class _Probe:
    """A test that finds the rows that an event concerns at a step.

    ``equal`` has event attributes, each with the column of the row that must be equal. If ``equal`` is empty and
    ``opens`` is true, an event concerns every row. If ``equal`` is empty and ``opens`` is false, the event concerns
    only rows with open traces. ``test`` is a further condition on event and row, or None.
    """

    types: tuple[str, ...] | None
    equal: tuple[tuple[Dimension, str], ...]
    opens: bool
    test: Expression | None


@dataclass(frozen=True, slots=True)
class _Join:
    """The rows that events of one type concern at a step, grouped by the values of the events.

    The filter index gives a cell for each value of an event. These cells are combined to one number. ``cells`` has all
    such numbers, sorted. The rows of a number are a range of ``rows``, and ``ends`` has the end of each range.
    """

    code: int
    slots: tuple[int, ...]
    cells: NDArray[np.int64]
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]


class Concerned(NamedTuple):
    """Pairs of an event and a row that the event concerns, both given by their indices."""

    events: NDArray[np.int64]
    rows: NDArray[np.int64]


class RowIndex:
    """Finds the rows of a table that an event concerns: the rows whose traces the event may affect.

    Args:
        patterns: The patterns' events, as ``over_events`` rewrites them.
        row: Alias of the row, which all patterns share.
        follows: Types whose events concern all rows with open traces, or None for all types. The index adds the types
            of some steps. These steps have no equality with a column, and can only be reached in open traces.
    """

    def __init__(self, rows: TableRows, patterns: Collection[Node], row: str, follows: Collection[str] | None) -> None:
        self._rows, self._row = rows, row
        probes = [_readable(probe, rows) for event in patterns for probe in _probes(event, row)]
        open_steps = [probe for probe in probes if not probe.equal and not probe.opens]
        self._follows: frozenset[str] | None = None
        if follows is not None and all(probe.types is not None for probe in open_steps):
            self._follows = frozenset(follows).union(*(probe.types or () for probe in open_steps))
        self._every = list(dict.fromkeys(probe for probe in probes if not probe.equal and probe.opens))
        joined = dict.fromkeys(probe for probe in probes if probe.equal)
        self._codes = {
            name: code for code, name in enumerate(sorted({name for probe in joined for name in probe.types or ()}))
        }
        coded_probes = [(code, probe) for probe in joined for code in self._codes_of(probe)]
        constants = {column: _constants(rows.columns[column]) for _, probe in coded_probes for _, column in probe.equal}
        self._index = FilterIndex(
            (code, dimension, [value for value in constants[column] if value is not None])
            for code, probe in coded_probes
            for dimension, column in probe.equal
        )
        joins: dict[tuple[int, Any], _Join] = {}
        for code, probe in coded_probes:
            if (code, probe.equal) not in joins:
                joins[code, probe.equal] = self._join(code, probe, constants)
        self._joins = [(joins[code, probe.equal], probe.test) for code, probe in coded_probes]

    @property
    def most_rows(self) -> int:
        """The greatest number of rows that an event can concern at a step."""
        row_counts = [int(np.diff(join.ends, prepend=0).max(initial=0)) for join, _ in self._joins]
        return max([*row_counts, len(self._rows) if self._every else 0])

    def concerned(
        self,
        batch: EventBatch,
        reader: BatchColumns,
        open_pairs: tuple[NDArray[np.uint64], NDArray[np.int64]],
        ending: NDArray[np.intp],
    ) -> Concerned:
        """Return the rows that each event concerns, sorted by event, then by row. ``reader`` reads the same batch.

        ``open_pairs`` has the hashed correlation key and the row of each open trace. An event in ``ending`` concerns
        all rows that have an open trace with the event's key.
        """
        parts = [*self._rows_by_values(batch, reader), *self._every_row(batch, reader)]
        if len(following := np.union1d(self._following(batch), ending)):
            parts.append(_with_open_traces(batch.key_hashes, following, open_pairs, parts))
        if not parts:
            return Concerned(np.zeros(0, np.int64), np.zeros(0, np.int64))
        if len(parts) == 1:
            return parts[0]
        pairs = np.concatenate([part.events * len(self._rows) + part.rows for part in parts])
        pairs.sort(kind="stable")  # a stable sort is fast here, because each part is ascending
        is_first = np.ones(len(pairs), np.bool_)
        is_first[1:] = pairs[1:] != pairs[:-1]
        pairs = pairs[is_first]
        return Concerned(*np.divmod(pairs, max(1, len(self._rows))))

    def _rows_by_values(self, batch: EventBatch, reader: BatchColumns) -> Iterator[Concerned]:
        lookup = np.array([self._codes.get(name, -1) for name in [*batch.type_names, ""]], np.int32)
        types = lookup[batch.type_codes]
        if not self._joins or not (types >= 0).any():
            return
        cells = self._index.place(batch, types, reader)
        for join, test in self._joins:
            events = np.flatnonzero(types == join.code)
            keys = cells[list(join.slots)][:, events].astype(np.int64)
            events, keys = events[(keys != NO_CELL).all(axis=0)], keys[:, (keys != NO_CELL).all(axis=0)]
            places = np.searchsorted(join.cells, self._combined(keys))
            is_known = places < len(join.cells)
            is_known[is_known] = join.cells[places[is_known]] == self._combined(keys[:, is_known])
            ends = join.ends[places[is_known]]
            begins = np.concatenate([np.zeros(1, np.int64), join.ends])[places[is_known]]
            rows = join.rows[ragged_places(begins, ends - begins)]
            yield self._passing(test, reader, Concerned(np.repeat(events[is_known], ends - begins), rows))

    def _every_row(self, batch: EventBatch, reader: BatchColumns) -> Iterator[Concerned]:
        for probe in self._every:
            events = np.arange(len(batch)) if probe.types is None else _events_of(batch, probe.types)
            if len(events):
                rows = np.tile(np.arange(len(self._rows)), len(events))
                yield self._passing(probe.test, reader, Concerned(np.repeat(events, len(self._rows)), rows))

    def _passing(self, test: Expression | None, reader: BatchColumns, pairs: Concerned) -> Concerned:
        if test is None or not len(pairs.events):
            return pairs
        leaves = set(leaves_of(test))
        row_leaves = {leaf for leaf in leaves if isinstance(leaf, tuple) and leaf[:1] == (self._row,)}
        columns = reader.read(pairs.events, leaves - row_leaves)
        for leaf in row_leaves:
            columns[leaf] = Values.of_arrow(self._rows.columns[leaf[1]].take(column_of(pairs.rows)))
        passes = evaluate(test, columns, len(pairs.events)).is_true
        return Concerned(pairs.events[passes], pairs.rows[passes])

    def _following(self, batch: EventBatch) -> NDArray[np.intp]:
        return np.arange(len(batch)) if self._follows is None else _events_of(batch, self._follows)

    def _codes_of(self, probe: _Probe) -> list[int]:
        return [self._codes[name] for name in probe.types or ()]

    def _join(self, code: int, probe: _Probe, constants: Mapping[str, Sequence[Constant | None]]) -> _Join:
        cells = np.zeros((len(probe.equal), len(self._rows)), np.int64)
        for place, (dimension, column) in enumerate(probe.equal):
            column_constants = constants[column]
            cells[place] = [
                NO_CELL if value is None else self._index.cell(code, dimension, value) for value in column_constants
            ]
        rows = np.flatnonzero((cells != NO_CELL).all(axis=0))
        combined = self._combined(cells[:, rows])
        order = np.argsort(combined, kind="stable")
        distinct, sizes = np.unique(combined, return_counts=True)
        slots = tuple(self._index.slot(code, dimension) for dimension, _ in probe.equal)
        return _Join(code, slots, distinct, np.cumsum(sizes), rows[order])

    def _combined(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Combine each column of ``cells`` to one number. Equal columns get equal numbers."""
        numbers = np.zeros(cells.shape[1], np.int64)
        for row in cells:
            numbers = numbers * self._index.size + row
        return numbers


def _with_open_traces(
    homes: NDArray[np.uint64],
    events: NDArray[np.intp],
    open_pairs: tuple[NDArray[np.uint64], NDArray[np.int64]],
    parts: Sequence[Concerned],
) -> Concerned:
    """Pair each event with the rows that have an open trace of the event's key.

    ``open_pairs`` has the traces that were open before the batch. The pairs in ``parts`` may open traces in the batch,
    so they count as open from their events on.
    """
    keys = np.concatenate([open_pairs[0], *(homes[part.events] for part in parts)])
    rows = np.concatenate([open_pairs[1], *(part.rows for part in parts)])
    since = np.concatenate([np.full(len(open_pairs[0]), -1), *(part.events for part in parts)])
    order = np.lexsort((since, rows, keys))
    keys, rows, since = keys[order], rows[order], since[order]
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
    keys, rows, since = keys[is_first], rows[is_first], since[is_first]
    begins = np.searchsorted(keys, homes[events], "left")
    sizes = np.searchsorted(keys, homes[events], "right") - begins
    pairs = Concerned(np.repeat(events, sizes), rows[ragged_places(begins, sizes)])
    is_open = pairs.events > since[ragged_places(begins, sizes)]
    return Concerned(pairs.events[is_open], pairs.rows[is_open])


def _events_of(batch: EventBatch, types: Collection[str]) -> NDArray[np.intp]:
    is_wanted = np.array([name in types for name in [*batch.type_names, ""]], np.bool_)
    return np.flatnonzero(is_wanted[batch.type_codes])


def _readable(probe: _Probe, rows: TableRows) -> _Probe:
    """Return a probe with at most three equalities, on the columns with the most distinct values.

    Equalities on boolean columns are dropped, because these columns are not indexed.
    """
    equalities = [equality for equality in probe.equal if not pa.types.is_boolean(rows.columns[equality[1]].type)]
    ranked = sorted(equalities, key=lambda equality: -len(rows.columns[equality[1]].unique()))
    return replace(probe, equal=tuple(ranked[:_MOST_EQUALITIES]))


def _constants(column: pa.Array) -> list[Constant | None]:
    """Return the values of a column as constants of a filter index.

    Numbers become float64. Large integers that differ may become equal, so that the index finds more rows than
    match. The condition itself is tested afterwards.
    """
    return [
        None if value is None else value if isinstance(value, str) else float(value) + 0.0
        for value in column.to_pylist()
    ]


def dispatched_steps(event: Node, row: str) -> Iterator[tuple[Atom, tuple[str, ...], bool]]:
    """Yield each step of a pattern as (step, columns, flag). The columns are those by which the index finds rows.

    The flag matters only for a step without columns. If it is true, events of the step concern every row. Otherwise
    they concern only rows with open traces.
    """
    for atom, opens in _steps(event, follows=False):
        columns = () if atom.is_any_type else tuple(column for _, column in _equalities(atom, row))
        yield atom, columns, opens


def _probes(event: Node, row: str) -> Iterator[_Probe]:
    for atom, opens in _steps(event, follows=False):
        types = None if atom.is_any_type else atom.types
        equal = [] if types is None else list(_equalities(atom, row))
        unary, _ = split_condition(atom)
        tests = [] if unary is None else [conjunct for conjunct in conjuncts_of(unary) if _is_test(conjunct, row)]
        yield _Probe(types, tuple(equal), opens, all_of(tests))


def _is_test(conjunct: Expression, row: str) -> bool:
    """Check whether a conjunct should be tested on each pair of an event and a row.

    The engine tests all conjuncts again.
    """
    computed = [leaf for leaf in leaves_of(conjunct) if isinstance(leaf, Call)]
    is_answered = next(_equality(conjunct, row), None) is not None
    return not is_answered and not any(_reads_row(leaf, row) for leaf in computed)


def _equalities(atom: Atom, row: str) -> Iterator[tuple[Dimension, str]]:
    unary, _ = split_condition(atom)
    for conjunct in () if unary is None else conjuncts_of(unary):
        yield from _equality(conjunct, row)


def _equality(conjunct: Expression, row: str) -> Iterator[tuple[Dimension, str]]:
    if isinstance(conjunct, Comparison) and conjunct.operator == "=":
        for column, other in ((conjunct.left, conjunct.right), (conjunct.right, conjunct.left)):
            if _is_column(column, row) and isinstance(column, Attribute) and not _reads_row(other, row):
                leaf = leaf_of(other)
                if leaf is not None:
                    yield Dimension(leaf, "="), column.path[1]


def _is_column(expression: Expression, row: str) -> bool:
    return isinstance(expression, Attribute) and expression.of is None and expression.path[:1] == (row,)


def _reads_row(expression: Expression, row: str) -> bool:
    return any(_is_column(part, row) for part in subexpressions(expression))


def _steps(node: Node, *, follows: bool) -> Iterator[tuple[Atom, bool]]:
    """Yield (step, flag) for each step. The flag is true if a trace without bound events can reach the step."""
    match node:
        case Atom():
            yield node, not follows
        case Repeat():
            yield from _steps(node.of, follows=follows)
            if node.until is not None:
                yield node.until, False
        case Parts():
            for item in node.items:
                if item.negated is not None:
                    yield item.negated, not follows
                if item.of is not None:
                    yield from _steps(item.of, follows=follows)
                    follows = follows or not can_be_empty(item.of)
        case Conjunction() | Disjunction():
            for part in node.parts:
                yield from _steps(part, follows=follows)

"""Events of a stream as rows of an aggregate, also on their way to the shard of their group.

Aggregates and patterns know nothing of each other: conditions and arguments are read here, in the condition language of
patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from aggregates import (
    COUNTS,
    ENDS,
    TEXT,
    AggregateBody,
    Bound,
    EventColumns,
    EventRows,
    Holds,
    Row,
    Scalar,
    ScalarColumn,
    group_hash,
    group_text,
)
from nfa import EventExpression, PatternRefused, columns_of_events, parse_event_expression
from shards.errors import OperatorRefused
from streams import (
    RETRACTED,
    EventBatch,
    StreamDeclaration,
    attribute_path,
    format_time,
    hex_texts,
    joined_texts,
    key_of,
    pieces_of,
    texts_of,
)
from streams.tables import Lookup, Tables

_ALL = "all"
_OF_TEXTS = ("distinct", "first", "last", "min", "max")
_MOVED, _REVOCABLE = "event", "revocable"  # types of re-keyed events
_MOST_HASHES = 1_000_000
_PLACED = 16  # characters in front of the id of a re-keyed event


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads what an aggregate needs of events.

    Attributes:
        body: The aggregate.
    """

    body: AggregateBody
    _where: EventExpression | None
    _by: tuple[EventExpression, ...]
    _arguments: tuple[EventExpression | None, ...]
    _asked: tuple[EventExpression, ...]
    _hashes: dict[Sequence[Scalar], int] = field(default_factory=dict)  # of groups of texts

    @classmethod
    def of(cls, body: AggregateBody) -> EventReader:
        """The reader of an aggregate."""
        return cls(
            body,
            None if body.where is None else _parsed(body.where, "where"),
            tuple(_parsed(_quoted(one), "by") for one in body.attributes),
            tuple(_parsed(one.argument, "values") if one.argument else None for one in body.values),
            tuple(_parsed(_quoted(one), "ask") for one in body.ask),
        )

    @property
    def lookups(self) -> frozenset[Lookup]:
        """The lookups in reference tables, and the columns by which rows are groups."""
        every = [self._where, *self._by, *self._arguments, *self._asked]
        found = {lookup for one in every if one is not None for lookup in one.lookups}
        if (table := self.body.rows_of) is not None:
            found |= {Lookup(table, None, None), *(Lookup(table, name, 1) for name in self.body.by[1:])}
        return frozenset(found)

    def rows(self, batch: EventBatch, declaration: StreamDeclaration) -> EventRows:
        """The events of a batch, and the ends of transactions."""
        return EventRows([row for _, row in self.numbered_rows(batch, declaration)], int(batch.time_us.max()))

    def columns(self, batch: EventBatch, declaration: StreamDeclaration) -> EventColumns:
        """The events of a batch that count, none of which may be retracted, and the ends of transactions."""
        size, columns = len(batch), columns_of_events(batch)
        counts = ~batch.is_ended
        if self._where is not None:
            counts &= self._where.holds(columns, size)
        ops = counts * COUNTS
        if declaration.end_events:
            is_end = np.array([name in declaration.end_events for name in batch.type_names])[batch.type_codes]
            ops += (is_end & ~batch.is_ended) * ENDS
        rows = np.flatnonzero(ops)
        arguments: dict[str, ScalarColumn] = {}
        for value, one in zip(self.body.values, self._arguments, strict=True):
            if one is not None:
                kinds, integers, floats = one.numbers(columns, size)
                found = arguments.get(value.argument) or ScalarColumn(kinds, integers, floats).at(rows)
                if value.function in _OF_TEXTS and found.objects is None and (found.kinds == TEXT).any():
                    texts = one.column(columns, size)
                    found = found._replace(objects=[texts[row] for row in rows.tolist()])
                arguments[value.argument] = found
        ids, keys = (batch.columns.column(name).take(pa.array(rows)) for name in ("id", "key"))
        hashes, by = batch.key_hashes[rows], [keys]
        if self.body.by != ("key",):
            by = [[found[row] for row in rows.tolist()] for found in (one.column(columns, size) for one in self._by)]
            hashes = np.array([self._hash(group) for group in _transposed(by, len(rows))], np.uint64)
        times_us = batch.time_us[rows]
        return EventColumns(
            times_us=times_us,
            hashes=hashes,
            by=by,
            keys=keys,
            key_hashes=batch.key_hashes[rows],
            ids=ids,
            arguments=[arguments[one] for one in self.body.arguments],
            newest_us=int(batch.time_us.max()),
            ops=ops[rows].astype(np.uint8) if declaration.end_events else None,
            shown=_all_shown(batch, rows) if self.body.events else (),
        )

    def _hash(self, group: Sequence[Scalar]) -> int:
        """The hash of a group; only those of texts are kept, as numbers may be equal and have other hashes."""
        known = self._hashes.get(group)
        if known is None:
            known = group_hash(group)
            if all(isinstance(one, str) for one in group):
                if len(self._hashes) >= _MOST_HASHES:
                    self._hashes.clear()
                self._hashes[group] = known
        return known

    def numbered_rows(self, batch: EventBatch, declaration: StreamDeclaration) -> Iterator[tuple[int, Row]]:
        """The events of a batch and the ends of transactions, each with its row in the batch."""
        size, columns = len(batch), columns_of_events(batch)
        counts = [True] * size if self._where is None else self._where.holds(columns, size).tolist()
        groups = _transposed([one.column(columns, size) for one in self._by], size)
        arguments = [[True] * size if one is None else one.column(columns, size) for one in self._arguments]
        ends = [name in declaration.end_events for name in batch.type_names]
        own = batch.columns
        rows = zip(
            batch.time_us.tolist(),
            groups,
            own.column("key").to_pylist(),
            batch.key_hashes.tolist(),
            own.column("id").to_pylist(),
            _transposed(arguments, size),
            batch.type_codes.tolist(),
            counts,
            _transposed([one.column(columns, size) for one in self._asked], size),
            own.column("data").to_pylist() if self.body.events or declaration.derived else [b""] * size,
            strict=True,
        )
        for number, (time_us, group, key, hashed, identity, some, code, does_count, asked, data) in enumerate(rows):
            name = batch.type_names[code]
            if not name:  # the end of a transaction
                yield number, Row(time_us, (), key, hashed, "", (), ends=True)
            elif declaration.derived and name.endswith(RETRACTED):
                yield number, Row(time_us, group, key, hashed, identity, (), None, _retracted(data))
            elif does_count:
                event = _shown(identity, name, time_us, data) if self.body.events else None
                is_revocable = declaration.derived
                yield (
                    number,
                    Row(time_us, group, key, hashed, identity, some, event, "", is_revocable, ends[code], asked),
                )
            elif ends[code]:
                yield number, Row(time_us, (), key, hashed, "", (), ends=True)


def having_of(body: AggregateBody) -> EventExpression | None:
    """The condition over values (None: there is none); refused if it names neither a value nor a member of ``by``."""
    if body.having is None:
        return None
    parsed = _parsed(body.having.text, "having")
    known = {*body.by, *(one.name for one in body.values)}
    known |= {one.name for one in body.having.earlier} | {name for name, _ in body.having.overall}
    if strangers := sorted(parsed.names - known):
        raise OperatorRefused(
            f"having: {', '.join(strangers)} is neither a value nor an attribute in 'by'; these are "
            f"{', '.join(sorted(name for name in known if '(' not in name))}",
            field="having",
        )
    return parsed


def condition_and_bounds(
    body: AggregateBody, tables: Callable[[], Tables | None] = lambda: None
) -> tuple[Holds | None, Sequence[Bound]]:
    """The condition over values, with lookups in ``tables``, and the ranges of values outside which it is not true."""
    parsed = having_of(body)
    if parsed is None:
        return None, ()
    return lambda columns, size: parsed.holds_of(columns, size, tables()), list(parsed.bounds)


def is_moved(body: AggregateBody, declaration: StreamDeclaration) -> bool:
    """Whether the events of a group may be in several shards, so that they have to be brought together."""
    path = attribute_path(declaration.key)
    of_key = {"key"} if not isinstance(path, tuple) else {"key", ".".join(path)}
    return body.is_global or body.rows_of is not None or of_key.isdisjoint(body.by)


def moved_events(rows: Sequence[Row], places: Sequence[int], body: AggregateBody) -> EventBatch:
    """Events on their way to the shard of their group, keyed by the group or its row; ids begin with their place."""
    types = [_REVOCABLE if row.is_revocable else _MOVED for row in rows]
    keys, own_ids = [_key_text(row.group) for row in rows], [row.id for row in rows]
    if body.rows_of is not None:  # an event in several groups is several events
        keys = [_key_text(row.group[:1]) for row in rows]
        own_ids = [f"{row.id}/{key}" for row, key in zip(rows, keys, strict=True)]
    ids = joined_texts([hex_texts(np.array(places, np.uint64)), texts_of(own_ids)])
    return EventBatch.of_columns(
        ids,
        texts_of(types).dictionary_encode(),
        np.array([row.time_us for row in rows], np.int64),
        texts_of([_ALL] * len(rows) if body.is_global else keys),
        pieces_of([orjson.dumps(_form(row)) for row in rows], pa.binary()),
    )


def moved_rows(batch: EventBatch) -> EventRows:
    """The rows of events that were moved."""
    rows = []
    own = batch.columns
    for time_us, key, hashed, identity, name, data in zip(
        batch.time_us.tolist(),
        own.column("key").to_pylist(),
        batch.key_hashes.tolist(),
        own.column("id").to_pylist(),
        own.column("type").to_pylist(),
        own.column("data").to_pylist(),
        strict=True,
    ):
        form: dict[str, Any] = orjson.loads(data)
        group, arguments = tuple(form["group"]), tuple(form.get("arguments", ()))
        event, retracts = form.get("event"), form.get("retracts", "")
        own_id, is_revocable, asked = identity[_PLACED:], name == _REVOCABLE, tuple(form.get("asked", ()))
        rows.append(Row(time_us, group, key, hashed, own_id, arguments, event, retracts, is_revocable, asked=asked))
    return EventRows(rows, int(batch.time_us.max()))


def _form(row: Row) -> dict[str, Any]:
    """What is moved of an event besides its id and time."""
    if row.retracts:
        return {"group": row.group, "retracts": row.retracts}
    shown: dict[str, Any] = {} if row.event is None else {"event": row.event}
    shown |= {"asked": row.asked} if row.asked else {}
    return {"group": row.group, "arguments": row.arguments, **shown}


def _key_text(group: Sequence[Scalar]) -> str:
    """The key of a group: its only value, if that can be a key, or its text."""
    own = key_of(group[0]) if len(group) == 1 else None
    return group_text(group) if own is None else own


def _parsed(text: str, field: str) -> EventExpression:
    try:
        return parse_event_expression(text)
    except PatternRefused as error:
        is_list = field == "values" and "unexpected ','" in error.message
        advice = "; of a list in each event, write sum(sum(items, price))" if is_list else ""
        raise OperatorRefused(f"{field!r} of an aggregate, {text!r}: {error.message}{advice}", field=field) from error


def _quoted(name: str) -> str:
    """An attribute path as a condition names it."""
    return name if name in ("key", "type") else ".".join(f"`{part}`" for part in name.split("."))


def _transposed(columns: Sequence[Sequence[Scalar]], size: int) -> Sequence[tuple[Scalar, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * size


def _all_shown(batch: EventBatch, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    own, codes = batch.columns.take(pa.array(rows)), batch.type_codes[rows].tolist()
    columns = zip(
        own.column("id").to_pylist(),
        [batch.type_names[code] for code in codes],
        batch.time_us[rows].tolist(),
        own.column("data").to_pylist(),
        strict=True,
    )
    return [_shown(*one) for one in columns]


def _retracted(data: bytes) -> str:
    return str(orjson.loads(data).get("retracts", ""))


def _shown(identity: str, name: str, time_us: int, data: bytes) -> dict[str, Any]:
    return {"id": identity, "type": name, "time": format_time(time_us), "data": orjson.loads(data)}

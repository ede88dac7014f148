"""Conversion of events to the columns of an aggregate, and to re-keyed events for the shards of their groups.

The packages of aggregates and of patterns do not know each other. So conditions and arguments, which use the condition
language of patterns, are parsed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from aggregates import (
    COUNTS,
    ENDS,
    RETRACTS,
    TEXT,
    AggregateBody,
    AggregateValue,
    Bound,
    EventColumns,
    Holds,
    InBounds,
    Scalar,
    ScalarColumn,
    group_hash,
    group_text,
    tuples_of,
    values_at,
)
from nfa import EventExpression, PatternRefused, columns_of_events, parse_event_expression
from shards.errors import OperatorRefused
from shards.names_read import NameRead
from streams import (
    ENDED,
    RETRACTED,
    EventBatch,
    StreamDeclaration,
    attribute_path,
    format_time,
    hex_texts,
    joined_texts,
    key_hash,
    key_of,
    pieces_of,
    texts_of,
)
from streams.tables import Lookup, Tables

_ALL = "all"
_OF_TEXTS = ("distinct", "first", "last", "min", "max")
_OF_EVENT = ("first", "last", "min", "max")  # functions that return one of their arguments, which may be of any type
_MOVED, _REVOCABLE = "event", "revocable"  # event types of re-keyed events, before the hash
_OF_READING = ":"  # separates the event type of a re-keyed event from the hash; earlier releases wrote neither
_MOST_HASHES = 1_000_000
_PLACED = 16  # length of the order number at the beginning of a re-keyed event's id


@dataclass(frozen=True, slots=True)
class EventReader:
    """Converts events to the columns that an aggregate needs: times, groups, and the arguments of its values."""

    body: AggregateBody
    _where: EventExpression | None
    _by: tuple[EventExpression, ...]
    _arguments: tuple[EventExpression | None, ...]
    _asked: tuple[EventExpression, ...]
    _hashes: dict[Sequence[Scalar], int] = field(default_factory=dict)  # by group; only groups of texts

    @classmethod
    def of(cls, body: AggregateBody) -> EventReader:
        return cls(
            body,
            None if body.where is None else _parsed(body.where, "where"),
            tuple(_parsed(_quoted(name), "by") for name in body.attributes),
            tuple(_parsed(value.argument, "values") if value.argument else None for value in body.values),
            tuple(_parsed(_quoted(name), "ask") for name in body.ask),
        )

    @property
    def lookups(self) -> frozenset[Lookup]:
        """The lookups in reference tables, including those for the groups of ``for_each_row_of``."""
        every = [self._where, *self._by, *self._arguments, *self._asked]
        lookups = {lookup for expression in every if expression is not None for lookup in expression.lookups}
        if (table := self.body.rows_of) is not None:
            lookups |= {Lookup(table, None, None), *(Lookup(table, name, 1) for name in self.body.by[1:])}
        return frozenset(lookups)

    @property
    def null_comparisons(self) -> Iterator[str]:
        """Sentences about comparisons in ``where`` and in the values that are always null, such as text < number."""
        if self._where is not None:
            yield from (f"where: {sentence}" for sentence in self._where.null_comparisons({}))
        for value, expression in zip(self.body.values, self._arguments, strict=True):
            if expression is not None:
                yield from (f"values, {value.name}: {sentence}" for sentence in expression.null_comparisons({}))

    @property
    def names_read(self) -> Iterator[NameRead]:
        """The event types and attributes that ``where``, ``by``, the values and ``ask`` read."""
        values = [f"values, {value.name}" for value in self.body.values]
        members = [("where", self._where), *zip(values, self._arguments, strict=True)]
        members += [("by", expression) for expression in self._by] + [("ask", expression) for expression in self._asked]
        for member, expression in members:
            if expression is not None:
                if expression.types:
                    yield NameRead(member, self.body.of, expression.types)
                yield from (NameRead(member, self.body.of, (), path) for path in expression.paths)

    def columns(self, batch: EventBatch, declaration: StreamDeclaration) -> EventColumns:
        """Convert a batch to columns.

        A row is an event that satisfies ``where``, a retraction, or the end of a transaction.
        """
        is_revocable = declaration.derived and not self.body.is_final
        columns, ops = columns_of_events(batch), _ops(batch, declaration, is_revocable=is_revocable)
        clocks_us = np.maximum.accumulate(batch.time_us)
        if self._where is not None:
            ops &= ~np.where(self._where.holds(columns, np.arange(len(batch))), 0, COUNTS).astype(np.uint8)
        rows = np.flatnonzero(ops)
        if len(rows) < len(batch):
            batch, ops = batch.take(rows), ops[rows]
        arguments: dict[str, ScalarColumn] = {}
        for value, expression in zip(self.body.values, self._arguments, strict=True):
            if expression is not None:
                argument = arguments.get(value.argument) or ScalarColumn.of_kinds(*expression.numbers(columns, rows))
                has_texts = argument.objects is None and bool((argument.kinds == TEXT).any())
                if has_texts and (value.function in _OF_TEXTS or self._counts_distinct_in_questions(value)):
                    argument = argument._replace(objects=expression.column(columns, rows))
                arguments[value.argument] = argument
        ids, keys = (batch.columns.column(name) for name in ("id", "key"))
        ids, keys = (ids.to_pylist(), keys.to_pylist()) if declaration.derived else (ids, keys)
        by, hashes = [keys], batch.key_hashes
        if self.body.by != ("key",):
            by = [expression.column(columns, rows) for expression in self._by]
            hashes = np.array([self._hash(group) for group in tuples_of(by, len(rows))], np.uint64)
        return EventColumns(
            times_us=batch.time_us,
            hashes=hashes,
            by=by,
            keys=keys,
            key_hashes=batch.key_hashes,
            ids=ids,
            arguments=[arguments[argument_name] for argument_name in self.body.arguments],
            clocks_us=clocks_us[rows],
            newest_us=int(clocks_us[-1]),
            ops=None if (ops == COUNTS).all() else ops,
            retracted=_retracted(batch, ops) if is_revocable else (),
            shown=_source_events(batch) if self.body.events else (),
            asked=[expression.column(columns, rows) for expression in self._asked],
            arrivals=batch.arrivals,
        )

    def _counts_distinct_in_questions(self, value: AggregateValue) -> bool:
        return bool(self.body.ask) and value.function == "count"

    def _hash(self, group: Sequence[Scalar]) -> int:
        """Hash a group. Only texts are cached: a cache treats 1 and 1.0 as equal, but their hashes may differ."""
        known = self._hashes.get(group)
        if known is None:
            known = group_hash(group)
            if all(isinstance(value, str) for value in group):
                if len(self._hashes) >= _MOST_HASHES:
                    self._hashes.clear()
                self._hashes[group] = known
        return known


def having_of(body: AggregateBody) -> EventExpression | None:
    """Parse the condition ``having``, which reads the values of a group. Return None if the aggregate has no condition.

    Raises ``OperatorRefused`` if the condition names anything that is neither a value nor an attribute in ``by``.
    """
    if body.having is None:
        return None
    parsed = _parsed(body.having.text, "having")
    known = {*body.by, *(value.name for value in body.values)}
    known |= {value.name for value in body.having.earlier} | {name for name, _ in body.having.overall}
    if strangers := sorted(parsed.names - known):
        raise OperatorRefused(
            f"having: {', '.join(strangers)} is neither a value nor an attribute in 'by'; these are "
            f"{', '.join(sorted(name for name in known if '(' not in name))}",
            field="having",
        )
    return parsed


def null_comparisons_of(body: AggregateBody) -> list[str]:
    """Return sentences about the comparisons of an aggregate that are always null, such as text < number.

    In ``having``, counts, sums and means are known to be numbers.
    """
    sentences, having = list(EventReader.of(body).null_comparisons), having_of(body)
    if body.having is None or having is None:
        return sentences
    numbers = {value.name for value in body.values if value.function not in _OF_EVENT}
    numbers |= {value.name for value in body.having.earlier if value.of in numbers}
    numbers |= {name for name, of in body.having.overall if of in numbers}
    return [
        *sentences,
        *(f"having: {sentence}" for sentence in having.null_comparisons(dict.fromkeys(numbers, "number"))),
    ]


def condition_and_bounds(
    body: AggregateBody, tables: Callable[[], Tables | None] = lambda: None
) -> tuple[Holds | None, Sequence[Bound]]:
    """Return the condition ``having``, whose lookups read ``tables``, and bounds for the values of a group.

    The condition is false for every group with a value outside its bounds.
    """
    parsed = having_of(body)
    if parsed is None:
        return None, ()

    def holds(columns: Mapping[str, Any], size: int) -> NDArray[np.bool_]:
        return parsed.holds_of(columns, size, tables())

    return InBounds(holds) if parsed.is_in_bounds else holds, list(parsed.bounds)


def is_moved(body: AggregateBody, declaration: StreamDeclaration) -> bool:
    """Return whether the events of an aggregate have to be re-keyed by their group.

    This is so if a group may have events in several shards, if the groups are rows of a table, or if an aggregate of a
    derived stream answers questions.
    """
    if body.ask and declaration.derived:
        return True
    path = attribute_path(declaration.key)
    of_key = {"key"} if not isinstance(path, tuple) else {"key", ".".join(path)}
    return body.is_global or body.rows_of is not None or of_key.isdisjoint(body.by)


def reading_of(body: AggregateBody) -> str:
    """Return a hash of the members of an aggregate that determine the content and the shard of its re-keyed events.

    Saved events contain the hash, so the hash of a body must remain the same in later releases.
    """
    values = [[value.argument, value.function in _OF_TEXTS] for value in body.values]
    read = [body.of, body.where, body.by, body.rows_of, body.ask, values, body.is_global, bool(body.events)]
    return f"{key_hash(orjson.dumps(read).decode()):016x}"


def moved_events(events: EventColumns, groups: Sequence[Sequence[Scalar]], body: AggregateBody) -> EventBatch:
    """Return events re-keyed by their groups, so that the log carries each event to the shard of its group.

    The new key is the group as text. With ``for_each_row_of``, it is the name of the group's row. The new id begins
    with a number by which events of equal time are sorted.
    """
    size = len(events)
    is_gone = np.zeros(size, np.bool_) if events.ops is None else events.ops & RETRACTS != 0
    places = is_gone if events.arrivals is None else events.arrivals  # without arrival numbers, retractions are last
    keys, ids = [_key_text(group) for group in groups], values_at(events.ids, np.arange(size))
    if body.rows_of is not None:  # an event in several groups is repeated, once for each group
        keys = [_key_text(group[:1]) for group in groups]
        ids = [f"{identity}/{key}" for identity, key in zip(ids, keys, strict=True)]
    moved, revocable = (f"{name}{_OF_READING}{reading_of(body)}" for name in (_MOVED, _REVOCABLE))
    types = [revocable if events.retracted and not is_retraction else moved for is_retraction in is_gone.tolist()]
    return EventBatch.of_columns(
        joined_texts([hex_texts(places.astype(np.uint64)), texts_of(ids)]),
        texts_of(types).dictionary_encode(),
        events.times_us,
        texts_of([_ALL] * size if body.is_global else keys),
        pieces_of([orjson.dumps(form) for form in _forms(events, groups, body)], pa.binary()),
    )


def _forms(
    events: EventColumns, groups: Sequence[Sequence[Scalar]], body: AggregateBody
) -> Iterator[Mapping[str, Any]]:
    size = len(events)
    arguments = dict(zip(body.arguments, [column.to_list() for column in events.arguments], strict=True))
    values = tuples_of([arguments.get(value.argument, [True] * size) for value in body.values], size)
    event_forms, retracted = events.shown or [None] * size, events.retracted or [""] * size
    for group, some, event, ask_values, gone in zip(
        groups, values, event_forms, tuples_of(events.asked, size), retracted, strict=True
    ):
        if gone:
            yield {"group": group, "retracts": gone}
        else:
            more = ({"event": event} if event is not None else {}) | ({"asked": ask_values} if ask_values else {})
            yield {"group": group, "arguments": some, **more}


def rows_of_reading(body: AggregateBody, reading: str, batch: EventBatch) -> NDArray[np.int64]:
    """Return the rows of a batch that were re-keyed for the version of the aggregate with the hash ``reading``.

    Events of earlier releases have no hash. Their rows are included if they have as many columns as ``body`` needs.
    """
    readings = [name.partition(_OF_READING)[2] for name in batch.type_names]
    if all(name == reading for name in readings):
        return np.arange(len(batch))
    is_own = np.array([name == reading for name in readings])[batch.type_codes]
    for row in np.flatnonzero(np.array([not name for name in readings])[batch.type_codes]).tolist():
        is_own[row] = _fits(body, orjson.loads(batch.columns.column("data")[row].as_py()))
    return np.flatnonzero(is_own)


def _fits(body: AggregateBody, form: Mapping[str, Any]) -> bool:
    """Return whether a re-keyed event of an earlier release has as many columns as the aggregate.

    ``form`` is the event's data. A retraction only needs the number of attributes in ``by``.
    """
    if len(form["group"]) != len(body.by) or "retracts" in form:
        return len(form["group"]) == len(body.by)
    sizes = len(form["arguments"]), len(form.get("asked", ())), "event" in form
    return sizes == (len(body.values), len(body.ask), bool(body.events))


def moved_columns(
    body: AggregateBody, batch: EventBatch, *, clocks_us: NDArray[np.int64], newest_us: int
) -> EventColumns:
    """Return the columns of events that were re-keyed for ``body``.

    ``clocks_us`` has the event time reached at each event, and ``newest_us`` the time reached after all of them.
    """
    forms = list(map(orjson.loads, batch.columns.column("data").to_pylist()))
    keys, ids = (batch.columns.column(name).to_pylist() for name in ("key", "id"))
    groups = [form["group"] for form in forms]
    retracted = [form.get("retracts", "") for form in forms]
    places = {value.argument: place for place, value in enumerate(body.values)}
    no_arguments, nothing = [None] * len(body.values), [None] * len(body.ask)
    arguments = [form.get("arguments", no_arguments) for form in forms]
    return EventColumns(
        times_us=batch.time_us,
        hashes=np.array([*map(group_hash, groups)], np.uint64),
        by=list(zip(*groups, strict=True)) if body.by else [],
        keys=keys,
        key_hashes=batch.key_hashes,
        ids=[identity[_PLACED:] for identity in ids],
        arguments=[
            ScalarColumn.of([some[places[argument_name]] for some in arguments]) for argument_name in body.arguments
        ],
        clocks_us=clocks_us,
        newest_us=newest_us,
        ops=np.array([RETRACTS if retracted_id else COUNTS for retracted_id in retracted], np.uint8)
        if any(retracted)
        else None,
        retracted=retracted,
        shown=[form.get("event") for form in forms] if body.events else (),
        asked=list(zip(*(form.get("asked", nothing) for form in forms), strict=True)),
    )


def are_revocable(batch: EventBatch) -> bool:
    """Return whether any of these re-keyed events has a type by which it may be retracted later."""
    return any(batch.type_names[code].startswith(_REVOCABLE) for code in np.unique(batch.type_codes).tolist())


def _key_text(group: Sequence[Scalar]) -> str:
    """Return the key of a re-keyed event: the group as text, or the group's only value if this can be a key."""
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
    return name if name in ("key", "type") else ".".join(f"`{part}`" for part in name.split("."))


def _ops(batch: EventBatch, declaration: StreamDeclaration, *, is_revocable: bool) -> NDArray[np.uint8]:
    ops = []
    for name in batch.type_names:
        if is_revocable and name.endswith(RETRACTED):
            ops.append(RETRACTS)
        else:
            ops.append(COUNTS * (name != ENDED) + ENDS * (name in (*declaration.end_events, ENDED)))
    return np.array(ops, np.uint8)[batch.type_codes] if len(ops) > 1 else np.full(len(batch), ops or 0, np.uint8)


def _retracted(batch: EventBatch, ops: NDArray[np.uint8]) -> list[str]:
    """Return for each row the id of the event that the row retracts, or an empty text."""
    rows = zip(ops.tolist(), batch.columns.column("data").to_pylist(), strict=True)
    return [str(orjson.loads(data).get("retracts", "")) if op == RETRACTS else "" for op, data in rows]


def _source_events(batch: EventBatch) -> list[dict[str, Any]]:
    ids, data = (batch.columns.column(name).to_pylist() for name in ("id", "data"))
    names = [batch.type_names[code] for code in batch.type_codes.tolist()]
    columns = zip(ids, names, batch.time_us.tolist(), data, strict=True)
    return [
        {"id": identity, "type": name, "time": format_time(time_us), "data": orjson.loads(document)}
        for identity, name, time_us, document in columns
    ]

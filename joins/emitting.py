"""The derived events of a join, built by columns. Events that are built one by one have the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.held_events import HeldEvents
from joins.items import JoinedColumns
from joins.merging import original_ids, originals_of
from joins.outer import absence_reasons
from joins.returns import Column, Placed, value_at
from streams import (
    RETRACTED,
    Event,
    EventBatch,
    Texts,
    chosen_texts,
    column_of,
    format_time,
    joined_texts,
    json_contents,
    json_text,
    pieces_of,
    text_digests,
    texts_of,
    time_texts,
)

_ID_LENGTH = 32
_LITTLE = 512  # bytes of an event's values, up to which the values need not be measured
_WINDOW, _FINISHED, _END = "window", "finished", "end_of_input"  # reasons why an event is absent
_TAKEN_BACK, _NO_KEY = "retracted", "no_key"  # further reasons


class MemberEvents:
    """The events of one input in many combinations or totals.

    ``rows`` are their indices in ``held``, possibly repeated.
    """

    def __init__(self, held: HeldEvents, rows: NDArray[np.intp]) -> None:
        self._held = held
        self.rows = rows
        self._distinct, self._places = np.unique(rows, return_inverse=True)

    @cached_property
    def ids(self) -> pa.Array:
        """Return the id of each event in its stream, escaped as in a JSON string but without the quotes."""
        return self._of_each(json_contents(original_ids(self._held.ids(self._distinct))))

    def texts(self, column: Column) -> pa.Array:
        """Return the value of a column for each event, as JSON text.

        An event that occurs in several results is repeated.
        """
        if column.function == "id":
            return joined_texts(['"', self.ids, '"'])
        if column.function == "time":
            return self._of_each(joined_texts(['"', time_texts(self._held.times_us(self._distinct)), '"']))
        return self._of_each(json_texts(self._values_of(column)))

    def values(self, column: Column) -> list[Any]:
        """Return the value of a column for each event, as plain JSON."""
        if column.function == "count":
            return [None] * len(self.rows)
        distinct_values, places = self.placed(column)
        plain_values = list(map(format_time, distinct_values)) if column.function == "time" else distinct_values
        return [plain_values[place] for place in places.tolist()]

    def placed(self, column: Column) -> tuple[list[Any], NDArray[np.intp]]:
        """Return the values of a column for the distinct events, and for each event the index of its value.

        Times are in microseconds.
        """
        if column.function == "id":
            return original_ids(self._held.ids(self._distinct)).to_pylist(), self._places
        if column.function == "time":
            return self._held.times_us(self._distinct).tolist(), self._places
        return self._values_of(column), self._places

    def sizes(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """Return for each event the bytes of its values in the given columns. The sizes limit a join's results.

        If no event can have more than 512 bytes of values, nothing is measured and all sizes are 0.
        """
        ids, data = (binary_sizes(take(self._distinct)) for take in (self._held.ids, self._held.data))
        sizes = np.full(len(self._distinct), 64 * len(columns), np.int64)
        sizes += ids * sum(column.function == "id" for column in columns)
        values = [column for column in columns if column.function in ("value", "type")]
        if int((sizes + len(values) * data).max()) <= _LITTLE:
            return np.zeros(len(self.rows), np.int64)
        for column in values:
            sizes += binary_sizes(json_texts(self._values_of(column)))
        return sizes[self._places]

    @cached_property
    def _originals(self) -> list[dict[str, Any]]:
        return originals_of(self._held.data(self._distinct).to_pylist())

    def _values_of(self, column: Column) -> list[Any]:
        if column.function == "type":
            return [original["type"] for original in self._originals]
        if len(column.path) == 1:
            (name,) = column.path
            return [original["data"].get(name) for original in self._originals]
        return [value_at(original["data"], column.path) for original in self._originals]

    def _of_each(self, texts: pa.Array) -> pa.Array:
        return texts.take(column_of(self._places))


class DerivedEventBuilder:
    """Builds the events of a join's derived stream from combinations, totals and retractions."""

    def __init__(self, body: JoinBody, name: str, version: int) -> None:
        self._aliases = [join_input.alias for join_input in body.inputs]
        self._is_of_many = bool(body.optional)
        self._columns, self._members = body.columns, body.members
        self._head = orjson.dumps(["join", name, version])[:-1].decode()
        self.event_type = body.event_type or name
        self._type = texts_of([self.event_type])

    def of_combinations(self, held: HeldEvents, results: JoinedColumns, *, is_over: bool = False) -> EventBatch:
        """Return a derived event for each combination, in order.

        ``is_over``: the combinations were decided only because all input has ended.
        """
        if not len(results.members):
            return EventBatch.from_events([])
        present = (results.members >= 0) @ (1 << np.arange(len(self._aliases)))
        if present[0] == present[-1] and np.all(present == present[0]):
            return self._combined(held, results, np.arange(len(present)), is_over=is_over)
        rows = [np.flatnonzero(present == bits) for bits in np.unique(present)]
        parts = [self._combined(held, results, places, is_over=is_over) for places in rows]
        return EventBatch.joined(parts).take(np.argsort(np.concatenate(rows)))

    def sizes(self, held: HeldEvents, results: JoinedColumns, *, is_each: bool) -> NDArray[np.int64]:
        """Return for each combination how many bytes the values in its derived event have. Small sizes count as 0.

        If ``is_each`` is false, the join makes no event for a combination, and all sizes are 0.
        """
        sizes = np.zeros(len(results.members), np.int64)
        for number, alias in enumerate(self._aliases if is_each else ()):
            columns = [column for column in self._columns if column.alias == alias]
            if not columns:
                continue
            members = results.members[:, number]
            rows = slice(None) if members.min(initial=0) >= 0 else np.flatnonzero(members >= 0)
            if len(members[rows]):
                sizes[rows] += MemberEvents(held, held.rows_of(members[rows])).sizes(columns)
        return sizes

    def of_keys(
        self, keys: tuple[pa.Array, NDArray[np.uint64]], times_us: NDArray[np.int64], values: Any, replaced_id: str = ""
    ) -> EventBatch:
        """Return the derived event with the totals of each finished key. ``keys`` are texts and their hashes.

        ``values`` has a list for each column, with the total of each key. If ``replaced_id`` is given, the event
        replaces the derived event with this id.
        """
        contents = json_contents(keys[0])
        end = f'",{json_text(replaced_id)}]' if replaced_id else '"]'
        places = np.arange(len(times_us))
        texts = [
            json_texts(values[member.places[0]])
            if member.expression is None
            else json_texts(member.expression.column([(values[place], places) for place in member.places], len(places)))
            for member in self._members
        ]
        return self._events_of(keys, times_us, ['["', contents, end], texts)

    def of_retractions(self, retracted: Sequence[tuple[str, str]], cause_id: str, key: str, time_us: int) -> EventBatch:
        """Return a retraction for each derived event in ``retracted`` (id and type), all with the same key and time.

        ``cause_id`` is the id of the retraction in an input, which causes these retractions.
        """
        return EventBatch.from_events(
            [
                Event(
                    id=_digest(["retraction", identity, cause_id]),
                    type=event_type + RETRACTED,
                    time_us=time_us,
                    key=key,
                    data={"retracts": identity},
                )
                for identity, event_type in retracted
            ]
        )

    def _combined(
        self, held: HeldEvents, results: JoinedColumns, combinations: NDArray[np.intp], *, is_over: bool
    ) -> EventBatch:
        """Return a derived event for each of the ``combinations``, which all have events of the same inputs."""
        members, times_us = results.members[combinations], results.result_times_us[combinations]
        events = {
            alias: MemberEvents(held, held.rows_of(members[:, number]))
            for number, alias in enumerate(self._aliases)
            if members[0, number] >= 0
        }
        rows = next(iter(events.values())).rows
        identity: list[Texts] = []
        for alias, member_events in events.items():
            identity += [f'{"," if identity else "["}[{json_text(alias)},"', member_events.ids, '"]']
        whys = [f'"{word}"' for word in ("", _WINDOW, _END if is_over else _FINISHED, _TAKEN_BACK, _NO_KEY)]

        def reasons(column: Column) -> tuple[Sequence[str], NDArray[np.integer]]:
            """Return the reasons why an input is absent, as JSON texts, and the index of each combination's reason."""
            if self._is_of_many:
                return absence_reasons(members[:, self._aliases.index(column.alias)])
            return whys, results.result_whys[combinations]

        def text(column: Column) -> Texts:
            if column.function == "decided_by":
                return "null" if column.alias in events else chosen_texts(*reasons(column))
            return events[column.alias].texts(column) if column.alias in events else "null"

        def placed(column: Column) -> Placed:
            if column.function == "decided_by" and column.alias not in events:
                words, places = reasons(column)
                return [orjson.loads(word) or None for word in words], places.astype(np.intp)
            if column.function != "decided_by" and column.alias in events:
                return events[column.alias].placed(column)
            return [None], np.zeros(len(combinations), np.intp)

        columns_of_members = [[self._columns[place] for place in member.places] for member in self._members]
        texts = [
            text(columns[0])
            if member.expression is None
            else json_texts(member.expression.column([placed(column) for column in columns], len(combinations)))
            for member, columns in zip(self._members, columns_of_members, strict=True)
        ]
        return self._events_of((held.keys(rows), held.hashes(rows)), times_us, [*identity, "]"], texts)

    def _events_of(
        self,
        keys: tuple[pa.Array, NDArray[np.uint64]],
        times_us: NDArray[np.int64],
        identity: Sequence[Texts],
        texts: Sequence[Texts],
    ) -> EventBatch:
        """Return derived events.

        The id of each is a digest of the join, its version, the key, ``identity`` and the time. ``keys`` are strings
        and their hashes. ``identity`` has pieces of JSON texts: the members of each combination, or the replaced id.
        ``texts`` has the values of each member of the derived events, as JSON.
        """
        parts: list[Texts] = [f'{self._head},"', json_contents(keys[0]), '",', *identity, ","]
        ids = text_digests(joined_texts([*parts, column_of(times_us).cast(pa.string()), "]"]), _ID_LENGTH)
        data: list[Texts] = []
        for member, values in zip(self._members, texts, strict=True):
            data += [f"{',' if data else '{'}{json_text(member.name)}:", values]
        if all(isinstance(piece, str) for piece in data):  # all members describe absent inputs
            data[0] = texts_of([str(data[0])]).take(column_of(np.zeros(len(times_us), np.int32)))
        types = pa.DictionaryArray.from_arrays(column_of(np.zeros(len(times_us), np.int32)), self._type)
        return EventBatch.of_hashed(ids, types, times_us, keys, joined_texts([*data, "}"]).view(pa.binary()))


def _digest(identity: Sequence[Any]) -> str:
    digest: str = text_digests(texts_of([orjson.dumps(identity).decode()]), _ID_LENGTH).to_pylist()[0]
    return digest


def binary_sizes(pieces: pa.Array) -> NDArray[np.int64]:
    """Return the number of bytes of each string or binary value."""
    return cast("NDArray[np.int64]", pc.binary_length(pieces).to_numpy(zero_copy_only=False).astype(np.int64))


def json_texts(values: Sequence[Any]) -> pa.Array:
    """Return the JSON text of each value."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return joined_texts(['"', json_contents(texts_of(values)), '"'])
    if kinds == {int}:
        with suppress(OverflowError):
            return column_of(np.array(values, np.int64)).cast(pa.string())
    return pieces_of(list(map(_json_of, values)), pa.string())


def _json_of(value: Any) -> bytes:
    """Return a value as JSON. An integer beyond 64 bits, such as a sum, becomes a floating-point number."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(float(value))

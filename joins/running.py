"""A join that runs: merged events of its inputs in, events of its derived stream out.

The merged events come in one order: by time, then by input, then as they came. The type of each is the alias of its
input, with a mark behind it where the event finishes its key, or says nothing but that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.errors import JoinStateError
from joins.held_events import HeldEvents
from joins.items import Item, ItemColumns, JoinedColumns
from joins.returns import Column, Totals, value_at
from joins.windowed import WindowJoin
from streams import Event, EventBatch, format_time

LAST = ".last"
"""Behind the alias of an event that finishes its key."""
CLOSED = ".closed"
"""Behind the alias of what only says that a key is finished."""

_ID_LENGTH = 32
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An event of a key that its input had finished; it joined nothing.

    Attributes:
        event: The event.
        alias: Of its input.
    """

    event: Event
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOutput:
    """What some events led to.

    Attributes:
        events: Of the derived stream, in the order in which they came about; the key is that of the join.
        passed_on: The same, and among them a row that ends the trace of each key that is finished: ``streams.ENDED``.
        broken: Events that contradict a finished key.
    """

    events: EventBatch
    passed_on: EventBatch
    broken: tuple[Broken, ...] = ()


class JoinRun:
    """One join at one place.

    Args:
        body: What it does.
        name: Of the join.
        version: Of the join.
    """

    def __init__(self, body: JoinBody, name: str, version: int) -> None:
        self.body, self.name, self.version = body, name, version
        self._join = WindowJoin([one.window for one in body.inputs], outer=body.reporting)
        self._held = HeldEvents.empty()
        self._totals: dict[int, tuple[str, Totals]] = {}
        self._newest_keys: dict[int, int] = {}  # of inputs whose events of a key come together
        self._numbers = {
            f"{one.alias}{mark}": (number, mark)
            for number, one in enumerate(body.inputs)
            for mark in ("", LAST, CLOSED)
        }

    @property
    def now_us(self) -> int | None:
        """How far time has come; None before the first event."""
        return self._join.now_us

    def measures(self) -> dict[str, int]:
        """Counts, as ``JoinStats`` has them."""
        return {**asdict(self._join.stats), "open_totals": len(self._totals)}

    def process(self, batch: EventBatch) -> JoinOutput:
        """Take merged events in; of what an input of another version has handed on only the time counts."""
        if not len(batch):
            return JoinOutput(events=batch, passed_on=batch)
        is_known, until_us = np.array([name in self._numbers for name in batch.type_names]), int(batch.time_us.max())
        batch = batch.take(np.flatnonzero(is_known[batch.type_codes]))
        items, rows = self._items(batch)
        is_event, items = items.kinds == Item.EVENT, items.with_time(until_us)
        first = self._join.next_sequence
        taken = rows[is_event]
        self._held.add(first + np.arange(len(taken)), batch.take(taken))
        return self._output(self._join.push(items), items, first)

    def advance_time(self, watermark_us: int) -> JoinOutput:
        """No event before a time comes any more."""
        items = ItemColumns.of([(Item.TIME, 0, 0, watermark_us)])
        return self._output(self._join.push(items), items, self._join.next_sequence)

    def finish(self) -> JoinOutput:
        """No event comes any more: every input finishes every key."""
        now_us = self._join.now_us
        if now_us is None:
            none = EventBatch.from_events([])
            return JoinOutput(events=none, passed_on=none)
        keys = self._join.keys()
        rest = sorted(zip(keys.tolist(), map(self._text_of, keys.tolist()), strict=True), key=lambda pair: pair[1])
        items = ItemColumns.of(
            [(Item.CLOSING, number, key, now_us) for key, _ in rest for number in range(len(self.body.inputs))]
        )
        return self._output(self._join.push(items), items, self._join.next_sequence)

    def drop(self, is_dropped: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget some of the keys that ``keys`` gives, as if their events had never come."""
        gone = keys[is_dropped]
        known = np.isin(gone, self._join.keys())
        self._join.drop(gone[known])
        for key in gone.tolist():
            self._totals.pop(key, None)
        self._newest_keys = {number: key for number, key in self._newest_keys.items() if key not in set(gone.tolist())}

    def keys(self) -> NDArray[np.uint64]:
        """Hashed keys of which something is known."""
        others = [*self._totals, *self._newest_keys.values()]
        return np.unique(np.concatenate([self._join.keys(), np.array(others, np.uint64)]))

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and sections by name."""
        head, arrays = self._join.dump()
        totals = [[key, text, totals.states] for key, (text, totals) in sorted(self._totals.items())]
        state = {
            "format": _FORMAT,
            "join": head,
            "newest_keys": [[number, key] for number, key in sorted(self._newest_keys.items())],
        }
        held = self._held.dump(self._join.held_sequences())
        sections = {f"join/{name}": array for name, array in arrays.items()}
        return state, {
            **sections,
            **{f"held/{name}": one for name, one in held.items()},
            "totals": orjson.dumps(totals),
        }

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Take what ``dump`` gave of the same join.

        Raises:
            JoinStateError: It is damaged, or of another form.
        """
        if head.get("format") != _FORMAT:
            raise JoinStateError(f"the saved join {self.name!r} has the format {head.get('format')}, not {_FORMAT}")
        try:
            self._join.load(head["join"], _part(sections, "join/"))
            self._held = HeldEvents.load(_part(sections, "held/"))
            self._newest_keys = dict(head["newest_keys"])
            self._totals = {
                key: (text, Totals(self.body.columns, states)) for key, text, states in orjson.loads(sections["totals"])
            }
        except (KeyError, ValueError) as error:
            raise JoinStateError(f"the saved join {self.name!r} cannot be read: {error}") from error

    def _items(self, batch: EventBatch) -> tuple[ItemColumns, NDArray[np.intp]]:
        """The items of merged events, and of each the row that it is of."""
        known = [self._numbers.get(name, (0, "")) for name in batch.type_names]  # others have no rows here
        inputs = np.array([number for number, _ in known], np.uint8)[batch.type_codes]
        is_event = np.array([mark != CLOSED for _, mark in known])[batch.type_codes]
        closes = np.array([mark != "" or "unique" in self.body.inputs[number].closings for number, mark in known])
        is_last = closes[batch.type_codes]
        before = self._keys_before(inputs, batch.key_hashes, is_event)
        rows = np.arange(len(batch))
        parts = [
            (rows[before != 0], Item.CLOSING, before[before != 0]),
            (rows[is_event], Item.EVENT, batch.key_hashes[is_event]),
            (rows[is_last], Item.CLOSING, batch.key_hashes[is_last]),
        ]
        places = np.concatenate([part for part, _, _ in parts])
        order = np.argsort(places, kind="stable")  # of one row: the key before, the event, its own end
        places = places[order]
        kinds = np.concatenate([np.full(len(part), kind, np.uint8) for part, kind, _ in parts])[order]
        keys = np.concatenate([some for _, _, some in parts])[order]
        items = ItemColumns(kinds=kinds, inputs=inputs[places], keys=keys, times_us=batch.time_us[places])
        return items, places

    def _keys_before(
        self, inputs: NDArray[np.uint8], keys: NDArray[np.uint64], is_event: NDArray[np.bool_]
    ) -> NDArray[np.uint64]:
        """Where events of a key come together: the key that an event finishes, as it has another one; else 0."""
        before = np.zeros(len(keys), np.uint64)
        for number, one in enumerate(self.body.inputs):
            rows = np.flatnonzero((inputs == number) & is_event)
            if "clustered" not in one.closings or not len(rows):
                continue
            last = np.concatenate([np.array([self._newest_keys.get(number, 0)], np.uint64), keys[rows[:-1]]])
            before[rows] = np.where(last != keys[rows], last, 0)
            self._newest_keys[number] = int(keys[rows[-1]])
        return before

    def _output(self, found: JoinedColumns, items: ItemColumns, first: int) -> JoinOutput:
        """What is reported of what the join found."""
        sequences = first + np.cumsum(items.kinds == Item.EVENT) - 1
        broken = tuple(
            Broken(event=event, alias=self.body.inputs[items.inputs[item]].alias)
            for item in found.violations.tolist()
            for event in self._events([int(sequences[item])])
        )
        is_each = self.body.emit == "each"
        made = list(self._each(found) if is_each else self._on_close(found))
        events = EventBatch.from_events([event for _, event in made])
        passed_on = _with_ends(events, np.array([place for place, _ in made], np.int64), found, is_each=is_each)
        output = JoinOutput(events=events, passed_on=passed_on, broken=broken)
        if self._held.is_sparse(self._join.stored):  # otherwise each call would cost as much as is held
            self._held.keep_only(self._join.held_sequences())
        return output

    def _each(self, found: JoinedColumns) -> Iterator[tuple[int, Event]]:
        """An event for each combination, in their order, and the number of the combination."""
        named = self._named(np.unique(found.members[found.members >= 0]))
        for place, (members, time_us) in enumerate(
            zip(found.members.tolist(), found.result_times_us.tolist(), strict=True)
        ):
            events = {
                one.alias: named[sequence]
                for one, sequence in zip(self.body.inputs, members, strict=True)
                if sequence >= 0
            }
            data = {column.name: _value(column, events.get(column.alias)) for column in self.body.columns}
            key = next(iter(events.values())).key
            yield place, self._event([[alias, event.id] for alias, event in events.items()], time_us, key, data)

    def _on_close(self, found: JoinedColumns) -> Iterator[tuple[int, Event]]:
        """An event for each key that is over, of what took part until then, and the number of the closing."""
        steps = sorted(
            [(place, 1, place) for place in range(len(found.members))]
            + [(before, 0, place) for place, before in enumerate(found.closing_places.tolist())]
        )
        named = self._named(np.unique(found.members[found.members >= 0]))
        for _, is_result, place in steps:
            if not is_result:
                key = int(found.closing_keys[place])
                if key in self._totals:
                    text, totals = self._totals.pop(key)
                    time_us = int(found.closing_times_us[place])
                    yield place, self._event([text], time_us, text, totals.values())
            else:
                self._count(found.members[place], named)

    def _count(self, members: NDArray[np.int64], named: Mapping[int, Event]) -> None:
        """Count the events of a combination that were in none before."""
        numbers = {sequence: number for number, sequence in enumerate(members.tolist()) if sequence >= 0}
        for sequence in self._held.not_counted(np.array(sorted(numbers), np.int64)):
            event, alias = named[sequence], self.body.inputs[numbers[sequence]].alias
            key = int(self._held.batch.key_hashes[self._held.rows_of(np.array([sequence]))[0]])
            _, totals = self._totals.setdefault(key, (event.key, Totals(self.body.columns)))
            totals.add(alias, sequence, [_value(column, event) for column in self.body.columns])

    def _event(self, what: Sequence[Any], time_us: int, key: str, data: dict[str, Any]) -> Event:
        """A derived event; its id depends on what it is of only."""
        said = orjson.dumps(["join", self.name, self.version, key, what, time_us])
        identity = sha256(said).hexdigest()[:_ID_LENGTH]
        return Event(id=identity, type=self.body.event_type or self.name, time_us=time_us, key=key, data=data)

    def _named(self, sequences: NDArray[np.int64]) -> dict[int, Event]:
        return dict(zip(sequences.tolist(), self._events(sequences.tolist()), strict=True))

    def _events(self, sequences: Sequence[int]) -> list[Event]:
        """Events by their sequence numbers, as their streams have them."""
        found = self._held.batch.take(self._held.rows_of(np.array(sequences, np.int64))).to_events()
        return [original_of(event) for event in found]

    def _text_of(self, key: int) -> str:
        """The text of a hashed key, where an event of it is held, or a total."""
        if key in self._totals:
            return self._totals[key][0]
        rows = np.flatnonzero(self._held.batch.key_hashes == key)
        return str(self._held.batch.columns.column("key")[int(rows[0])].as_py()) if len(rows) else ""


def _with_ends(events: EventBatch, places: NDArray[np.int64], found: JoinedColumns, *, is_each: bool) -> EventBatch:
    """Events, and behind those of each finished key a row that ends its trace.

    Args:
        events: In their order.
        places: Of each the number of its combination, or of the closing that it was made at.
        found: What the join found.
        is_each: Whether the events are of combinations.
    """
    closings = len(found.closing_keys)
    if not closings:
        return events
    ended = EventBatch.of_ended(found.closing_keys, found.closing_times_us)
    of_events, of_ends = (places, found.closing_places) if is_each else (places, np.arange(closings) + 1)
    order = np.argsort(np.concatenate([2 * of_events + 1, 2 * of_ends]), kind="stable")
    return EventBatch.joined([events, ended]).take(order)


def merged_id(number: int, place: int, identity: str) -> str:
    """The id of a merged event: events of one time come by input, then by their place in it.

    Args:
        number: Of the input.
        place: Counts the events of the input at their place.
        identity: Id of the event in its stream.
    """
    return f"{number:02x}{place:016x}{identity}"


def original_of(event: Event) -> Event:
    """A merged event as its stream has it; its type is in front of its data."""
    told = dict(event.data)
    return Event(id=event.id[18:], type=str(told["type"]), time_us=event.time_us, key=event.key, data=told["data"])


def merged_data(event_type: bytes, data: bytes) -> bytes:
    """The data of a merged event: the type and the data of the event.

    Args:
        event_type: As JSON.
        data: As JSON.
    """
    return b'{"type":' + event_type + b',"data":' + data + b"}"


def _value(column: Column, event: Event | None) -> Any:
    """What a column says of an event; None where it is absent."""
    if event is None:
        return None
    if column.function == "id":
        return event.id
    if column.function == "type":
        return event.type
    if column.function == "time":
        return format_time(event.time_us)
    return value_at(event.data, column.path)


def _part(sections: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): one for name, one in sections.items() if name.startswith(prefix)}

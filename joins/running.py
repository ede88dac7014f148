"""A join that runs: merged events of its inputs in, events of its derived stream out.

The merged events come in one order: by time, then by input, then as they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from joins.costs.observing import StateObserver
from joins.document import JoinBody
from joins.emitting import DerivedEvents, MemberEvents
from joins.errors import JoinStateError
from joins.figures import numbers_of
from joins.held_events import HeldEvents
from joins.items import Item, ItemColumns, JoinedColumns
from joins.merging import CLOSED, MARKS, original_of
from joins.returns import Totals
from joins.windowed import WindowJoin
from streams import Event, EventBatch, texts_of

_FORMAT = 1
_KEPT = 8  # events are forgotten when they are more than this part of those that were ever stored at a time


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


_CountedEvent: TypeAlias = tuple[int, str, int, int, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Events that take part in something for the first time.

    Attributes:
        results: Of each the number of its combination, ascending.
        events: Of each its hashed key, its key, the number of its input, its sequence number, and its values.
    """

    results: NDArray[np.int64]
    events: Sequence[_CountedEvent]


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
        self._derived = DerivedEvents(body, name, version)
        self._totals = Totals(body.columns)
        self._observer = StateObserver([one.window for one in body.inputs], [one.closes for one in body.inputs])
        self._open: dict[int, tuple[str, list[Any]]] = {}  # totals of keys that are not over, with their texts
        self._newest_keys: dict[int, int] = {}  # of inputs whose events of a key come together
        self._numbers = {
            f"{one.alias}{mark}": (number, mark) for number, one in enumerate(body.inputs) for mark in MARKS
        }

    @property
    def now_us(self) -> int | None:
        """How far time has come; None before the first event."""
        return self._join.now_us

    def measures(self) -> dict[str, int]:
        """Counts, as ``JoinStats`` has them, and what ``figures`` makes sentences of."""
        figures = numbers_of(self.body, self._observer, self._join.stored_by_input)
        return {**asdict(self._join.stats), "open_totals": len(self._open), **figures}

    def process(self, batch: EventBatch) -> JoinOutput:
        """Take merged events in; of what an input of another version has handed on only the time counts."""
        if not len(batch):
            return JoinOutput(events=batch, passed_on=batch)
        is_known, until_us = np.array([name in self._numbers for name in batch.type_names]), int(batch.time_us.max())
        batch = batch.take(np.flatnonzero(is_known[batch.type_codes]))
        items, rows = self._items(batch)
        self._observer.observe(items)
        is_event, items = items.kinds == Item.EVENT, items.with_time(until_us)
        first = self._join.next_sequence
        taken = rows[is_event]
        self._held.add(first + np.arange(len(taken)), batch if len(taken) == len(batch) else batch.take(taken))
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
        keys, texts = self._join.keys().tolist(), self._texts()
        rest = sorted([(key, texts.get(key, "")) for key in keys], key=lambda pair: pair[1])
        items = ItemColumns.of(
            [(Item.CLOSING, number, key, now_us) for key, _ in rest for number in range(len(self.body.inputs))]
        )
        return self._output(self._join.push(items), items, self._join.next_sequence, is_over=True)

    def drop(self, is_dropped: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget some of the keys that ``keys`` gives, as if their events had never come."""
        gone = keys[is_dropped]
        known = np.isin(gone, self._join.keys())
        self._join.drop(gone[known])
        for key in gone.tolist():
            self._open.pop(key, None)
        self._newest_keys = {number: key for number, key in self._newest_keys.items() if key not in set(gone.tolist())}

    def keys(self) -> NDArray[np.uint64]:
        """Hashed keys of which something is known."""
        others = [*self._open, *self._newest_keys.values()]
        return np.unique(np.concatenate([self._join.keys(), np.array(others, np.uint64)]))

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and sections by name."""
        head, arrays = self._join.dump()
        totals = [[key, text, total] for key, (text, total) in sorted(self._open.items())]
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
            "totals": _packed(totals),
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
            self._open = {key: (text, total) for key, text, total in json.loads(sections["totals"])}
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

    def _output(self, found: JoinedColumns, items: ItemColumns, first: int, *, is_over: bool = False) -> JoinOutput:
        """What is reported of what the join found; ``is_over``: at the end of the input."""
        broken: tuple[Broken, ...] = ()
        if len(found.violations):
            sequences = first + np.cumsum(items.kinds == Item.EVENT) - 1
            events = self._held.batch(self._held.rows_of(sequences[found.violations])).to_events()
            numbers = items.inputs[found.violations].tolist()
            broken = tuple(
                Broken(event=original_of(event), alias=self.body.inputs[number].alias)
                for event, number in zip(events, numbers, strict=True)
            )
        is_each = self.body.emit == "each"
        if is_each:
            made = self._derived.of_combinations(self._held, found, is_over=is_over)
            places = np.arange(len(found.members))
        else:
            made, places = self._on_close(found)
        if self._held.is_sparse(self._join.stored, self._join.most_stored // _KEPT):
            self._held = self._held.only(self._join.held_sequences())
        passed_on = _with_ends(made, places, found, is_each=is_each)
        return JoinOutput(events=made, passed_on=passed_on, broken=broken)

    def _on_close(self, found: JoinedColumns) -> tuple[EventBatch, NDArray[np.int64]]:
        """An event for each key that is over, of what took part until then, and the numbers of the closings."""
        counted = self._counted(found)
        ends = np.searchsorted(counted.results, found.closing_places)
        numbers = np.diff(ends, prepend=0).tolist()
        events = iter(counted.events)
        over: list[tuple[int, str, list[Any]]] = []
        for place, (number, key) in enumerate(zip(numbers, found.closing_keys.tolist(), strict=True)):
            if number:
                self._count(islice(events, number))
            if key in self._open:
                over.append((place, *self._open.pop(key)))
        self._count(events)
        if not over:
            return EventBatch.from_events([]), np.zeros(0, np.int64)
        places, texts, totals = zip(*over, strict=True)
        chosen = np.array(places, np.int64)
        hashed = texts_of(texts), found.closing_keys[chosen]
        return self._derived.of_keys(hashed, found.closing_times_us[chosen], self._totals.values(totals)), chosen

    def _counted(self, found: JoinedColumns) -> _Counted:
        """The events of combinations that were in none before, in the order of the combinations."""
        inputs = np.argsort(found.members, axis=1)
        members = np.take_along_axis(found.members, inputs, 1).ravel()
        results = np.repeat(np.arange(len(inputs)), inputs.shape[1])
        places = np.flatnonzero(members >= 0)
        firsts = places[np.sort(np.unique(members[places], return_index=True)[1])]
        rows = self._held.rows_of(members[firsts])
        is_new = self._held.count(rows)
        firsts, rows = firsts[is_new], rows[is_new]
        numbers = inputs.ravel()[firsts]
        values: list[Sequence[Any]] = [()] * len(rows)
        for number, one in enumerate(self.body.inputs):
            columns = [column for column in self.body.columns if column.alias == one.alias]
            some = np.flatnonzero(numbers == number)
            if columns and len(some):
                events = MemberEvents(self._held, rows[some])
                found_values = zip(*(events.values(column) for column in columns), strict=True)
                for place, own in zip(some.tolist(), found_values, strict=True):
                    values[place] = own
        return _Counted(
            results=results[firsts],
            events=list(
                zip(
                    self._held.hashes(rows).tolist(),
                    self._held.keys(rows).to_pylist(),
                    numbers.tolist(),
                    members[firsts].tolist(),
                    values,
                    strict=True,
                )
            ),
        )

    def _count(self, events: Iterator[_CountedEvent]) -> None:
        """Count events in."""
        adding = [self._totals.adding.get(one.alias, []) for one in self.body.inputs]
        for key, text, number, sequence, values in events:
            known = self._open.get(key)
            if known is None:
                known = self._open[key] = text, self._totals.empty()
            total = known[1]
            for (place, added), value in zip(adding[number], values, strict=True):
                total[place] = added(total[place], sequence, value)

    def _texts(self) -> dict[int, str]:
        """The texts of hashed keys, where an event of it is held, or a total."""
        hashes, rows = np.unique(self._held.key_hashes, return_index=True)
        held = dict(zip(hashes.tolist(), self._held.keys(rows).to_pylist(), strict=True))
        return held | {key: text for key, (text, _) in self._open.items()}


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


def _packed(totals: Sequence[Any]) -> bytes:
    """Totals as JSON; sums may have more than 64 bits."""
    try:
        return orjson.dumps(totals)
    except TypeError:
        return json.dumps(totals).encode()


def _part(sections: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): one for name, one in sections.items() if name.startswith(prefix)}

"""Totals of keys that are not over: each event counts once, with the first combination that contains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.emitting import DerivedEventBuilder, MemberEvents
from joins.held_events import HeldEvents
from joins.items import JoinedColumns
from joins.returns import Column, Totals, packed_totals, unpacked_totals
from streams import EventBatch, texts_of

# The hashed key of an event, its key, number of the input, sequence number and values.
_CountedEvent: TypeAlias = tuple[int, str, int, int, Sequence[Any]]


class KeyTotals:
    """Totals of keys that are not over: ``open`` has the text and the totals of each key, by hashed key."""

    def __init__(self, body: JoinBody) -> None:
        self._body = body
        self.columns = Totals(body.columns)
        self.open: dict[int, tuple[str, list[Any]]] = {}

    def change(self, body: JoinBody) -> None:
        """Continue as the totals of another version: totals of both versions continue, new ones begin empty."""
        places = {_what(column): place for place, column in enumerate(self._body.columns)}
        self._body, self.columns = body, Totals(body.columns)
        for key, (text, total) in self.open.items():
            known = [places.get(_what(column)) for column in body.columns]
            fresh = self.columns.empty()
            self.open[key] = text, [fresh[n] if at is None else total[at] for n, at in enumerate(known)]

    def on_close(
        self, found: JoinedColumns, held: HeldEvents, derived: DerivedEventBuilder
    ) -> tuple[EventBatch, NDArray[np.int64]]:
        """An event for each key that is over, with its totals until then, and the numbers of the closings."""
        results, counted = self._counted(found, held)
        ends = np.searchsorted(results, found.closing_places)
        numbers = np.diff(ends, prepend=0).tolist()
        events = iter(counted)
        over: list[tuple[int, str, list[Any]]] = []
        for place, (number, key) in enumerate(zip(numbers, found.closing_keys.tolist(), strict=True)):
            if number:
                self._count(islice(events, number))
            if key in self.open:
                over.append((place, *self.open.pop(key)))
        self._count(events)
        return self.made(over, found, derived)

    def made(
        self, over: Sequence[tuple[int, str, list[Any]]], found: JoinedColumns, derived: DerivedEventBuilder
    ) -> tuple[EventBatch, NDArray[np.int64]]:
        """An event for each of some keys that are over (closing, text, totals), and the numbers of the closings."""
        if not over:
            return EventBatch.from_events([]), np.zeros(0, np.int64)
        places, texts, totals = zip(*over, strict=True)
        chosen = np.array(places, np.int64)
        hashed = texts_of(texts), found.closing_keys[chosen]
        return derived.of_keys(hashed, found.closing_times_us[chosen], self.columns.values(totals)), chosen

    def dump(self) -> bytes:
        """The totals as bytes, to save."""
        return packed_totals([[key, text, total] for key, (text, total) in sorted(self.open.items())])

    def load(self, saved: bytes) -> None:
        """Restore the totals that ``dump`` saved."""
        self.open = {key: (text, total) for key, text, total in unpacked_totals(saved)}

    def _counted(self, found: JoinedColumns, held: HeldEvents) -> tuple[NDArray[np.int64], Sequence[_CountedEvent]]:
        """The events that are in a combination for the first time, after the numbers of these combinations."""
        inputs = np.argsort(found.members, axis=1)
        members = np.take_along_axis(found.members, inputs, 1).ravel()
        results = np.repeat(np.arange(len(inputs)), inputs.shape[1])
        places = np.flatnonzero(members >= 0)
        firsts = places[np.sort(np.unique(members[places], return_index=True)[1])]
        rows = held.rows_of(members[firsts])
        is_new = held.count(rows)
        firsts, rows = firsts[is_new], rows[is_new]
        numbers = inputs.ravel()[firsts]
        return results[firsts], list(
            zip(
                held.hashes(rows).tolist(),
                held.keys(rows).to_pylist(),
                numbers.tolist(),
                members[firsts].tolist(),
                self.values(held, rows, numbers),
                strict=True,
            )
        )

    def values(self, held: HeldEvents, rows: NDArray[np.intp], numbers: NDArray[np.int64]) -> list[Sequence[Any]]:
        """The values of some events, given by their rows in ``held`` and their inputs, that enter their totals."""
        values: list[Sequence[Any]] = [()] * len(rows)
        for number, one in enumerate(self._body.inputs):
            columns = [column for column in self._body.columns if column.alias == one.alias]
            some = np.flatnonzero(numbers == number)
            if columns and len(some):
                events = MemberEvents(held, rows[some])
                found_values = zip(*(events.values(column) for column in columns), strict=True)
                for place, own in zip(some.tolist(), found_values, strict=True):
                    values[place] = own
        return values

    def _count(self, events: Iterator[_CountedEvent]) -> None:
        """Add events to the totals of their keys."""
        adding = [self.columns.adding.get(one.alias, []) for one in self._body.inputs]
        for key, text, number, sequence, values in events:
            known = self.open.get(key)
            if known is None:
                known = self.open[key] = text, self.columns.empty()
            total = known[1]
            for (place, added), value in zip(adding[number], values, strict=True):
                total[place] = added(total[place], sequence, value)


def _what(column: Column) -> tuple[str, str, tuple[str, ...]]:
    """The alias, function and path of a column: everything but its name."""
    return column.alias, column.function, column.path

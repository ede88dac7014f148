"""Totals of keys that are not over. Each event counts once, with the first combination that contains it."""

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
    """The totals of unfinished keys. ``open`` has the text and the total of each key, by its hash."""

    def __init__(self, body: JoinBody) -> None:
        self._body = body
        self.columns = Totals(body.columns)
        self.open: dict[int, tuple[str, list[Any]]] = {}

    def change(self, body: JoinBody) -> None:
        """Continue with the columns of another version. Totals that both versions have continue, others begin empty."""
        places = {_identity_of(column): place for place, column in enumerate(self._body.columns)}
        self._body, self.columns = body, Totals(body.columns)
        for key, (text, total) in self.open.items():
            places_before = [places.get(_identity_of(column)) for column in body.columns]
            fresh = self.columns.empty()
            self.open[key] = text, [fresh[n] if at is None else total[at] for n, at in enumerate(places_before)]

    def on_close(
        self, joined: JoinedColumns, held: HeldEvents, derived: DerivedEventBuilder
    ) -> tuple[EventBatch, NDArray[np.int64]]:
        """Add the events of new results to the totals. Return a derived event with the totals of each key that is over.

        Also return the index of each event's closing in ``joined``.
        """
        results, counted = self._counted(joined, held)
        ends = np.searchsorted(results, joined.closing_places)
        numbers = np.diff(ends, prepend=0).tolist()
        events = iter(counted)
        over: list[tuple[int, str, list[Any]]] = []
        for place, (number, key) in enumerate(zip(numbers, joined.closing_keys.tolist(), strict=True)):
            if number:
                self._count(islice(events, number))
            if key in self.open:
                over.append((place, *self.open.pop(key)))
        self._count(events)
        return self.events_of(over, joined, derived)

    def events_of(
        self, over: Sequence[tuple[int, str, list[Any]]], joined: JoinedColumns, derived: DerivedEventBuilder
    ) -> tuple[EventBatch, NDArray[np.int64]]:
        """Return a derived event with the totals of each key in ``over``, and the indices of the closings.

        An entry of ``over`` has the index of the closing in ``joined``, the text of the key, and its totals.
        """
        if not over:
            return EventBatch.from_events([]), np.zeros(0, np.int64)
        places, texts, totals = zip(*over, strict=True)
        closings = np.array(places, np.int64)
        hashed = texts_of(texts), joined.closing_keys[closings]
        return derived.of_keys(hashed, joined.closing_times_us[closings], self.columns.values(totals)), closings

    def dump(self) -> bytes:
        return packed_totals([[key, text, total] for key, (text, total) in sorted(self.open.items())])

    def load(self, saved: bytes) -> None:
        """Restore the totals that ``dump`` saved."""
        self.open = {key: (text, total) for key, text, total in unpacked_totals(saved)}

    def _counted(self, joined: JoinedColumns, held: HeldEvents) -> tuple[NDArray[np.int64], Sequence[_CountedEvent]]:
        """Mark the events of the results as counted. Return those that were not marked before.

        For each, also return the index of its first combination.
        """
        inputs = np.argsort(joined.members, axis=1)
        members = np.take_along_axis(joined.members, inputs, 1).ravel()
        results = np.repeat(np.arange(len(inputs)), inputs.shape[1])
        places = np.flatnonzero(members >= 0)
        firsts = places[np.sort(np.unique(members[places], return_index=True)[1])]
        rows = held.rows_of(members[firsts])
        is_new = held.mark_counted(rows)
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
        """Return, for each event, the values that it adds to the columns of its input.

        ``rows`` are the rows of the events in ``held``. ``numbers`` are their inputs.
        """
        values: list[Sequence[Any]] = [()] * len(rows)
        for number, join_input in enumerate(self._body.inputs):
            columns = [column for column in self._body.columns if column.alias == join_input.alias]
            event_places = np.flatnonzero(numbers == number)
            if columns and len(event_places):
                events = MemberEvents(held, rows[event_places])
                values_of_events = zip(*(events.values(column) for column in columns), strict=True)
                for place, event_values in zip(event_places.tolist(), values_of_events, strict=True):
                    values[place] = event_values
        return values

    def _count(self, events: Iterator[_CountedEvent]) -> None:
        adding = [self.columns.adding.get(join_input.alias, []) for join_input in self._body.inputs]
        for key, text, number, sequence, values in events:
            key_total = self.open.get(key)
            if key_total is None:
                key_total = self.open[key] = text, self.columns.empty()
            total = key_total[1]
            for (place, added), value in zip(adding[number], values, strict=True):
                total[place] = added(total[place], sequence, value)


def _identity_of(column: Column) -> tuple[str, str, tuple[str, ...]]:
    """Return all properties of a column except its name. Two versions have the same total if these are equal."""
    return column.alias, column.function, column.path

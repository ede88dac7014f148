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

from joins.document import JoinBody
from joins.emitting import DerivedEvents, MemberEvents
from joins.errors import JoinStateError
from joins.held_events import HeldEvents
from joins.items import Item, ItemColumns, JoinedColumns
from joins.ledger import Ledger, Life, Revocable, Said, members_of
from joins.merging import CLOSED, LAST, MARKS, RETRACTED, REVOCABLE, original_ids, original_of
from joins.outputs import Broken, JoinOutput, joined_outputs
from joins.retracting import Removed, absences, hashed, left_alone, retractions_of, total_of
from joins.returns import Column, Totals
from joins.windowed import WindowJoin
from streams import NEVER_US, EventBatch, column_of, texts_of

_FORMAT = 1
_NO_ITEMS = ItemColumns.of([])
_KEPT = 8  # events are forgotten when they are more than this part of those that were ever stored at a time


_NO_EVENTS = EventBatch.from_events([])
_NOTHING = JoinOutput(events=_NO_EVENTS, passed_on=_NO_EVENTS)
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
        self._open: dict[int, tuple[str, list[Any]]] = {}  # totals of keys that are not over, with their texts
        self._ledger: Ledger | None = None  # from the first event on that may be retracted
        self.is_suspended = False
        self._newest_keys: dict[int, int] = {}  # of inputs whose events of a key come together
        self._numbers = {
            f"{one.alias}{mark}": (number, mark) for number, one in enumerate(body.inputs) for mark in MARKS
        }

    @property
    def now_us(self) -> int | None:
        """How far time has come; None before the first event."""
        return self._join.now_us

    def measures(self) -> dict[str, int]:
        """Counts, as ``JoinStats`` has them."""
        return {**asdict(self._join.stats), "open_totals": len(self._open)}

    def process(self, batch: EventBatch) -> JoinOutput:
        """Take merged events in; of what an input of another version has handed on only the time counts."""
        if not len(batch) or self.is_suspended:
            return _NOTHING
        is_known, until_us = np.array([name in self._numbers for name in batch.type_names]), int(batch.time_us.max())
        batch = batch.take(np.flatnonzero(is_known[batch.type_codes]))
        marks = [self._numbers.get(name, (0, ""))[1] for name in batch.type_names]
        if self._ledger is None and any(mark.startswith(REVOCABLE) for mark in marks):
            self._ledger = self._new_ledger()
        retractions = np.flatnonzero(np.array([mark == RETRACTED for mark in marks], np.bool_)[batch.type_codes])
        if not len(retractions):
            return self._taken(batch, until_us)
        outputs, begin = [], 0
        for row in retractions.tolist():
            outputs.append(self._taken(batch.slice(begin, row - begin), int(batch.time_us[: row + 1].max())))
            outputs.append(self._retracted(batch.slice(row, 1)))
            begin = row + 1
        return joined_outputs([*outputs, self._taken(batch.slice(begin), until_us)])

    def _taken(self, batch: EventBatch, until_us: int) -> JoinOutput:
        """Take merged events in that take nothing back, and let time come so far."""
        if self.is_suspended:
            return _NOTHING
        items, rows = self._items(batch)
        is_event, items = items.kinds == Item.EVENT, items.with_time(until_us)
        first, now_us = self._join.next_sequence, self._join.now_us
        taken = rows[is_event]
        self._held.add(first + np.arange(len(taken)), batch if len(taken) == len(batch) else batch.take(taken))
        found = self._join.push(items)
        if self._ledger is None:
            return self._output(found, items, first)
        broken = set((np.cumsum(is_event) - 1)[found.violations].tolist())
        added = self._noted_events(self._ledger, batch, taken, now_us, first, broken)
        output = self._output(found, items, first)
        if self._ledger is not None:
            for sequence, event in added:
                self._fix(self._ledger.forget_over(sequence, is_over=self._join.is_over(event.key)))
            self._pass_time(self._ledger)
        return output

    def _noted_events(
        self,
        ledger: Ledger,
        batch: EventBatch,
        rows: NDArray[np.intp],
        now_us: int | None,
        first: int,
        broken: set[int],
    ) -> list[tuple[int, Revocable]]:
        """Note the events of some rows that may be retracted; not those that contradict a finished key.

        Args:
            ledger: Where.
            batch: Holds them.
            rows: Of all events.
            now_us: How far time had come before.
            first: Sequence number of the first one.
            broken: Places among the rows of those that joined nothing.
        """
        known = [self._numbers.get(name, (0, "")) for name in batch.type_names]
        is_revocable = np.array([mark.startswith(REVOCABLE) for _, mark in known], np.bool_)[batch.type_codes[rows]]
        chosen = [place for place in np.flatnonzero(is_revocable).tolist() if place not in broken]
        if not chosen:
            return []
        came_us = np.maximum(np.maximum.accumulate(batch.time_us), NEVER_US if now_us is None else now_us)
        at = rows[chosen]
        ids = original_ids(batch.columns.column("id").take(column_of(at))).to_pylist()
        added = [
            (first + place, Revocable(known[code][0], key, identity, time_us))
            for place, code, key, identity, time_us in zip(
                chosen,
                batch.type_codes[at].tolist(),
                batch.key_hashes[at].tolist(),
                ids,
                came_us[at].tolist(),
                strict=True,
            )
        ]
        for sequence, event in added:
            ledger.add_event(sequence, event)
        return added

    def _new_ledger(self) -> Ledger:
        return Ledger([one.window for one in self.body.inputs], keeps_all=self.body.emit == "on_close")

    def _pass_time(self, ledger: Ledger) -> None:
        """Forget what can no longer be retracted; of what stays each event has taken part in something for good."""
        if (now_us := self._join.now_us) is not None:
            self._fix(ledger.pass_time(now_us))

    def _fix(self, said: Sequence[Said]) -> None:
        """Note that events have taken part in something for good: in combinations that nothing can take back."""
        if self.body.emit == "each" and self.body.reporting and (members := members_of(said)):
            self._held.count(self._held.rows_of(np.array(members, np.int64)))

    def _retracted(self, row: EventBatch) -> JoinOutput:
        """Take an event out of the join, and what was said of it back; time has come to the retraction."""
        if self.is_suspended:
            return _NOTHING
        (event,) = row.to_events()
        number, _ = self._numbers[event.type]
        original, key, ledger = original_of(event), int(row.key_hashes[0]), self._ledger
        sequence = None if ledger is None else ledger.find(number, key, str(original.data.get("retracts")))
        if ledger is None or sequence is None:
            late = Broken(event=original, alias=self.body.inputs[number].alias)
            return JoinOutput(events=_NO_EVENTS, passed_on=_NO_EVENTS, late_retractions=(late,))
        now_us, removed = self._join.now_us or 0, ledger.take_back(sequence)
        alone = left_alone(ledger, self._join, self._held, self.body.reporting, (key, sequence), removed)
        made = [retractions_of(self._derived, [said for _, said in removed], original.id, event.key, now_us)]
        made += self._said_alone(ledger, key, alone, now_us)
        made += self._corrected(removed, key, original.id, now_us)
        is_over = bool(removed) and all(life.is_over for life, _ in removed)
        is_over = is_over and ledger.current(key) is None and self._join.is_over(key)
        ledger.tidy(key)
        events = EventBatch.joined([one for one in made if len(one)] or [_NO_EVENTS])
        passed_on = events
        if is_over and len(events):
            passed_on = EventBatch.joined([events, EventBatch.of_ended(row.key_hashes, np.array([now_us], np.int64))])
        rest = self._output(self._join.retract(key, number, sequence), _NO_ITEMS, self._join.next_sequence)
        return joined_outputs([JoinOutput(events=events, passed_on=passed_on), rest])

    def _said_alone(
        self, ledger: Ledger, key: int, alone: Sequence[tuple[Life, int, int]], now_us: int
    ) -> Iterator[EventBatch]:
        """What is reported of events that are left alone; totals contain it."""
        if not alone:
            return
        found = absences(alone, len(self.body.inputs), now_us)
        is_each = self.body.emit == "each"
        made = self._derived.of_combinations(self._held, found) if is_each else None
        ids = [""] * len(alone) if made is None else made.columns.column("id").to_pylist()
        for (life, _, _), members, identity in zip(alone, found.members.tolist(), ids, strict=True):
            ledger.append(life, key, Said(tuple(members), identity, self._type))
        if made is not None:
            yield made

    def _corrected(self, removed: Removed, key: int, behind: str, now_us: int) -> Iterator[EventBatch]:
        """Of keys that are finished: that their totals do not hold, and those that do."""
        for life in {id(life): life for life, _ in removed if life.total is not None}.values():
            assert life.total is not None, "others are left out"
            yield self._derived.of_retractions([life.total], behind, life.key, now_us)
            life.total = None
            if life.said:
                total = total_of(life, None, self._held, self._totals, self.body)
                times_us = np.array([now_us], np.int64)
                made = self._derived.of_keys(hashed(life.key, key), times_us, self._totals.values([total]), behind)
                life.total = made.columns.column("id").to_pylist()[0], self._type
                yield made

    @property
    def _type(self) -> str:
        """Of the events of the join."""
        return self.body.event_type or self.name

    def _note(self, ledger: Ledger, found: JoinedColumns, made: EventBatch) -> None:
        """Note the combinations that became events, and which keys are finished, in their order."""
        ids, texts = (made.columns.column(name).to_pylist() for name in ("id", "key"))
        keys, members, done = made.key_hashes.tolist(), found.members.tolist(), 0
        fixed: list[Said] = []
        ends = zip(found.closing_places.tolist(), found.closing_keys.tolist(), strict=True)
        for place, closed in [*ends, (len(ids), None)]:
            for number in range(done, place):
                said = Said(tuple(members[number]), ids[number], self._type)
                if not ledger.add_said((keys[number], texts[number]), said):
                    fixed.append(said)
            done = place
            if closed is not None:
                fixed += ledger.finish(closed)
        self._fix(fixed)

    def _on_close_noted(self, ledger: Ledger, found: JoinedColumns) -> tuple[EventBatch, NDArray[np.int64]]:
        """As ``_on_close``, of combinations that are noted."""
        rows = self._held.rows_of(found.members.max(axis=1)) if len(found.members) else np.zeros(0, np.intp)
        keys, texts = self._held.hashes(rows).tolist(), self._held.keys(rows).to_pylist()
        members, done, over = found.members.tolist(), 0, list[tuple[int, str, list[Any], Life | None]]()
        ends = zip(found.closing_places.tolist(), found.closing_keys.tolist(), strict=True)
        for number, (place, closed) in enumerate([*ends, (len(members), None)]):
            for result in range(done, place):
                ledger.add_said((keys[result], texts[result]), Said(tuple(members[result])))
            done = place
            if closed is None:
                continue
            life, base = ledger.current(closed), self._open.pop(closed, None)
            text = base[0] if base is not None else life.key if life is not None and life.said else None
            if text is not None:
                total = total_of(life, None if base is None else base[1], self._held, self._totals, self.body)
                over.append((number, text, total, life))
            ledger.finish(closed)
        if not over:
            return _NO_EVENTS, np.zeros(0, np.int64)
        places, of, totals, lives = zip(*over, strict=True)
        chosen = np.array(places, np.int64)
        hashes = texts_of(of), found.closing_keys[chosen]
        made = self._derived.of_keys(hashes, found.closing_times_us[chosen], self._totals.values(totals))
        for life, identity in zip(lives, made.columns.column("id").to_pylist(), strict=True):
            if life is not None:
                life.total = identity, self._type
        return made, chosen

    def _needed(self) -> NDArray[np.int64]:
        """Sequence numbers of the events whose data may be needed, ascending."""
        stored = self._join.held_sequences()
        if self._ledger is None:
            return stored
        return np.union1d(stored, np.array(sorted(self._ledger.sequences()), np.int64))

    def advance_time(self, watermark_us: int) -> JoinOutput:
        """No event before a time comes any more."""
        if self.is_suspended:
            return _NOTHING
        items = ItemColumns.of([(Item.TIME, 0, 0, watermark_us)])
        output = self._output(self._join.push(items), items, self._join.next_sequence)
        if self._ledger is not None:
            self._pass_time(self._ledger)
        return output

    def change(self, body: JoinBody, version: int) -> JoinOutput:
        """Go on as another version of the join, with what is held (``keeps_rows``).

        What is outside of a smaller window leaves here, at the time that the join has come to; what has left does not
        come back. A key that an input has finished stays so. What finishes keys from here on does so by the events that
        come from here on. A total that is in both versions continues; another one is of the events from here on.

        Returns:
            What that leads to.
        """
        before, self.body, self.version = self.body, body, version
        self._derived = DerivedEvents(body, self.name, version)
        self._totals = Totals(body.columns)
        places = {_what(column): place for place, column in enumerate(before.columns)}
        for key, (text, total) in self._open.items():
            known = [places.get(_what(column)) for column in body.columns]
            fresh = self._totals.empty()
            self._open[key] = text, [fresh[n] if at is None else total[at] for n, at in enumerate(known)]
        self._newest_keys = {
            number: key for number, key in self._newest_keys.items() if "clustered" in body.inputs[number].closings
        }
        if self._ledger is not None:
            self._ledger.windows = [one.window for one in body.inputs]
        return self._output(self._join.change([one.window for one in body.inputs]), _NO_ITEMS, self._join.next_sequence)

    def finish(self) -> JoinOutput:
        """No event comes any more: every input finishes every key."""
        now_us = self._join.now_us
        if now_us is None or self.is_suspended:
            return _NOTHING
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
        if self._ledger is not None:
            self._ledger.drop(set(gone.tolist()))
        self._newest_keys = {number: key for number, key in self._newest_keys.items() if key not in set(gone.tolist())}

    def keys(self) -> NDArray[np.uint64]:
        """Hashed keys of which something is known."""
        others = [*self._open, *self._newest_keys.values(), *(() if self._ledger is None else self._ledger.keys)]
        return np.unique(np.concatenate([self._join.keys(), np.array(others, np.uint64)]))

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The state as a JSON object and sections by name."""
        head, arrays = self._join.dump()
        totals = [[key, text, total] for key, (text, total) in sorted(self._open.items())]
        state = {
            "format": _FORMAT,
            "join": head,
            "newest_keys": [[number, key] for number, key in sorted(self._newest_keys.items())],
            **({"suspended": True} if self.is_suspended else {}),
        }
        held = self._held.dump(self._needed())
        sections = {f"join/{name}": array for name, array in arrays.items()}
        return state, {
            **sections,
            **{f"held/{name}": one for name, one in held.items()},
            "totals": _packed(totals),
            **({} if self._ledger is None else {"ledger": orjson.dumps(self._ledger.dump())}),
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
            self.is_suspended = head.get("suspended", False)
            if "ledger" in sections:
                self._ledger = self._new_ledger()
                self._ledger.load(orjson.loads(sections["ledger"]))
            self._open = {key: (text, total) for key, text, total in json.loads(sections["totals"])}
        except (KeyError, ValueError) as error:
            raise JoinStateError(f"the saved join {self.name!r} cannot be read: {error}") from error

    def _items(self, batch: EventBatch) -> tuple[ItemColumns, NDArray[np.intp]]:
        """The items of merged events, and of each the row that it is of."""
        known = [self._numbers.get(name, (0, "")) for name in batch.type_names]  # others have no rows here
        inputs = np.array([number for number, _ in known], np.uint8)[batch.type_codes]
        is_event = np.array([mark != CLOSED for _, mark in known])[batch.type_codes]
        closes = np.array(
            [mark.endswith((LAST, CLOSED)) or "unique" in self.body.inputs[number].closings for number, mark in known]
        )
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
        is_suspended = self.body.late == "fail" and len(found.violations) > 0
        if is_suspended:
            found = found.until(int(found.violations[0]))
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
            if self._ledger is not None:
                self._note(self._ledger, found, made)
        elif self._ledger is not None:
            made, places = self._on_close_noted(self._ledger, found)
        else:
            made, places = self._on_close(found)
        if is_suspended:
            self._suspend()
        elif self._held.is_sparse(
            self._join.stored + (0 if self._ledger is None else self._ledger.size), self._join.most_stored // _KEPT
        ):
            self._held = self._held.only(self._needed())
        passed_on = _with_ends(made, places, found, is_each=is_each)
        return JoinOutput(events=made, passed_on=passed_on, broken=broken, is_suspended=is_suspended)

    def _suspend(self) -> None:
        """Hold nothing any more, and take nothing in."""
        self.is_suspended = True
        self._join.drop(self._join.keys())
        self._held, self._open, self._newest_keys, self._ledger = HeldEvents.empty(), {}, {}, None

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


def _what(column: Column) -> tuple[str, str, tuple[str, ...]]:
    """What a column says, under whatever name."""
    return column.alias, column.function, column.path


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

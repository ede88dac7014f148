"""What a join remembers for retractions: results with retractable events, and the rows that these results need.

The memory begins with the first retractable event, so a join without such events does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from joins.document import JoinBody
from joins.emitting import DerivedEventBuilder
from joins.held_events import HeldEvents
from joins.items import ItemColumns, JoinedColumns, Why, are_events
from joins.merging import REVOCABLE, alias_and_mark, original_ids, original_of
from joins.outputs import JoinOutput
from joins.retracting.ledger import Ledger, Life, ReportedCombination, Revocable, members_of
from joins.totalling import KeyTotals
from joins.windowed import WindowJoin
from streams import NEVER_US, EventBatch, column_of, texts_of, zeros_of

_NO_EVENTS = EventBatch.from_events([])


class Retractions:
    """Processes the retractions of one join: takes back results with a retracted event, and corrects totals.

    Its ``ledger`` has the retractable events and the combinations that contain them.
    """

    def __init__(self, body: JoinBody, join: WindowJoin, derived: DerivedEventBuilder, totals: KeyTotals) -> None:
        self._body, self._join, self._derived, self._totals = body, join, derived, totals
        self.ledger = Ledger(_spans_us(body), keeps_all=body.emit == "on_close")
        self._fresh: list[tuple[int, int]] = []  # new events that ``settle`` has not checked yet, with their keys

    def change(self, body: JoinBody, derived: DerivedEventBuilder) -> None:
        """Continue with another version of the join, which may change how long events can be retracted."""
        self._body, self._derived = body, derived
        self.ledger.change(_spans_us(body))

    def begin(self, held: HeldEvents) -> None:
        """Begin with the first retractable event. Results before it cannot be retracted.

        Therefore the events of these results are marked in ``held`` as joined for good.
        """
        self.settle_joined(held, self._join.joined_sequences())

    def settle_joined(self, held: HeldEvents, sequences: NDArray[np.int64]) -> None:
        """Mark events in ``held`` as joined for good, because a result that cannot be retracted contains them.

        This has an effect only if the join reports unjoined events.
        """
        if self._notes_absences:
            held.mark_counted(held.rows_of(sequences))

    def note_events(
        self,
        source: tuple[EventBatch, NDArray[np.intp]],
        items: ItemColumns,
        first: int,
        violations: NDArray[np.int32],
        came_us: int | None,
    ) -> None:
        """Add the retractable events among the items to the ledger. Events of ``violations`` are left out.

        ``source`` has a batch and the row of each event in the batch. ``first`` is the sequence number of the first
        event. ``came_us`` is the time of the join before these items.
        """
        batch, is_event = source[0], are_events(items)
        rows, broken = source[1][: np.count_nonzero(is_event)], set((np.cumsum(is_event) - 1)[violations].tolist())
        inputs = {join_input.alias: number for number, join_input in enumerate(self._body.inputs)}
        numbers = [
            inputs.get(alias, -1) if mark.startswith(REVOCABLE) else -1
            for alias, mark in map(alias_and_mark, batch.type_names)
        ]
        of_rows = np.array(numbers, np.int64)[batch.type_codes[rows]]
        revocable = [place for place in np.flatnonzero(of_rows >= 0).tolist() if place not in broken]
        if not revocable:
            return
        times_us = np.maximum(np.maximum.accumulate(batch.time_us), NEVER_US if came_us is None else came_us)
        at = rows[revocable]
        events = zip(
            revocable,
            of_rows[revocable].tolist(),
            batch.key_hashes[at].tolist(),
            original_ids(batch.columns.column("id").take(column_of(at))).to_pylist(),
            times_us[at].tolist(),
            strict=True,
        )
        for place, number, key, identity, time_us in events:
            self.ledger.add_event(first + place, Revocable(number, key, identity, time_us))
            self._fresh.append((first + place, key))

    def note(self, results: JoinedColumns, events: EventBatch, held: HeldEvents) -> None:
        """Add the results and their derived ``events`` to the ledger. Finish the keys that are over."""
        ids, texts = (events.columns.column(name).to_pylist() for name in ("id", "key"))
        keys, members, done = events.key_hashes.tolist(), results.members.tolist(), 0
        fixed: list[ReportedCombination] = []
        ends = zip(results.closing_places.tolist(), results.closing_keys.tolist(), strict=True)
        for place, closed in [*ends, (len(ids), None)]:
            for number in range(done, place):
                combination = ReportedCombination(tuple(members[number]), ids[number], self._derived.event_type)
                if not self.ledger.add_reported((keys[number], texts[number]), combination):
                    fixed.append(combination)
            done = place
            if closed is not None:
                fixed += self.ledger.finish(closed)
        self._fix(fixed, held)

    def on_close(self, results: JoinedColumns, held: HeldEvents) -> tuple[EventBatch, NDArray[np.int64]]:
        """Add the results to the ledger. Return a derived event with the totals of each key that is over.

        Also return the index of each event's closing in the results.
        """
        rows = held.rows_of(results.members.max(axis=1)) if len(results.members) else np.zeros(0, np.intp)
        keys, texts = held.hashes(rows).tolist(), held.keys(rows).to_pylist()
        members, done = results.members.tolist(), 0
        over, lives = list[tuple[int, str, list[Any]]](), list[Life | None]()
        ends = zip(results.closing_places.tolist(), results.closing_keys.tolist(), strict=True)
        for number, (place, closed) in enumerate([*ends, (len(members), None)]):
            for result in range(done, place):
                self.ledger.add_reported((keys[result], texts[result]), ReportedCombination(tuple(members[result])))
            done = place
            if closed is None:
                continue
            life, base = self.ledger.current(closed), self._totals.open.pop(closed, None)
            text = base[0] if base is not None else life.key if life is not None and life.reported else None
            if text is not None:
                total = total_of(life, None if base is None else base[1], held, self._totals, self._body)
                over.append((number, text, total))
                lives.append(life)
            self.ledger.finish(closed)
        events, places = self._totals.events_of(over, results, self._derived)
        for life, identity in zip(lives, events.columns.column("id").to_pylist(), strict=True):
            if life is not None:
                life.total = identity, self._derived.event_type
        return events, places

    def settle(self, held: HeldEvents) -> None:
        """Forget events and combinations that can no longer be retracted, and mark their events as joined for good."""
        for sequence, key in self._fresh:
            if self._join.is_over(key):
                self._fix(self.ledger.forget_over(sequence), held)
        self._fresh = []
        if (now_us := self._join.now_us) is not None:
            self._fix(self.ledger.pass_time(now_us), held)

    def needed(self) -> NDArray[np.int64]:
        """Return the sequence numbers of the events that the join or a retraction may need, ascending."""
        others = np.array(sorted(self.ledger.sequences()), np.int64)
        return np.union1d(self._join.held_sequences(), others)

    def take_back(self, number: int, row: EventBatch, held: HeldEvents) -> tuple[JoinOutput, JoinedColumns] | None:
        """Retract an event of the input ``number``. ``row`` is the retraction. The caller has advanced time to it.

        Return the derived events, and the results of removing the stored event. Return None if the event is unknown or
        can no longer be retracted.
        """
        (event,) = row.to_events()
        original, key, ledger = original_of(event), int(row.key_hashes[0]), self.ledger
        sequence = ledger.find(number, key, str(original.data.get("retracts")))
        if sequence is None:
            return None
        now_us, removed = self._join.now_us or 0, ledger.take_back(sequence)
        alone = left_alone(ledger, self._join, held, self._body.reporting, (key, sequence), removed)
        retracted = [
            (combination.event_id, combination.event_type) for _, combination in removed if combination.event_id
        ]
        batches = [self._derived.of_retractions(retracted, original.id, event.key, now_us)]
        batches += self._reported_alone(key, alone, now_us, held)
        batches += self._corrected(removed, (key, original.id), now_us, held)
        is_over = bool(removed) and all(life.is_over for life, _ in removed)
        is_over = is_over and ledger.current(key) is None and self._join.is_over(key)
        ledger.tidy(key)
        events = EventBatch.joined([batch for batch in batches if len(batch)] or [_NO_EVENTS])
        passed_on = events
        if is_over and len(events):
            passed_on = EventBatch.joined([events, EventBatch.of_ended(row.key_hashes, np.array([now_us], np.int64))])
        return JoinOutput(events=events, passed_on=passed_on), self._join.retract(key, number, sequence)

    def dump(self) -> bytes:
        """Return the state to save: the ledger."""
        return orjson.dumps(self.ledger.dump())

    def load(self, saved: bytes) -> None:
        """Restore the ledger that ``dump`` saved. Raise ``JoinStateError`` if it is damaged."""
        self.ledger.load(orjson.loads(saved))

    @property
    def _notes_absences(self) -> bool:
        """Whether the join reports unjoined events, so that a mark in ``held`` means that an event has joined for good.

        In a join with totals, the mark means that the event was counted.
        """
        return self._body.emit == "each" and bool(self._body.reporting)

    def _fix(self, combinations: Sequence[ReportedCombination], held: HeldEvents) -> None:
        """Mark the events of ``combinations`` as joined for good, as the combinations can no longer be retracted."""
        if self._notes_absences and (members := members_of(combinations)):
            held.mark_counted(held.rows_of(np.array(members, np.int64)))

    def _reported_alone(
        self, key: int, alone: Sequence[tuple[Life, int, int]], now_us: int, held: HeldEvents
    ) -> Iterator[EventBatch]:
        """Report events that are in no combination after a retraction.

        With totals, they are only added to the ledger.
        """
        if not alone:
            return
        results = absences(alone, len(self._body.inputs), now_us)
        events = self._derived.of_combinations(held, results) if self._body.emit == "each" else None
        ids = [""] * len(alone) if events is None else events.columns.column("id").to_pylist()
        for (life, _, _), members, identity in zip(alone, results.members.tolist(), ids, strict=True):
            self.ledger.append(life, key, ReportedCombination(tuple(members), identity, self._derived.event_type))
        if events is not None:
            yield events

    def _corrected(
        self, removed: Removed, cause: tuple[int, str], now_us: int, held: HeldEvents
    ) -> Iterator[EventBatch]:
        """Retract the emitted totals of finished lives, and emit new ones if combinations remain.

        ``cause`` is the hashed key and the id of the retraction.
        """
        key, cause_id = cause
        for life in {id(life): life for life, _ in removed}.values():
            if life.total is None:
                continue
            replaced, life.total = life.total, None
            yield self._derived.of_retractions([replaced], cause_id, life.key, now_us)
            if life.reported:
                total = total_of(life, None, held, self._totals, self._body)
                keys = texts_of([life.key]), np.array([key], np.uint64)
                values = self._totals.columns.values([total])
                events = self._derived.of_keys(keys, np.array([now_us], np.int64), values, replaced[0])
                life.total = events.columns.column("id").to_pylist()[0], self._derived.event_type
                yield events


def _spans_us(body: JoinBody) -> list[int | None]:
    return [join_input.revocable_us for join_input in body.inputs]


Removed = Sequence[tuple[Life, ReportedCombination]]
"""Combinations that were removed from the ledger, and the lives that they were in."""


def left_alone(
    ledger: Ledger,
    join: WindowJoin,
    held: HeldEvents,
    reporting: Sequence[int],
    event: tuple[int, int],
    removed: Removed,
) -> list[tuple[Life, int, int]]:
    """Return the events that a retraction has left without a combination and that can never join again.

    They are reported as unjoined, and sorted by sequence number. An event that is still stored can join, so it is
    marked as unjoined in ``join`` and left out. An event with a mark in ``held`` is left out too, because a result that
    cannot be retracted contains it. ``event`` is the hashed key and sequence number of the retracted event. ``removed``
    has its combinations, which are no longer in the ledger. Each returned event has three values: the life of its key,
    its input and its sequence number.
    """
    key, sequence = event
    others, candidates = ledger.members_of_key(key), dict[int, tuple[Life, int, int]]()
    for life, combination in removed:
        for number in reporting:
            member = combination.members[number]
            if member >= 0 and member != sequence and member not in others:
                candidates[member] = life, number, member
    alone = []
    for _, (life, number, member) in sorted(candidates.items()):
        is_fixed = held.is_counted(held.rows_of(np.array([member], np.int64)))[0]
        if not is_fixed and not join.unjoin(key, number, member):
            alone.append((life, number, member))
    return alone


def absences(alone: Sequence[tuple[Life, int, int]], inputs: int, time_us: int) -> JoinedColumns:
    """Return results that report the events in ``alone`` (see ``left_alone``) as unjoined."""
    members = np.full((len(alone), inputs), -1, np.int64)
    for place, (_, number, sequence) in enumerate(alone):
        members[place, number] = sequence
    return zeros_of(
        JoinedColumns,
        0,
        members=members,
        result_times_us=np.full(len(alone), time_us, np.int64),
        result_items=len(alone),
        result_whys=np.full(len(alone), Why.BY_RETRACTION, np.uint8),
    )


def total_of(
    life: Life | None, base: list[Any] | None, held: HeldEvents, totals: KeyTotals, body: JoinBody
) -> list[Any]:
    """Return the totals of a life of a key, over the events of its combinations.

    Each event counts once, in the order of arrival. Events with a mark in ``held`` are left out, because they were
    counted before the ledger began. ``base`` is their total, or None if there are none.
    """
    total = totals.columns.empty() if base is None else base
    combinations = () if life is None else life.reported.values()
    sequences = np.array(members_of(combinations), np.int64)
    rows = held.rows_of(sequences)
    is_fresh = ~held.is_counted(rows)
    sequences, rows = sequences[is_fresh], rows[is_fresh]
    input_of = {member: number for combination in combinations for number, member in enumerate(combination.members)}
    numbers: NDArray[np.int64] = np.array([input_of[member] for member in sequences.tolist()], np.int64)
    values = totals.values(held, rows, numbers)
    for sequence, number, event_values in zip(sequences.tolist(), numbers.tolist(), values, strict=True):
        for (place, added), value in zip(
            totals.columns.adding.get(body.inputs[number].alias, []), event_values, strict=True
        ):
            total[place] = added(total[place], sequence, value)
    return total

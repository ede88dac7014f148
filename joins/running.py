"""A running join, which converts merged events of its inputs to events of its derived stream.

The merged events arrive in one order: by time, then by input, then by arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from joins.combinations import Conditional, Conditions, UnkeyedEvents, unconditional
from joins.costs.observing import StateObserver
from joins.document import JoinBody
from joins.emitting import DerivedEventBuilder
from joins.errors import JoinStateError
from joins.figures import numbers_of
from joins.finished_keys import FinishedKeys
from joins.finished_ranges import FinishedRanges
from joins.items import Item, ItemColumns, JoinedColumns, are_events, are_late, with_late
from joins.limiting import ResultAccount
from joins.merging import AGAIN, RANGE, original_of
from joins.outer import decided_by_the_end
from joins.outputs import Broken, JoinOutput, Stop, joined_outputs, stopped
from joins.rows import JoinRows, part_of
from joins.waiting.inputs import Arrivals
from joins.windowed import MOST_RESULTS, WindowJoin
from streams import RETRACTED, EventBatch, KeyRange, SpilledFiles

_FORMAT = 1
_NO_ITEMS = ItemColumns.of([])


class JoinRun:
    """A running join in one shard. It turns merged events of its inputs into derived events.

    ``files`` stores the rows that do not fit into memory. If it is None, they are in a scratch folder. ``conditions``
    compiles the condition of the join.
    """

    def __init__(
        self,
        body: JoinBody,
        name: str,
        version: int,
        files: SpilledFiles | None = None,
        conditions: Conditions = unconditional,
    ) -> None:
        self.body, self.name, self.version = body, name, version
        self.conditions = conditions
        self._where = Conditional.of(body, conditions)
        self._account = ResultAccount(body.results)
        self._join = WindowJoin(
            [join_input.window for join_input in body.inputs],
            outer=body.reporting,
            optional=body.optional,
            reports_all=self._where is not None,
        )
        self.rows = JoinRows(self._join, body, files or SpilledFiles(), f"{name} {version}")
        self._derived = DerivedEventBuilder(body, name, version)
        self._limit()
        self._observer = StateObserver.of(body)
        self.is_suspended = False
        self._lost: str | None = None
        self._has_reported_loss = False
        self._finished = FinishedKeys(body)
        self._arrivals = Arrivals(len(body.inputs))
        self._unkeyed = UnkeyedEvents(body)

    @property
    def has_stopped(self) -> bool:
        """Whether the join accepts no more events, because it is suspended or has lost rows."""
        return self.is_suspended or self._lost is not None

    def lose(self, reason: str) -> None:
        """Stop for good because rows on disk are missing. The next output has ``reason``, a sentence."""
        self._lost = reason

    def refuse(self, reason: str) -> None:
        """Stop for good and drop all state, because the join would store more than it may.

        The next output has ``reason``.
        """
        if not self.has_stopped:
            self._suspend()
            self._lost = reason

    def measures(self) -> dict[str, int]:
        """Return the counts of ``JoinStats`` over memory and disk together, and the numbers that ``figures`` reads."""
        figures = numbers_of(self.body, self._observer, self._join.stored_by_input)
        counts = {**asdict(self._join.stats), "open_totals": len(self.rows.totals.open), **figures}
        counts |= self.rows.measures()
        counts["violations"] += self._finished.broken
        counts |= self._unkeyed.measures()
        counts |= {} if self._where is None else self._where.counted(counts)
        counts |= self._account.measures()
        counts |= {"other_version": self._finished.other_version} if self._finished.other_version else {}
        if self.body.waits:
            counts |= self._arrivals.measures(self.body, self._join.stored_by_input)
        return self.rows.counted(counts)

    def process(self, batch: EventBatch) -> JoinOutput:
        """Process merged events. Events of versions that read their input in another way only advance time.

        Raise ``StateLost`` if rows on disk are gone.
        """
        if self.rows.retractions is None and self._finished.are_revocable(batch.type_names) and not self.has_stopped:
            self.rows.begin_retractions(self._derived)
            self._limit()
        is_special = np.array([name.endswith((RANGE, AGAIN, RETRACTED)) for name in batch.type_names], np.bool_)
        if not is_special.any():
            return self._process(batch)
        outputs, first = [], 0
        for row in np.flatnonzero(is_special[batch.type_codes]).tolist():
            row_batch = batch.slice(row, 1)
            is_retraction = batch.type_names[batch.type_codes[row]].endswith(RETRACTED)
            outputs.append(self._process(batch.slice(first, row - first)))
            outputs.append(self._take_back(row_batch) if is_retraction else self._finish_range(row_batch))
            first = row + 1
        return joined_outputs([*outputs, self._process(batch.slice(first))])

    def _process(self, batch: EventBatch) -> JoinOutput:
        """Process merged events, none of which finishes a range of keys or is a retraction."""
        if not len(batch) or self.has_stopped:
            return self._empty_output()
        until_us, batch = int(batch.time_us.max()), self._finished.own_events(batch)
        cuts = self.rows.cuts(batch.key_hashes)
        parts = []
        for first, last in zip([0, *cuts], [*cuts, len(batch)], strict=True):
            part = batch.slice(first, last - first)
            parts.append(self._processed(part, int(part.time_us.max()) if last < len(batch) else until_us))
            if parts[-1].is_suspended:
                break
        self._finished.forget_implied(self._join, self.keys)
        return joined_outputs(parts)

    def _finish_range(self, batch: EventBatch) -> JoinOutput:
        """Process a merged event by which an input finishes a range of keys, or by which its keys begin again.

        The known keys of the range are closed in numeric order.
        """
        time_us = int(batch.time_us[0])
        parts = [self.advance_time(time_us)]
        if not self.has_stopped and len(self._finished.own_events(batch)):
            (kind,), (written,) = (batch.columns.column(name).to_pylist() for name in ("type", "data"))
            number, mark = self._finished.marked_inputs[kind]
            if mark == AGAIN:
                return joined_outputs([*parts, *self._begun_again(number)])
            self.rows.expire(self._join.now_us or time_us)
            keys = self._finished.ranges.finish(number, KeyRange.from_json(orjson.loads(written)), self.keys())
            split = np.split(keys, self.rows.cuts(keys))
            parts += [self._closed(part, [number], time_us, Item.REMINDER) for part in split]
            self._finished.forget_implied(self._join, self.keys)
        return joined_outputs(parts)

    def _take_back(self, batch: EventBatch) -> JoinOutput:
        """Process a retraction. The batch is a single merged event, which names the retracted event."""
        passed = self.advance_time(int(batch.time_us[0]))
        if self.has_stopped or not len(self._finished.own_events(batch)):
            return passed
        (kind,) = batch.columns.column("type").to_pylist()
        number, _ = self._finished.marked_inputs[kind]
        self.rows.settle(batch.key_hashes)
        retraction = None
        if self.rows.retractions is not None:
            self.rows.retractions.settle(self.rows.held)
            retraction = self.rows.retractions.take_back(number, batch, self.rows.held)
        if retraction is None:
            late = Broken(event=original_of(batch.to_events()[0]), alias=self.body.inputs[number].alias)
            return joined_outputs([passed, replace(self._empty_output(), late_retractions=(late,))])
        retracted, follows = retraction
        return joined_outputs([passed, retracted, self._output(follows, _NO_ITEMS, self._join.next_sequence)])

    def _begun_again(self, number: int) -> Iterator[JoinOutput]:
        """End all keys of the join and forget finished ranges, because the keys of the input ``number`` begin again."""
        if self._finished.ranges.are_of(number):  # otherwise another input has already restarted the keys
            yield self._over(is_over=False)
            keys = self.keys()
            self.drop(np.ones(len(keys), np.bool_), keys)
            self._finished.ranges = FinishedRanges(len(self.body.inputs))

    def _processed(self, batch: EventBatch, until_us: int) -> JoinOutput:
        """Process merged events, and advance time to ``until_us``. The rows of their keys fit into memory."""
        newest_keys = np.array(list(self._finished.newest.values()), np.uint64)
        self.rows.load_keys(np.concatenate([batch.key_hashes, newest_keys]), until_us)
        items, rows = self._finished.items(batch)
        self._observer.observe(items)
        event_rows, items = rows[are_events(items)], items.with_time(until_us)
        first_sequence = self._join.next_sequence
        self.rows.held.add(
            first_sequence + np.arange(len(event_rows)),
            batch if len(event_rows) == len(batch) else batch.take(event_rows),
        )

        def note(results: JoinedColumns, part: ItemColumns, first: int, came_us: int | None) -> None:
            if self.rows.retractions is not None:
                broken = with_late(results, part).violations
                self.rows.retractions.note_events(
                    (batch, event_rows[first - first_sequence :]), part, first, broken, came_us
                )

        return self._pushed(items, note)

    def _pushed(
        self,
        items: ItemColumns,
        note: Callable[[JoinedColumns, ItemColumns, int, int | None], None] = lambda *_: None,
        closed: NDArray[np.uint64] | None = None,
        *,
        is_over: bool = False,
    ) -> JoinOutput:
        """Process items part by part, so that a bounded number of results is in memory.

        ``note`` is called for each part with its results, its items, the sequence number of its first event, and the
        join's time before it. ``closed`` has the inputs that had closed the key of each item before all input ended, as
        bits.
        """
        outputs: list[JoinOutput] = []
        while True:
            first, came_us = self._join.next_sequence, self._join.now_us
            results, done = self._join.push_part(items)
            if closed is not None:
                results, closed = decided_by_the_end(results, closed), closed[done:]
            part, items = items.slice(0, done), items.slice(done, len(items))
            results = self._unkeyed.reported(results, part, first, came_us)
            note(results, part, first, came_us)
            outputs.append(self._output(results, part, first, is_over=is_over, is_last=not len(items)))
            if not len(items) or outputs[-1].is_suspended:
                return joined_outputs(outputs)

    def _limit(self) -> None:
        """Set how many combinations of an event the join computes at once, and whether some of them suffice.

        Totals need each event in at least one combination. If events may be retracted, or if the join has a condition,
        totals need all combinations of a key.
        """
        is_total = self.body.emit == "on_close" and self.rows.retractions is None
        most, covers = self._account.limited(self.body.results, asks=self._where is not None, is_total=is_total)
        self._join.limit(most, covers=covers)

    def advance_time(self, watermark_us: int) -> JoinOutput:
        """Advance time to a watermark, before which no further event arrives."""
        if self.has_stopped:
            return self._empty_output()
        self.rows.load_keys(np.zeros(0, np.uint64), watermark_us)
        return self._pushed(ItemColumns.of([(Item.TIME, 0, 0, watermark_us)]))

    def change(self, body: JoinBody, version: int) -> JoinOutput:
        """Continue as another version of the join, with the same state. The caller has checked ``keeps_rows``.

        If a window becomes smaller, events outside of it leave now, at the current time of the join. Events that have
        left do not return. Finished keys stay finished. Changed rules for closing keys apply to later events. A total
        that both versions have continues. A new total counts later events only.
        """
        self.rows.settle()
        self.body, self.version = body, version
        self._observer = StateObserver.of(body)
        self._derived = DerivedEventBuilder(body, self.name, version)
        self.rows.change(body, self._derived, f"{self.name} {version}")
        self._where = Conditional.of(body, self.conditions, self._where)
        self._limit()
        self._finished.change(body, self.rows.texts)
        return self._output(
            self._join.change([join_input.window for join_input in body.inputs]), _NO_ITEMS, self._join.next_sequence
        )

    def finish(self) -> JoinOutput:
        """Close every key by every input, because all input has ended. Return the remaining results."""
        return self._over(is_over=True)

    def _over(self, *, is_over: bool) -> JoinOutput:
        now_us = self._join.now_us
        if now_us is None or self.has_stopped:
            return self._empty_output()
        self.rows.expire(now_us)
        keys, texts = self.rows.keys().tolist(), self.rows.texts()
        ordered_keys = np.array(sorted(keys, key=lambda key: (texts.get(key, ""), key)), np.uint64)
        inputs = range(len(self.body.inputs))
        parts = np.split(ordered_keys, self.rows.cuts(ordered_keys))
        return joined_outputs([self._closed(part, inputs, now_us, Item.CLOSING, is_over=is_over) for part in parts])

    def _closed(
        self, keys: NDArray[np.uint64], inputs: Sequence[int], now_us: int, kind: Item, *, is_over: bool = False
    ) -> JoinOutput:
        self.rows.load_keys(keys, now_us)
        items = ItemColumns.closing(keys, inputs, now_us, kind)
        closed = self._join.closed(keys) if is_over and self.body.optional else None
        return self._pushed(items, closed=None if closed is None else np.repeat(closed, len(inputs)), is_over=is_over)

    def _empty_output(self) -> JoinOutput:
        none = EventBatch.from_events([])
        lost, self._has_reported_loss = None if self._has_reported_loss else self._lost, self._lost is not None
        return JoinOutput(events=none, passed_on=none, lost=lost)

    def drop(self, is_dropped: NDArray[np.bool_], keys: NDArray[np.uint64]) -> None:
        """Forget some keys, as if their events had never arrived. ``is_dropped`` is a mask over ``keys``."""
        dropped = keys[is_dropped]
        self.rows.drop(dropped)
        self._finished.forget(dropped)

    def clear_counts(self) -> None:
        """Restart all counts and the account of results from 0. The state of keys and the sequence numbers remain."""
        self._join.clear_counts()
        self.rows.clear_counts()
        self._account.clear_counts()
        self._unkeyed = UnkeyedEvents(self.body)
        self._arrivals = Arrivals(len(self.body.inputs))
        self._finished.broken = self._finished.other_version = 0
        if self._where is not None:
            self._where.left_out = [0, 0, 0]

    def keys(self) -> NDArray[np.uint64]:
        """Return the hashed keys with state, including the newest keys of clustered inputs."""
        others = [*self._finished.newest.values()]
        return np.unique(np.concatenate([self.rows.keys(), np.array(others, np.uint64)]))

    def dump(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the state as a JSON object and sections by name."""
        head, arrays = self._join.dump()
        state = {
            "format": _FORMAT,
            "join": head,
            "newest_keys": [[number, key] for number, key in sorted(self._finished.newest.items())],
            **({"suspended": True} if self.is_suspended else {}),
            **({} if self._where is None else {"left_out": self._where.left_out}),
            **({"unkeyed": self._unkeyed.counts} if self._unkeyed.counts else {}),
            **({"other_version": self._finished.other_version} if self._finished.other_version else {}),
            **self._account.to_json(),
        }
        sections = {f"join/{name}": array for name, array in arrays.items()}
        if self._finished.has_ranges:
            self._finished.ranges.prune(self.keys())
            state["ranges"], numbers = self._finished.ranges.dump()
            state["broken"] = self._finished.broken
            if self.body.waits:
                state["arrivals"] = self._arrivals.to_json()
            sections |= {f"ranges/{name}": section for name, section in numbers.items()}
        spilled, rows = self.rows.dump()
        state |= spilled
        if self._lost is not None:
            state["lost"] = [self._lost, self._has_reported_loss]
        return state, {**sections, **rows}

    def load(self, head: Mapping[str, Any], sections: Mapping[str, bytes]) -> None:
        """Restore the state that ``dump`` saved of the same join.

        Raise ``JoinStateError`` if the state is damaged or has another format, and ``StateLost`` if a file of rows on
        disk is missing.
        """
        if head.get("format") != _FORMAT:
            raise JoinStateError(f"the saved join {self.name!r} has the format {head.get('format')}, not {_FORMAT}")
        try:
            self._join.load(head["join"], part_of(sections, "join/"))
            self._finished.newest = dict(head["newest_keys"])
            self._finished.other_version = head.get("other_version", 0)
            self.is_suspended = head.get("suspended", False)
            if self._where is not None:
                self._where.left_out = list(head["left_out"])
            self._unkeyed = UnkeyedEvents(self.body, head.get("unkeyed"))
            self._lost, self._has_reported_loss = head.get("lost", (None, False))
            self._account = ResultAccount.from_json(self.body.results, head)
            self.rows.load(head, sections, self._derived)
            self._limit()
            if "ranges" in head:
                self._finished.ranges = FinishedRanges.load(head["ranges"], part_of(sections, "ranges/"))
                self._finished.broken, self._finished.has_ranges = head["broken"], True
                self._arrivals = Arrivals(len(self.body.inputs), head.get("arrivals"))
            elif self._finished.has_ranges:  # saved by a release without ranges
                self._finished.note(self.rows.texts())
        except (KeyError, ValueError) as error:
            raise JoinStateError(f"the saved join {self.name!r} cannot be read: {error}") from error

    def _output(
        self, results: JoinedColumns, items: ItemColumns, first: int, *, is_over: bool = False, is_last: bool = True
    ) -> JoinOutput:
        """Make the output of ``results``: derived events and reports.

        ``first`` is the sequence number of the first event among ``items``. ``is_over`` says that all input has ended.
        ``is_last`` says that no further items wait, so unneeded events can be dropped.
        """
        self._finished.broken += int(np.count_nonzero(are_late(items)))
        results = with_late(results, items)
        self._arrivals.note(items, results.violations)
        stop = self._limited(results, items, first)
        results, retractions, is_each = stop.results, self.rows.retractions, self.body.emit == "each"
        if is_each:
            events = self._derived.of_combinations(self.rows.held, results, is_over=is_over)
            places = np.arange(len(results.members))
            if retractions is not None:
                retractions.note(results, events, self.rows.held)
        elif retractions is not None:
            events, places = retractions.on_close(results, self.rows.held)
        else:
            events, places = self.rows.totals.on_close(results, self.rows.held, self._derived)
        if stop.is_stopping:
            self._suspend()
        elif is_last:
            self.rows.make_room()
        return stop.output(events, places, is_each=is_each)

    def _limited(self, results: JoinedColumns, items: ItemColumns, first: int) -> Stop:
        """Drop combinations for which the condition does not hold. Cut the results where the join must stop."""
        is_each = self.body.emit == "each"
        is_counted, is_kept = is_each or self.rows.retractions is not None, None  # otherwise totals are counted
        if self._where is not None:
            most = self.body.results.per_event if is_counted else MOST_RESULTS
            results, is_kept = self._where.judged(results, self.rows.held, self.rows.retractions, most)
        overs = [] if is_each else results.cuts[:1].tolist()  # totals would be wrong without the cut combinations
        if is_counted or self._account.has_asked:
            sizes = self._derived.sizes(self.rows.held, results, is_each=is_each)
            is_result = is_kept if is_counted else np.zeros(len(sizes), np.bool_)
            overs += self._account.count(results, items, sizes, is_result)
        stop = stopped(results, items, first, (self.body, self.rows.held), min(overs, default=None))
        return stop if is_kept is None else replace(stop, results=stop.results.only(is_kept))

    def _suspend(self) -> None:
        self.is_suspended = True
        self.rows.clear()
        self._finished.clear()

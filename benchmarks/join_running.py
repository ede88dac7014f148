"""Cost of a join in a shard, from log entries to output rows, compared with its kernel alone.

    scripts/bench join_running [--quick] [--entry=12 --taken=16]

Input: events of two or three streams, a millisecond apart, in entries of 1,000 events (``--entry``) of each stream in
turn, 4 (``--taken``) to a micro-batch. Half of the events join: half of the keys have an event of each stream, 2,000
events apart. All other events have a key of their own. *each* emits an event for each combination. *on_close* emits one
event with totals for each key, and the last stream has twice as many events per key.

*join* is a shard with the join and its inputs. *pattern* is a shard with a one-step pattern with INTO, over the same
events in one stream, which makes the same number of derived events with the same number of columns. *apart* is the
shard with the join, but it matches each entry separately, as it must when events are late. *kernel* is the join of the
same items by hashed keys alone. The runs take turns, and the figures are thread times of the best rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.rounds import best_of
from joins import Item, ItemColumns, Window, WindowJoin
from shards import ShardState
from shards.kinds.joins import JoinKind, merged_stream
from streams import (
    ControlRecord,
    Event,
    EventBatch,
    LogEntry,
    OperatorOn,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    Tick,
    encode_control,
    key_hash,
)

_STEP_US, _APART, _ENTRY, _TAKEN = 1_000, 2_000, 1_000, 4
_WINDOW_US = 10_000 * _STEP_US
_STREAMS = ("orders", "payments", "parcels")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A join to measure.

    Attributes:
        inputs: The number of streams.
        is_on_close: Whether the join emits totals.
    """

    inputs: int
    is_on_close: bool

    @property
    def document(self) -> dict[str, object]:
        """The document of the join."""
        inputs = [
            {"stream": stream, "as": f"i{number}", "closed_by": self._closing(number)}
            for number, stream in enumerate(_STREAMS[: self.inputs])
        ]
        last = self.inputs - 1
        totals = {"n": f"count(i{last})", "sum": f"sum(i{last}.v)", "id": "id(i0)"}
        wanted = totals if self.is_on_close else {"id": "id(i0)", "v": f"i{last}.v", "name": f"i{last}.name"}
        emit = {"emit": "on_close"} if self.is_on_close else {}
        return {"name": "all", "inputs": inputs, "window": f"{_WINDOW_US // 1_000_000} s", "return": wanted, **emit}

    def events(self, keys: int) -> list[tuple[int, Event, bool]]:
        """Return the events by time: stream number, event, whether the event is the last of its key in the stream."""
        found = []
        for number in range(self.inputs):
            copies = 2 if self.is_on_close and number == self.inputs - 1 else 1
            for place in range(keys):
                key = f"k{place}" if place % 2 else f"k{place}of{number}"
                first = place * self.inputs + number * (_APART + 1)
                found += [(first + copy, number, key, copy + 1 == copies) for copy in range(copies)]
        rows = []
        for place, (_, number, key, is_last) in enumerate(sorted(found)):
            data = {"v": place % 97, "name": f"n{place % 50}", "joins": is_last and number > 0 and "of" not in key}
            kind = f"{_STREAMS[number]}{'_last' if is_last else ''}"
            event = Event(id=f"e{place}", type=kind, time_us=place * _STEP_US, key=key, data=data)
            rows.append((number, event, is_last))
        return rows

    def _closing(self, number: int) -> object:
        is_last = self.is_on_close and number == self.inputs - 1
        return {"type": f"{_STREAMS[number]}_last"} if is_last else "unique"


def join_log(case: Case, rows: Sequence[tuple[int, Event, bool]], entry: int = _ENTRY) -> list[LogEntry]:
    """Return the log of a shard in which the join runs."""
    kind, declared = JoinKind(), {name: StreamDeclaration(name=name) for name in _STREAMS[: case.inputs]}
    definition = kind.read(case.document, declared.__getitem__)
    derived = [StreamDeclaration(name=name, derived=True) for name in ("all", merged_stream("all"))]
    records: list[tuple[str, ControlRecord]] = [(one.name, StreamOn(one)) for one in [*declared.values(), *derived]]
    parts = kind.parts(definition, declared.__getitem__)
    records += [(one.inputs[0].stream, OperatorOn(replace(one, version=1), "fresh")) for one in (definition, *parts)]
    return log_of_records(records, [(_STREAMS[number], event) for number, event, _ in rows], entry)


def pattern_log(case: Case, rows: Sequence[tuple[int, Event, bool]], entry: int = _ENTRY) -> list[LogEntry]:
    """Return the log of a shard in which a pattern runs."""
    last = f"{_STREAMS[case.inputs - 1]}_last"
    text = f"PATTERN one EVENT SEQ({last} a [joins = true]) RETURN a.v AS v, a.name AS name, a.v AS w INTO all"
    records: list[tuple[str, ControlRecord]] = [
        ("orders", StreamOn(StreamDeclaration(name="orders"))),
        ("all", StreamOn(StreamDeclaration(name="all", derived=True))),
        ("orders", PatternOn(name="one", version=1, text=text)),
    ]
    return log_of_records(records, [("orders", event) for _, event, _ in rows], entry)


def log_of_records(
    records: Sequence[tuple[str, ControlRecord]], events: Sequence[tuple[str, Event]], entry: int = _ENTRY
) -> list[LogEntry]:
    """Return a log of control records, then of events in entries of ``entry`` events of each stream."""
    found: list[tuple[RecordKind, str, bytes]] = [
        (record.KIND, stream, encode_control(record)) for stream, record in records
    ]
    streams = dict.fromkeys(stream for stream, _ in events)
    step = entry * len(streams)
    for first in range(0, len(events), step):
        for stream in streams:
            some = [event for one, event in events[first : first + step] if one == stream]
            if some:
                found.append((RecordKind.EVENTS, stream, EventBatch.from_events(some).to_bytes()))
    end_us = events[-1][1].time_us + 1
    found += [(Tick.KIND, stream, encode_control(Tick(time_us=end_us, cause="events"))) for stream in streams]
    return [
        LogEntry(position=f"1-{number}", kind=kind, stream=stream, body=body)
        for number, (kind, stream, body) in enumerate(found, start=1)
    ]


def items_of(case: Case, rows: Sequence[tuple[int, Event, bool]]) -> ItemColumns:
    """Return the items for the kernel. If an event finishes its key, the closing of the key follows the event."""
    closes = np.array([is_last or not case.is_on_close for _, _, is_last in rows])
    places = np.repeat(np.arange(len(rows)), 1 + closes)
    is_end: NDArray[np.bool_] = np.diff(places, prepend=-1) == 0
    return ItemColumns(
        kinds=np.where(is_end, Item.CLOSING, Item.EVENT).astype(np.uint8),
        inputs=np.array([number for number, _, _ in rows], np.uint8)[places],
        keys=np.array([key_hash(event.key) for _, event, _ in rows], np.uint64)[places],
        times_us=np.array([event.time_us for _, event, _ in rows], np.int64)[places],
    )


class _Apart(ShardState):
    """A shard state that matches entries one after the other, in the order of the log."""

    def _is_in_order(self, *_: object) -> bool:
        return False


def run_log(log: Sequence[LogEntry], taken: int = _TAKEN, shard: type[ShardState] = ShardState) -> int:
    """Run a log in micro-batches. Return the number of output rows."""
    state = shard(0)
    return sum(len(block) for first in range(0, len(log), taken) for block in state.advance(log[first : first + taken]))


def run_kernel(inputs: int, items: ItemColumns) -> int:
    """Run the kernel over the items. Return the number of combinations."""
    join, found = WindowJoin([Window("time", _WINDOW_US)] * inputs), 0
    for first in range(0, len(items), 2 * _TAKEN * _ENTRY):
        found += len(join.push(items.slice(first, first + 2 * _TAKEN * _ENTRY)).members)
    return found


def main() -> None:
    """Print the events per second, and the ratios of each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few events")
    parser.add_argument("--entry", type=int, default=_ENTRY, help="events of an entry")
    parser.add_argument("--taken", type=int, default=_TAKEN, help="entries of a micro-batch")
    wanted = parser.parse_args()
    quick = wanted.quick
    keys = 4_000 if quick else 40_000
    print(
        "| join | events | rows | join, events/s | apart | pattern | kernel "
        "| join : apart | pattern : join | kernel : join |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case in [Case(inputs=inputs, is_on_close=closing) for closing in (False, True) for inputs in (2, 3)]:
        rows = case.events(keys)
        runs = {
            "join": partial(run_log, join_log(case, rows, wanted.entry), wanted.taken),
            "apart": partial(run_log, join_log(case, rows, wanted.entry), wanted.taken, _Apart),
            "pattern": partial(run_log, pattern_log(case, rows, wanted.entry), wanted.taken),
            "kernel": partial(run_kernel, case.inputs, items_of(case, rows)),
        }
        found = best_of(runs, 3)
        if len({timed.result for timed in found.values()}) > 1 and not case.is_on_close:
            raise SystemExit(f"{case} finds {found}")
        speeds = {name: len(rows) / timed.seconds for name, timed in found.items()}
        shown = " | ".join(f"{speed:,.0f}" for speed in speeds.values())
        ratios = f"{speeds['join'] / speeds['apart']:.2f} | " + " | ".join(
            f"{speeds[name] / speeds['join']:.2f}" for name in ("pattern", "kernel")
        )
        name = f"{case.inputs} inputs, {'on_close' if case.is_on_close else 'each'}"
        print(f"| {name} | {len(rows):,} | {found['join'].result:,} | {shown} | {ratios} |")


if __name__ == "__main__":
    main()

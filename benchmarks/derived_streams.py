"""The cost of a chain: one pattern that feeds another, in one shard, compared with both alone.

    python -m benchmarks.derived_streams [--quick]

Input: orders of five events each, twenty orders at once, in entries of 1,000 events and in entries of 20. The first
pattern matches two steps of an order and returns two columns. The second pattern matches two of these derived events.
*Alone* means that the first pattern raises alerts instead of derived events, and that the second reads the same events
from entries of the log. Each run applies stored entries to the state of a shard and builds the output rows. The runs
take turns, and the ratio compares their best rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import orjson

from benchmarks.rounds import best_of
from shards import DERIVED, ShardState
from streams import (
    ControlRecord,
    Event,
    EventBatch,
    LogEntry,
    PatternOn,
    RecordKind,
    StreamDeclaration,
    StreamOn,
    encode_control,
    parse_time,
)

_TYPES = "ABCAB"
_FIRST = "PATTERN first EVENT SEQ(A a, B b) WITHIN 1 h RETURN a.n AS n, b.total AS total"
_SECOND = "PATTERN second EVENT SEQ(Pair x, Pair y [n > x.n]) WITHIN 1 h"
_INTO = " INTO pairs TYPE Pair"


def events_of(orders: int) -> list[Event]:
    """Return the events of a number of orders. Twenty orders are open at a time."""
    rng, found = Random(19), list[Event]()
    for first in range(0, orders, 20):
        steps = {f"o{number}": 0 for number in range(first, min(first + 20, orders))}
        while steps:
            key = rng.choice(list(steps))
            step, number = steps[key], len(found)
            data = {"n": number, "total": number % 97, "customer": f"c{number % 50}"}
            found.append(Event(id=f"e{number}", type=_TYPES[step], time_us=number * 10_000, key=key, data=data))
            steps[key] += 1
            if step + 1 == len(_TYPES):
                del steps[key]
    return found


def log_of(steps: Sequence[tuple[str, ControlRecord | Sequence[Event]]]) -> list[LogEntry]:
    """Return the log of one shard."""
    found = []
    for number, (stream, step) in enumerate(steps, start=1):
        kind, body = (
            (RecordKind.EVENTS, EventBatch.from_events(step).to_bytes())
            if isinstance(step, Sequence)
            else (step.KIND, encode_control(step))
        )
        found.append(LogEntry(position=f"1-{number}", kind=kind, stream=stream, body=body))
    return found


def logs_of(events: Sequence[Event], size: int) -> Mapping[str, list[LogEntry]]:
    """Return the logs of the three runs."""
    cut = [("orders", events[first : first + size]) for first in range(0, len(events), size)]
    orders, pairs = (("orders", StreamOn(StreamDeclaration(name="orders"))), StreamDeclaration(name="pairs"))
    derived = ("pairs", StreamOn(StreamDeclaration(name="pairs", derived=True)))
    second = ("pairs", PatternOn(name="second", version=1, text=_SECOND))
    feeding = ("orders", PatternOn(name="first", version=1, text=_FIRST + _INTO))
    alone = ("orders", PatternOn(name="first", version=1, text=_FIRST))
    state, posted = ShardState(0), []
    state.apply(log_of([orders, derived, feeding]))
    for number, (_, some) in enumerate(cut):
        body = EventBatch.from_events(some).to_bytes()
        entry = LogEntry(position=f"2-{number}", kind=RecordKind.EVENTS, stream="orders", body=body)
        posted.append(("pairs", [_event(row.body) for row in state.apply([entry]) if row.kind == DERIVED.name]))
    return {
        "chain": log_of([orders, derived, feeding, second, *cut]),
        "first alone": log_of([orders, alone, *cut]),
        "second alone": log_of([("pairs", StreamOn(pairs)), second, *(one for one in posted if one[1])]),
    }


def _event(body: bytes) -> Event:
    found = orjson.loads(body)
    return Event(
        id=found["id"], type=found["type"], time_us=parse_time(found["time"]), key=found["key"], data=found["data"]
    )


def rows_of(log: Sequence[LogEntry]) -> int:
    """Return the number of output rows of a log, in steps of up to 5,000 events."""
    state = ShardState(0)
    return sum(len(block) for first in range(0, len(log), _STEP) for block in state.advance(log[first : first + _STEP]))


_STEP = 50


def main() -> None:
    """Print seconds, rows and the ratio for both entry sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few orders")
    quick = parser.parse_args().quick
    events = events_of(1_000 if quick else 5_000)
    for size in (1_000, 20):
        logs = logs_of(events, size)
        found = best_of({name: partial(rows_of, log) for name, log in logs.items()}, 1 if quick else 5)
        for name, timed in found.items():
            print(f"{size:5} events per entry  {name:12}  {timed.seconds:7.3f} s  {timed.result:9,} rows")
        alone = found["first alone"].seconds + found["second alone"].seconds
        print(f"{size:5} events per entry  chain to both alone: {found['chain'].seconds / alone:.2f}")


if __name__ == "__main__":
    main()

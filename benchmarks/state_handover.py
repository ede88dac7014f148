"""Pauses of a task that writes a handover of its state, with and without a thread that stores the state.

The aggregate, the events and the questions are those of ``asked_aggregate``; there is one shard in memory. *copied* is
the time in which the task copies the state, between two steps. *stored* is the time in which the thread computes the
checksum and writes the file. Figures are thread time of one core, the best of the rounds.

    scripts/bench state_handover --events=500000
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.asked_aggregate import AGGREGATE, FILLED, events
from pipeline.snapshots.stores import FolderSnapshots
from shards import InlineShards, seal
from shards.kinds.aggregates import AggregateKind
from shards.state import ShardState
from streams import Event, EventBatch, OperatorOn, StreamDeclaration, StreamOn, parse_time

_ROUNDS = 5


def main() -> None:
    """Print the times."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    wanted = parser.parse_args()
    wanted.rate, wanted.start_us = 5_000, 1_767_225_600_000_000
    state = _filled(wanted)
    with TemporaryDirectory(prefix="forestall-bench-") as name:
        store = FolderSnapshots(Path(name), is_durable=False)
        parts, copied_s = _timed(state.dumped)
        _, stored_s = _timed(lambda: store.write(0, "1-0", *seal(parts)))
    print(f"{wanted.events:,} events, {sum(map(len, parts)) / 1e6:.1f} MB")
    print(f"  copied in {1e3 * copied_s:.1f} ms, stored in {1e3 * stored_s:.1f} ms")


def _filled(wanted: Any) -> ShardState:
    kind, shards, source = AggregateKind(), InlineShards(1), StreamDeclaration(name="shop", key="data.user")
    document = {**AGGREGATE, "window": f"{wanted.events // wanted.rate} s"}
    shards.append_record("shop", StreamOn(source))
    shards.append_record("sales", StreamOn(StreamDeclaration(name="sales", derived=True)))
    shards.append_record("shop", OperatorOn(replace(kind.read(document, lambda _: source), version=1)))
    for begin in range(0, wanted.events, FILLED):
        found = orjson.loads(events(wanted, begin, FILLED))
        shards.feed("shop", EventBatch.from_events([_event(one) for one in found]))
        shards.settle()
    return shards.states[0]


def _event(one: dict[str, Any]) -> Event:
    data = one["data"]
    return Event(id=one["id"], type=one["type"], time_us=parse_time(one["time"]), key=data["user"], data=data)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and the thread time of its fastest round."""
    best_s = float("inf")
    for _ in range(_ROUNDS):
        begun = time.thread_time()
        found = call()
        best_s = min(best_s, time.thread_time() - begun)
    return found, best_s


if __name__ == "__main__":
    main()

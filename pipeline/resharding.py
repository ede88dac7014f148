"""Resharding, which divides the states of a log's shards while nothing is appended and no job runs.

Each new shard gets traces of one old shard only, because the new number of shards is a multiple of the old one. The
states are written as snapshots of the next generation, and the old snapshots do not change. So the work may be
interrupted anywhere and started again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.measures import Work, stats_row
from pipeline.snapshots import FolderSnapshots, SnapshotIndex, open_snapshots
from pipeline.sources import EventLogOptions, log_ends
from pipeline.sources.log_reading import connect
from pipeline.spilled import SpilledStates
from shards import OutputRow


def divide_states(options: HeldOptions, shards: int) -> Iterator[OutputRow]:
    """Write the states of the new shards at the end of the log. ``shards`` is a multiple of the current number.

    ``options`` are those of the log before the change. The whole log is matched. The function yields a row of the kind
    ``stats`` for each new shard, in any order. The row has the shard's number, the position after which its log begins,
    and its measures. Raise ``LogDamaged`` if snapshots or entries are gone that a state needs.
    """
    new = replace(options.log, shards=shards, generation=shards)
    forget_states(new)
    server, held = connect(new), HeldShards(options)
    try:
        store, index = open_snapshots(new.snapshots, server, new.generation), SnapshotIndex(server, new.generation)
        before, spilled = SpilledStates(options.log, options.kinds), SpilledStates(new, options.kinds)
        for name, position in log_ends(options.log).items():
            for part in held.state_at(int(name), position).split(options.log.shards, shards):
                body = part.dump()
                spilled.take_over(part.shard, before, int(name), part.position, part.files)
                store.write(part.shard, part.position, body)
                index.enter(part.shard, part.position, len(body), new.snapshots)
                yield from stats_row(part, Work(part.position), len(body))
    finally:
        held.close()
        server.close()


def forget_states(options: EventLogOptions) -> None:
    """Remove the snapshots and files of an old generation, or of a new one whose resharding was interrupted."""
    server = connect(options)
    try:
        store = open_snapshots(options.snapshots, server, options.generation)
        index = SnapshotIndex(server, options.generation)
        for shard in range(options.shards):
            for position in index.positions(shard):
                index.remove(shard, position)
                store.remove(shard, position)
            if isinstance(store, FolderSnapshots):
                store.keep_only(shard, ())  # also files that a killed process had not entered into the index
        SpilledStates(options, ()).remove()
    finally:
        server.close()

"""Dividing the states of a log's shards among more shards, while nothing is appended and no job runs.

A new shard takes the traces of one old shard, as their numbers divide each other. The states go where those of the
next generation are looked for; of the old ones nothing changes. So this may be interrupted anywhere and begun anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.measures import Spent, stats_row
from pipeline.snapshots import SnapshotIndex, open_snapshots
from pipeline.sources import EventLogOptions, log_ends
from pipeline.sources.log_reading import connect
from pipeline.spilled import SpilledStates
from shards import OutputRow


def divide_states(options: HeldOptions, shards: int) -> Iterator[OutputRow]:
    """Write the states that the shards to come have at the end of the log.

    Args:
        options: The log as it is; all of it is matched.
        shards: How many there will be, a multiple of those that there are.

    Yields:
        Of each new shard a row of the kind ``stats``: its number, the position behind which its log begins, and what it
        tells of itself. In no order.

    Raises:
        LogDamaged: A state cannot be had, as snapshots or entries are gone.
    """
    new = replace(options.log, shards=shards, generation=shards)
    forget_states(new)
    server = connect(new)
    try:
        store, index = open_snapshots(new.snapshots, server, new.generation), SnapshotIndex(server, new.generation)
        held = HeldShards(options)
        before, spilled = SpilledStates(options.log, options.kinds), SpilledStates(new, options.kinds)
        for name, position in log_ends(options.log).items():
            for part in held.state_at(int(name), position).split(options.log.shards, shards):
                body = part.dump()
                spilled.take_over(part.shard, before, int(name), part.position, part.files)
                store.write(part.shard, part.position, body)
                index.enter(part.shard, part.position, len(body), new.snapshots)
                yield from stats_row(part, part.position, [], Spent(load_s=0.0, match_s=0.0, keep_s=0.0), len(body))
    finally:
        server.close()


def forget_states(options: EventLogOptions) -> None:
    """Remove the snapshots of a generation: of one that is over, or what is left of a try."""
    server = connect(options)
    try:
        store = open_snapshots(options.snapshots, server, options.generation)
        index = SnapshotIndex(server, options.generation)
        for shard in range(options.shards):
            for position in index.positions(shard):
                index.remove(shard, position)
                store.remove(shard, position)
        SpilledStates(options, ()).remove()
    finally:
        server.close()

"""The pipeline without Spark: shards over lists of entries, in this process. What the Spark job must equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shards.entries import Entry
from shards.rows import OutputRow
from shards.state import ShardState


def run_inline(logs: Mapping[int, Iterable[Entry]], states: Mapping[int, ShardState] | None = None) -> list[OutputRow]:
    """Rows of all shards, shard by shard, each in the order of its log.

    Args:
        logs: Entries by shard, in log order.
        states: Where shards begin; they are advanced. A shard that is missing here begins empty.
    """
    given = states or {}
    rows: list[OutputRow] = []
    for shard, entries in sorted(logs.items()):
        state = given.get(shard) or ShardState(shard)
        rows.extend(state.apply(entries))
    return rows

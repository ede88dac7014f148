"""The rounds of a run without Spark, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from shards import (
    DeciderState,
    Decision,
    FedPlace,
    RoundPlan,
    RoundRows,
    ShardRound,
    Variant,
    VariantCounts,
    decisions_of,
    observed_streams,
)
from streams import EventBatch


def decided_of(plan: RoundPlan, posted: Mapping[str, EventBatch]) -> list[Decision | DeciderState]:
    """What is decided before the rounds, and the states of the deciders."""
    numbered = {name: batch.numbered(0) for name, batch in posted.items()}
    return [
        one
        for number, variant in enumerate(plan.variants)
        for one in decisions_of(number, variant, _observed(variant, numbered))
    ]


def rounds_of(
    plan: RoundPlan, posted: Mapping[str, EventBatch], shards: int, counts: list[VariantCounts] | None = None
) -> list[RoundRows]:
    """The rows of all rounds of a run, without Spark.

    Args:
        plan: The plan, without decisions.
        posted: Events of posted streams, in processing order.
        shards: The number of shards.
        counts: Takes the counts of the first variant, of each shard and round.
    """
    numbered = {name: batch.numbered(0) for name, batch in posted.items()}
    decisions = [one for one in decided_of(plan, posted) if isinstance(one, Decision)]
    plan = replace(plan, decisions=tuple(decisions))
    newest_us = {name: int(batch.time_us.max()) for name, batch in posted.items() if len(batch)}
    handed: list[tuple[int, str, EventBatch]] = []
    rows: list[RoundRows] = []
    for number in range(len(plan.rounds)):
        made: list[tuple[int, str, EventBatch]] = []
        for shard in range(shards):
            one = ShardRound(plan, number, shard)
            rows += one.begin()
            for name, batch in numbered.items():
                rows += _fed(one, plan, name, batch, (shard, shards)) if name in plan.reads(number) else []
            for variant, name, batch in reversed(handed):
                parts = batch.split_by_shard(shards)
                if shard in parts and name in plan.reads(number):
                    rows += one.feed(name, parts[shard], FedPlace(variant=variant))
            rows += one.finish(newest_us)
            made += one.handed_on
            if counts is not None:
                counts.append(one.counts[0])
        handed += made
    return rows


def _observed(variant: Variant, posted: Mapping[str, EventBatch]) -> Iterator[tuple[str, EventBatch]]:
    names = observed_streams(variant)
    return ((name, batch) for name, batch in posted.items() if name in names)


def _fed(one: ShardRound, plan: RoundPlan, name: str, batch: EventBatch, place: tuple[int, int]) -> Iterator[RoundRows]:
    """Feed the part of posted events that belongs to a shard, by every key."""
    shard, shards = place
    ends = [*(cut + 1 for cut in plan.cuts.get(name, ())), len(batch)]
    for epoch, (first, end) in enumerate(pairwise([0, *ends])):
        some = batch.slice(first, end - first)
        for route, path in {"": None, **plan.routes(name)}.items():
            parts = (some if path is None else some.keyed_by(path)).split_by_shard(shards) if len(some) else {}
            if shard in parts:
                yield from one.feed(name, parts[shard], FedPlace(route=route, epoch=epoch))

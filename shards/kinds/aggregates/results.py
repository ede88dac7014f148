"""The results of an aggregate besides derived events, and the stream of its re-keyed events."""

from __future__ import annotations

from shards.results import ResultKind

AGGREGATE_SUSPENSION = ResultKind(
    name="aggregate-suspension",
    plural="aggregate-suspensions",
    title="suspensions of aggregates",
    counted_by=("stream", "pattern"),
    delivered_as="aggregate.suspended",
    is_usual=True,
    graded_by="aggregate",
    members=frozenset("type id operator stream pattern severity version shard reason".split()),
    stops=True,
)


def moved_stream(aggregate: str) -> str:
    """Return the name of the stream of an aggregate's re-keyed events."""
    return f"{aggregate}.inputs"

"""Kinds of results of joins, besides dead letters and derived events."""

from __future__ import annotations

from shards.results import ResultKind

JOIN_SUSPENSION = ResultKind(
    name="join-suspension",
    plural="join-suspensions",
    title="suspensions of joins",
    counted_by=("stream", "pattern"),
    delivered_as="join.suspended",
    is_usual=True,
    graded_by="join",
    members=frozenset(
        "type id operator stream pattern severity version key source event event_type time shard reason".split()
    ),
    stops=True,
)

"""The plan of the pipeline: the shards of each task, and the costs of each stream's operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from service.runtime import Stores
from service.settings import Settings
from service.stores import HostCost
from shards import OldestFirst
from streams import Clock

_FRESH_US = 10_000_000  # if the last measurement is older, the shard has no events
_MS = 1_000.0


Document: TypeAlias = dict[str, Any]
"""A JSON object. The schema of ``GET /v1/pipeline/plan`` describes its members."""


def pipeline_plan(stores: Stores, settings: Settings, clock: Clock) -> Document:
    """Return which task matches which shards at present, and what each engine costs.

    An engine is all operators of one kind on one stream.
    """
    shards = _shards(stores)
    tasks: dict[str, list[int]] = {}
    for shard in shards:
        if shard["task"] is not None:
            tasks.setdefault(shard["task"], []).append(shard["shard"])
    together: dict[tuple[str, str], list[HostCost]] = {}
    for cost in stores.pipeline_status.costs():
        together.setdefault((cost.stream, cost.kind), []).append(cost)
    now_us = clock.now_us()
    return {
        "runtime": settings.runtime,
        "policy": OldestFirst.name,
        "tasks": [{"name": name, "shards": task_shards} for name, task_shards in sorted(tasks.items())],
        "shards": shards,
        "engines": [_engine(stream, kind, costs, now_us) for (stream, kind), costs in sorted(together.items())],
    }


def _shards(stores: Stores) -> list[Document]:
    status = stores.pipeline_status
    ends, owners = status.ends(stores.log.shards()), status.owners()
    reports = {report.shard: report for report in status.shards()}
    documents = []
    for shard, end in enumerate(ends):
        report = reports.get(shard)
        position = "0-0" if report is None else report.position
        task = owners.get(shard) or (report and report.process) or None
        documents.append({"shard": shard, "task": task, "position": position, "lag_s": _lag_s(position, end)})
    return documents


def _lag_s(position: str, end: str) -> float:
    """Return the seconds between two positions of the log. A position begins with a time in milliseconds."""
    reached, newest = (int(entry.partition("-")[0]) for entry in (position, end))
    return max(0, newest - reached) / _MS if reached else 0.0


def _engine(stream: str, kind: str, costs: Sequence[HostCost], now_us: int) -> Document:
    rows_in, cpu_ns = sum(cost.rows_in for cost in costs), sum(cost.cpu_ns for cost in costs)
    fresh = [cost for cost in costs if now_us - cost.at_us < _FRESH_US]
    names = sorted({name for cost in costs for name in cost.operators})
    selectivity = sum(cost.rows_out for cost in costs) / rows_in if rows_in else None
    cost_us = cpu_ns / rows_in / _MS if rows_in else None
    return {
        "stream": stream,
        "kind": kind,
        "events_per_s": sum(cost.rows_in / cost.seconds for cost in fresh),
        "cost_us": cost_us,
        "selectivity": selectivity,
        "priority": (1.0 - selectivity) / cost_us if selectivity is not None and cost_us else None,
        "cores": sum(cost.cpu_ns / cost.seconds for cost in fresh) / 1e9,
        "operators": [
            {
                "name": name,
                "selectivity": sum(cost.operators.get(name, 0.0) for cost in costs) / rows_in if rows_in else None,
                "results_per_s": sum(cost.operators.get(name, 0.0) / cost.seconds for cost in fresh),
            }
            for name in names
        ],
    }

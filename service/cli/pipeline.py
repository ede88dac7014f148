"""``forestall pipeline``: which task matches which shards, and what operators cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from service.cli.calling import Caller, Commands
from service.cli.resources import Table

pipeline = Commands(help="The pipeline of the running service.")

_SHARDS = Table(("shard", "task", "position", "lag_s:lag"))
_ENGINES = Table(
    ("stream", "operator", "events:events/s", "cost:cost us", "selectivity:results/event", "results:results/s")
)


@pipeline.command("plan")
def plan(client: Caller) -> None:
    """Show which task holds which shards, and what the operators of each stream cost.

    Operators of one kind share an engine; its cost is processor time per event, in microseconds.
    """
    pipeline_plan = client.pipeline.plan()
    if client.is_json:
        client.show(pipeline_plan)
        return
    client.show({name: pipeline_plan[name] for name in ("runtime", "policy")})
    typer.echo()
    _SHARDS.show(client, pipeline_plan["shards"])
    typer.echo()
    _ENGINES.show(client, list(_lines(pipeline_plan["engines"])))


def _lines(engines: Any) -> Iterator[Mapping[str, Any]]:
    for engine in engines:
        operators = engine["operators"]
        label = operators[0]["name"] if len(operators) == 1 else f"{len(operators)} {engine['kind']} operators"
        yield {
            "stream": engine["stream"],
            "operator": label,
            "events": _rounded(engine["events_per_s"], 1),
            "cost": _rounded(engine["cost_us"], 1),
            "selectivity": _rounded(engine["selectivity"], 4),
            "results": _rounded(sum(operator["results_per_s"] for operator in operators), 1),
        }
        for operator in operators if len(operators) > 1 else ():
            yield {
                "stream": engine["stream"],
                "operator": f"  {operator['name']}",
                "selectivity": _rounded(operator["selectivity"], 4),
                "results": _rounded(operator["results_per_s"], 1),
            }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)

"""``forestall pipeline``: how the running service matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from service.cli.calling import Caller, Commands, show, show_list

pipeline = Commands(help="The pipeline of the running service.")

_SHARDS = (("shard", "shard"), ("task", "task"), ("position", "position"), ("lag", "lag_s"))
_ENGINES = (
    ("stream", "stream"),
    ("operator", "operator"),
    ("events/s", "events"),
    ("cost us", "cost"),
    ("results/event", "selectivity"),
    ("results/s", "results"),
)


@pipeline.command("plan")
def plan(client: Caller) -> None:
    """Show which task holds which shards, and what the operators of each stream cost.

    Operators of one kind share an engine; its cost is processor time per event, in microseconds.
    """
    found = client.pipeline.plan()
    if client.is_json:
        show(found, is_json=True)
        return
    show({name: found[name] for name in ("runtime", "policy")}, is_json=False)
    typer.echo()
    show_list(found["shards"], _SHARDS, is_json=False)
    typer.echo()
    show_list(_lines(found["engines"]), _ENGINES, is_json=False)


def _lines(engines: Any) -> Iterator[Mapping[str, Any]]:
    """A line for each engine, and lines for its operators where it has several."""
    for engine in engines:
        operators = engine["operators"]
        alone = operators[0]["name"] if len(operators) == 1 else f"{len(operators)} {engine['kind']} operators"
        yield {
            "stream": engine["stream"],
            "operator": alone,
            "events": _rounded(engine["events_per_s"], 1),
            "cost": _rounded(engine["cost_us"], 1),
            "selectivity": _rounded(engine["selectivity"], 4),
            "results": _rounded(sum(one["results_per_s"] for one in operators), 1),
        }
        for one in operators if len(operators) > 1 else ():
            yield {
                "stream": engine["stream"],
                "operator": f"  {one['name']}",
                "selectivity": _rounded(one["selectivity"], 4),
                "results": _rounded(one["results_per_s"], 1),
            }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)

"""Helpers for tests of suppressed alerts and incidents: plans, random events, and runs that are cut and reloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from nfa import parse_pattern
from service.runs.plan import RunPlan
from shards import SUPPRESSION, InlineShards, PatternKind, RowBlock, ShardState, routed
from streams import Event, EventBatch, StreamDeclaration

SECOND_US = 1_000_000
ORDERS = StreamDeclaration(name="orders", key="data.order")


def plan_of(patterns: Mapping[str, Mapping[str, Any]], lateness: int | None = None) -> RunPlan:
    """The run of patterns, given as their documents, on the stream ``orders``."""
    declaration = replace(ORDERS, lateness=lateness)
    kind, found, parts = PatternKind(), [], []
    for name, document in patterns.items():
        text = f"PATTERN {name} EVENT {document['text']}"
        definition = kind.read({**document, "name": name, "stream": "orders", "text": text}, lambda _: declaration)
        pattern = replace(routed(parse_pattern(text), declaration), suppression=definition.body.get(SUPPRESSION))
        found.append((pattern, True))
        parts += [replace(one, version=1) for one in kind.parts(definition, lambda _: declaration)]
    return RunPlan(declarations={"orders": declaration}, sets={}, patterns={"orders": found}, operators=parts)


def events_of(rng: Random, number: int, lateness: int, types: str) -> list[Event]:
    """Events with ties, out of order by less than the lateness."""
    seconds, found = 0, []
    for n in range(number):
        seconds += rng.choice((0, 0, 1, 1, 2, 5))
        order = rng.randrange(4)
        data = {"order": f"o{order}", "customer": f"c{order % 2}", "v": rng.choice((1, 2, None))}
        time_us = (seconds + 10 - (rng.randrange(lateness) if lateness else 0)) * SECOND_US
        found.append(Event(id=f"e{n}", type=rng.choice(types), time_us=time_us, key=f"o{order}", data=data))
    return found


def begun(plan: RunPlan, shards: int) -> InlineShards:
    """Shards that have met the records of a plan."""
    run = InlineShards(shards)
    for stream, record in plan.records():
        run.append_record(stream, record)
    return run


def blocks_of(run: InlineShards, events: Sequence[Event], rng: Random | None = None) -> list[RowBlock]:
    """The rows of a run over events; ``rng`` cuts the log, and saves and loads states in between."""
    blocks = list[RowBlock]()
    first = 0
    while first < len(events):
        size = len(events) if rng is None else rng.randint(1, 12)
        run.feed("orders", EventBatch.from_events(events[first : first + size]))
        first += size
        for shard in range(len(run.states)):
            if rng is None:
                continue
            if rng.random() < 0.6:
                blocks += run.step(shard, rng.randint(1, 4))
            if rng.random() < 0.3:
                run.states[shard] = ShardState.load(run.states[shard].dump())
    return [*blocks, *run.finish()]

"""Reports on patterns over given events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import orjson

from constraints import ConstraintSet
from nfa import Pattern, Prune
from service.runs.stream_report import LISTS, StreamReport
from service.runs.stream_run import StreamRun, stream_plan
from shards import routed
from streams import Event, EventBatch, StreamDeclaration


def report_on(
    patterns: Sequence[Pattern],
    events: Sequence[Event],
    constraint_set: ConstraintSet | None = None,
    *,
    prune: Prune | None = None,
    lists: Collection[str] = LISTS,
    is_open: bool = False,
    **declared: Any,
) -> StreamReport:
    """The report on patterns of a stream; ``declared`` are members of its declaration."""
    declaration = StreamDeclaration(name="file", **declared)
    if constraint_set is not None and prune is not None:
        constraint_set = replace(constraint_set, settings=replace(constraint_set.settings, prune=prune))
    on_stream = [(routed(one, declaration), True) for one in patterns]
    run = StreamRun(stream_plan(declaration, constraint_set, on_stream), lists=lists)
    run.feed(EventBatch.from_events(list(events)))
    return run.report(is_open=is_open)


def shown(report: StreamReport) -> dict[str, Any]:
    """The JSON document of a report."""
    found: dict[str, Any] = orjson.loads(report.to_json())
    return found

"""Plots of operators whose derived events are values of groups over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from service.runtime import Stores
from service.stores import EventFilter, RegisteredOperator
from shards import DocumentKind
from streams import parse_time
from workflows import Panel, draw_series

MOST_EVENTS = 1_000
"""The most derived events of a plot: the newest ones."""

_MOST = 1e300  # greater numbers could have infinite differences


def plot_operator(stores: Stores, kind: DocumentKind, name: str) -> str:
    """A picture, SVG: the values of each group in the derived events of an operator that are kept, over time."""
    record = stores.registry.operators(kind.name).get(name)
    by, values = kind.plotted(record.definition)
    events = sorted(_kept_events(stores, record), key=lambda event: parse_time(event["time"]))
    return draw_series(name, [Panel(title=value, series=series_of(events, by, value)) for value in values])


def series_of(events: Sequence[Mapping[str, Any]], by: Sequence[str], value: str) -> dict[str, list[tuple[int, float]]]:
    """The numbers of a value by the text of their group; the groups with most of them first."""
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in events:
        number = event["data"].get(value)
        if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= _MOST:
            found[_group_text([event["data"].get(one) for one in by])].append((parse_time(event["time"]), number))
    return dict(sorted(found.items(), key=lambda one: (-len(one[1]), one[0])))


def _kept_events(stores: Stores, record: RegisteredOperator) -> Sequence[Mapping[str, Any]]:
    if record.state == "draft":
        return ()
    wanted = EventFilter(stream=record.into, since_ms=stores.registry.since_ms(record.into))
    return stores.event_pages(wanted, None, MOST_EVENTS).items


def _group_text(group: Sequence[Any]) -> str:
    return ", ".join(one if isinstance(one, str) else orjson.dumps(one).decode() for one in group) or "all events"

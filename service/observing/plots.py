"""Plots of operators whose derived events contain values of groups over time."""

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
"""The maximum number of derived events in a plot, which shows the newest."""

_MOST = 1e300  # the difference of greater numbers could be infinite


def plot_operator(stores: Stores, kind: DocumentKind, name: str) -> str:
    """Draw the values of an operator's groups over time, as an SVG plot.

    The values are read from the operator's derived events, as far as these are still stored.
    """
    record = stores.registry.operators(kind.name).get(name)
    by, values = kind.plotted(record.definition)
    events = sorted(_kept_events(stores, record), key=lambda event: parse_time(event["time"]))
    return draw_series(name, [Panel(title=value, series=series_of(events, by, value)) for value in values])


def series_of(events: Sequence[Mapping[str, Any]], by: Sequence[str], value: str) -> dict[str, list[tuple[int, float]]]:
    """Return the times and values of one numeric attribute of events, grouped by the attributes in ``by``.

    A group is named by the text of its attributes. The group with the most values is first.
    """
    by_group: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in events:
        number = event["data"].get(value)
        if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= _MOST:
            by_group[_group_text([event["data"].get(attribute) for attribute in by])].append(
                (parse_time(event["time"]), number)
            )
    return dict(sorted(by_group.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _kept_events(stores: Stores, record: RegisteredOperator) -> Sequence[Mapping[str, Any]]:
    if record.state == "draft":
        return ()
    event_filter = EventFilter(stream=record.into, since_ms=stores.registry.since_ms(record.into))
    return stores.event_pages(event_filter, None, MOST_EVENTS).items


def _group_text(group: Sequence[Any]) -> str:
    return (
        ", ".join(element if isinstance(element, str) else orjson.dumps(element).decode() for element in group)
        or "all events"
    )

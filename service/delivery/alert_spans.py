"""Spans of alerts: each in the trace of the request that brought the last event of its match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from service.stores import RequestContext, RequestContextStore
from shards import OutputRow
from streams import parse_time

if TYPE_CHECKING:
    from service.observing.spans import OpenSpan, Spans

_MOST_LINKS = 32


class AlertSpans:
    """Begins the spans of alerts."""

    def __init__(self, spans: Spans, contexts: RequestContextStore) -> None:
        self._spans = spans
        self._contexts = contexts

    def begin(self, rows: Sequence[OutputRow]) -> Mapping[str, OpenSpan]:
        """Begin a span for each alert whose last event a traced request brought; returned by the ids of the alerts."""
        by_stream: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            by_stream[row.stream].append(orjson.loads(row.body))
        begun: dict[str, OpenSpan] = {}
        for stream, alerts in by_stream.items():
            events = dict.fromkeys(event for alert in alerts for event in _events_of(alert))
            contexts = self._contexts.find(stream, list(events))
            for alert in alerts if contexts else ():
                known = [contexts[event] for event in _events_of(alert) if event in contexts]
                if (last := _last(alert, known)) is not None:
                    begun[alert["id"]] = self._begin(alert, last, known)
        return begun

    def _begin(self, alert: Mapping[str, Any], last: RequestContext, known: Iterable[RequestContext]) -> OpenSpan:
        others = dict.fromkeys(one.traceparent for one in known if one.traceparent != last.traceparent)
        return self._spans.begin(
            f"alert {alert['pattern']}",
            last.traceparent,
            {
                "forestall.alert.id": alert["id"],
                "forestall.stream": alert["stream"],
                "forestall.pattern": alert["pattern"],
                "forestall.pattern.version": alert["version"],
                "forestall.key": alert["key"],
                "forestall.shard": last.shard,
                "forestall.log.position": last.position,
            },
            start_us=last.taken_us,
            links=list(others)[:_MOST_LINKS],
        )


def _events_of(alert: Mapping[str, Any]) -> list[str]:
    """Ids of the bound events."""
    return [event for events in alert["bindings"].values() for event in events]


def _last(alert: Mapping[str, Any], known: Iterable[RequestContext]) -> RequestContext | None:
    """The request that brought the last event of the match; of events of equal time, the one that the log took last."""
    end_us = parse_time(alert["end"])
    ending = [one for one in known if one.time_us == end_us]
    return max(ending, key=lambda one: one.taken_us, default=None)

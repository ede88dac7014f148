"""Random kills while events of several streams are joined: no result of a join is lost or duplicated.

The kills are those of ``pipeline_chaos``, and the project is that of ``join_workload``. It has joins of two and three
streams, by declared keys and re-keyed through the log, patterns over joins, and auctions that report their bids by
webhook once they have ended. In the end, the derived events, alerts and webhooks must have the same ids as those of
``forestall run`` over the same events, each exactly once. A webhook may be repeated after a kill, with the same id,
because delivery is at least once.

    scripts/bench join_chaos --kills=30 --events=60000
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from typing import Any

from benchmarks.join_workload import (
    COUNTED,
    DERIVED_STREAMS,
    STREAMS,
    Told,
    begins,
    by_stream,
    declare,
    join_events,
    run,
)
from benchmarks.pipeline_chaos import Case, Outcome, Plan, await_drained, main
from service.processes.temporary import TemporaryService
from service.sending import send_events
from streams import Event
from tests.builders.service import HandReceiver, receiving

DERIVED, WEBHOOKS = "derived events", "webhooks"
_EVENTS_OF_AN_ORDER = 6.9
_PATIENCE_S = 120.0
_QUIET_S = 3.0  # no more results may arrive in this time


class Joins(Case):
    """Orders, payments, couriers, auctions and bids.

    Args:
        folder: The folder for the project.
        receiver: The receiver of the auctions' webhooks.
    """

    def __init__(self, folder: Path, receiver: HandReceiver) -> None:
        self._folder = folder
        self._receiver = receiver
        self._streams: dict[str, str] = {}

    def events(self, plan: Plan) -> list[Event]:
        """About seven events of each order."""
        told: list[Told] = join_events(max(1, round(plan.events / _EVENTS_OF_AN_ORDER)), plan.seed)
        self._streams = {one.event.id: one.stream for one in told}
        return [one.event for one in told]

    def stream_of(self, event: Event) -> str:
        """Return the stream of an event."""
        return self._streams[event.id]

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Return the results of ``forestall run``."""
        results = run([*begins(), *(Told(self.stream_of(event), event) for event in events)], self._folder)
        found = results["events"]
        return Outcome(
            expected=[_identity(alert) for alert in results["alerts"]],
            others={
                DERIVED: ([_text(one["stream"], one) for one in found], []),
                WEBHOOKS: ([one["id"] for one in found if one["stream"] == COUNTED], []),
            },
            dead_letters=[f"expected: {letter['reason']}" for letter in results["dead_letters"]],
        )

    def declare(self, service: TemporaryService) -> None:
        """Apply the project, register a webhook for finished auctions, and start the event time of all streams."""
        declare(service.client, self._folder)
        first = by_stream(begins())
        before = service.client.get("/pipeline")["backlog"]["appended_volume"]["events"]
        for stream, events in first.items():
            send_events(service.client, stream, events, f"begin-{stream}")
        await_drained(service, before + sum(map(len, first.values())), _PATIENCE_S)
        service.client.post("/webhooks", {"url": self._receiver.url, "kinds": ["derived"], "pattern": COUNTED})

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Wait until all expected results have arrived, wait a little longer, and collect the results."""
        deadline = time.monotonic() + patience_s
        self._see(service, outcome)
        while time.monotonic() < deadline and not _is_complete(outcome):
            Flag().wait(0.5)
            self._see(service, outcome)
        Flag().wait(_QUIET_S)
        self._see(service, outcome)
        for stream in (*STREAMS, *DERIVED_STREAMS):
            outcome.dead_letters += [
                letter["reason"] for letter in service.client.pages("/dead-letters", stream=stream)
            ]

    def _see(self, service: TemporaryService, outcome: Outcome) -> None:
        alerts = (alert for stream in DERIVED_STREAMS for alert in service.client.pages("/alerts", stream=stream))
        outcome.found = [_identity(alert) for alert in alerts]
        derived = service.client.pages("/derived-events")
        events = [_text(one["into"], one) for one in derived if one["into"] in DERIVED_STREAMS]
        for what, found in ((DERIVED, events), (WEBHOOKS, list(dict.fromkeys(self._receiver.ids())))):
            outcome.others[what] = outcome.others[what][0], found


def _is_complete(outcome: Outcome) -> bool:
    pairs = [(outcome.expected, outcome.found), *outcome.others.values()]
    return all(len(found) >= len(expected) for expected, found in pairs)


def _identity(alert: Mapping[str, Any]) -> str:
    """Return an alert as text. The ids of its events depend only on their content."""
    return f"{alert['pattern']} {alert['key']} {_sorted(alert['bindings'].items())} {alert['end']}"


def _text(stream: str, event: Mapping[str, Any]) -> str:
    """Return a derived event as text, with all members."""
    return f"{stream} {event['id']} {event['type']} {event['time']} {event['key']} {_sorted(event['data'].items())}"


def _sorted(items: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return sorted(items, key=lambda item: item[0])


if __name__ == "__main__":
    with TemporaryDirectory(prefix="forestall-joins-") as name, receiving() as receiver:
        main(Joins(Path(name), receiver), __doc__)

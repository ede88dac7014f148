"""Random kills while a chain of derived streams crosses two keys: no derived event is lost or duplicated.

The kills are those of ``pipeline_chaos``. The patterns match per order, per customer and per region, and each hop
passes through the log of another shard. In the end, the alerts and derived events must have the same ids as those of
shards in this process, each exactly once. A duplicated, late or lost derived event would lead to another match of the
next pattern, with another id.

    scripts/bench derived_chaos --kills=30 --events=60000
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event as Flag

from benchmarks.chain_workload import CHAIN, HABITS, ORDERS, PURCHASES, chain_events, chain_rows, declare_chain
from benchmarks.pipeline_chaos import Case, Outcome, Plan, main
from service.processes.temporary import TemporaryService
from streams import Event


class Chain(Case):
    """Orders whose payments become events per customer, which become events per region."""

    def events(self, plan: Plan) -> list[Event]:
        """Two events of each order."""
        return chain_events(max(1, plan.events // 2), plan.seed)

    def stream_of(self, event: Event) -> str:
        """Return the stream of the orders."""
        return ORDERS

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Return the expected alerts and derived events."""
        rows = chain_rows(events, request)
        letters = [f"expected: {row.body.decode()}" for row in rows if row.kind == "dead-letter"]
        found = [row.id for row in rows if row.kind in ("alert", "derived")]
        return Outcome(expected=found, dead_letters=letters)

    def declare(self, service: TemporaryService) -> None:
        """Declare the stream and register the patterns."""
        declare_chain(service.client)

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Wait until the last events have passed the whole chain, and collect the results."""
        deadline = time.monotonic() + patience_s
        outcome.found = _found(service)
        while time.monotonic() < deadline and len(outcome.found) < len(outcome.expected):
            Flag().wait(0.5)
            outcome.found = _found(service)
        Flag().wait(3.0)  # no more results may arrive in this time
        outcome.found = _found(service)
        for stream in (ORDERS, PURCHASES, HABITS):
            outcome.dead_letters += [
                letter["reason"] for letter in service.client.pages("/dead-letters", stream=stream)
            ]


def _found(service: TemporaryService) -> list[str]:
    """Ids of the alerts and derived events of the chain."""
    alerts = [found["id"] for found in service.client.pages("/alerts", stream=HABITS) if found["pattern"] in CHAIN]
    events = [found["id"] for found in service.client.pages("/derived-events") if found["into"] in (PURCHASES, HABITS)]
    return alerts + events


if __name__ == "__main__":
    main(Chain(), __doc__)

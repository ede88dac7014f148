"""The demo: the whole service on generated orders, compared with a run in this process without early termination.

The demo starts a private Redis, Spark and the API, receives the alerts through signed webhooks, and prints them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from constraints import ConstraintSet, to_document
from nfa import Prune, parse_pattern
from service.client import Client
from service.delivery.receiver import Received, receiver
from service.processes.temporary import TemporaryService, running
from service.runs.stream_report import StreamReport
from service.runs.stream_run import run_patterns
from service.sending import send_events
from service.showcase import add_aggregate, follow_process, leave_open
from streams import Event, EventBatch, StreamDeclaration
from workflows import (
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    derive_constraints,
    generate_events,
    order_fulfilment,
)

STREAM = "orders"
PATTERNS: Mapping[str, str] = {
    "EP1": """PATTERN EP1
EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
              SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)
WHERE [key]""",
    "Q1": """PATTERN Q1
EVENT SEQ(CheckInventory c, UseRemoteStock u, GenerateInvoice i [price > 200])
WHERE [key]""",
}

_BATCH = 500
_DRAIN_S = 180.0
_POLL_S = 0.2
_SEED = 42

AlertIdentity = tuple[str, str, tuple[tuple[str, tuple[str, ...]], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """Counts of the service, and of two runs in this process: one with and one without early termination.

    ``endings`` counts early terminations by constraint. ``peak_held`` is the largest number of bound events. If the
    stored alerts, the alerts received by webhook and the expected matches are equal, ``is_equal`` is True.
    """

    events: int
    alerts: Mapping[str, int]
    expected: int
    webhooks: int
    endings: Mapping[str, int]
    examples: tuple[str, ...]
    peak_held: int
    peak_held_unpruned: int
    is_equal: bool


@dataclass(slots=True)
class Demo:
    """A run of the demo.

    ``on_alert`` receives each alert that arrives by webhook. ``on_progress`` receives the number of sent events and the
    number of all events. ``say`` receives the messages for the user. ``on_wait`` receives, a few times a second, a
    description of what the demo waits for. ``stay`` receives the result while the service and its console still run.
    """

    orders: int
    on_alert: Callable[[dict[str, Any]], None]
    on_progress: Callable[[int, int], None]
    say: Callable[[str], None]
    on_wait: Callable[[str], None] = lambda _: None
    stay: Callable[[DemoResult, TemporaryService], None] | None = None
    constraint_set: ConstraintSet = field(default_factory=lambda: derive_constraints(order_fulfilment()))

    def run(self) -> DemoResult:
        """Start the service, send the orders, wait for the last alert, compare the results, and stop the service."""
        events = self._events()
        with (
            TemporaryDirectory(prefix="forestall-demo-") as folder,
            receiver(self.on_alert) as (url, received),
            running(Path(folder), self.say, wait=self.on_wait, has_console=self.stay is not None) as demo_service,
        ):
            client = demo_service.client
            received.secret = self._register(client, url)
            self._play(client, events)
            self.say("matching the same events without early termination")
            unpruned = self._run(events, Prune.OFF)
            self.say("waiting for the last alerts")
            self._drain(client, received, len(unpruned.matches))
            self.say("comparing")
            result = self._result(client, received, events, unpruned)
            if self.stay is not None:
                follow_process(client, STREAM)
                first, *_, last = leave_open(client, STREAM, events[-1].time_us)
                self.say(f"for the console: the aggregate steps, and orders {first} to {last}, most of which stay open")
                self.stay(result, demo_service)
            return result

    def _events(self) -> list[Event]:
        workload = OrderWorkload(
            orders=OrderSettings(),
            stream=SimulationSettings(traces=self.orders, concurrent=min(1_000, self.orders), key_prefix="order-"),
        )
        return list(generate_events(workload, _SEED))

    def _register(self, client: Client, url: str) -> str:
        """Register the stream, its constraints, patterns and webhook. Return the webhook's signing secret."""
        client.post("/streams", {"name": STREAM, "end_events": sorted(self.constraint_set.end_events)})
        if self.stay is not None:
            add_aggregate(client, STREAM)
        client.post("/constraints", {"stream": STREAM, **to_document(self.constraint_set)})
        for text in PATTERNS.values():
            client.post("/patterns", {"stream": STREAM, "text": text})
        self.say(f"stream {STREAM}: {len(self.constraint_set.constraints)} constraints, patterns {', '.join(PATTERNS)}")
        for text in PATTERNS.values():
            self.say(text)
        return str(client.post("/webhooks", {"url": url, "stream": STREAM})["secret"])

    def _play(self, client: Client, events: list[Event]) -> None:
        for start in range(0, len(events), _BATCH):
            send_events(client, STREAM, events[start : start + _BATCH], f"demo-{start}")
            self.on_progress(min(start + _BATCH, len(events)), len(events))

    def _run(self, events: list[Event], prune: Prune) -> StreamReport:
        patterns = [parse_pattern(text) for text in PATTERNS.values()]
        rules = replace(self.constraint_set, settings=replace(self.constraint_set.settings, prune=prune))
        declaration = StreamDeclaration(name=STREAM, end_events=tuple(sorted(rules.end_events)))
        return run_patterns(patterns, EventBatch.from_events(events), rules, declaration)

    def _drain(self, client: Client, received: Received, expected: int) -> None:
        latest, deadline = (-1, -1), 0.0
        while True:
            ended, alerts = progress = sum(_endings(client).values()), len(received.alerts)
            if ended >= self.orders * len(PATTERNS) and alerts >= expected:
                return
            if progress != latest:
                latest, deadline = progress, time.monotonic() + _DRAIN_S
            elif time.monotonic() >= deadline:
                break
            self.on_wait(f"{alerts:,} of {expected:,} alerts have arrived")
            time.sleep(_POLL_S)
        self.say(f"nothing has arrived for {_DRAIN_S:.0f} s; {alerts:,} of {expected:,} alerts are here")

    def _result(self, client: Client, received: Received, events: list[Event], unpruned: StreamReport) -> DemoResult:
        expected = {_identity(match) for match in unpruned.matches}
        alerts = list(client.alerts.list(stream=STREAM))
        identities = [_identity(alert) for alert in alerts]
        return DemoResult(
            events=len(events),
            alerts=Counter(alert["pattern"] for alert in alerts),
            expected=len(expected),
            webhooks=len(received.alerts),
            endings=_endings(client),
            examples=_examples(client),
            peak_held=self._run(events, self.constraint_set.settings.prune).stats.peak_held,
            peak_held_unpruned=unpruned.stats.peak_held,
            is_equal=len(identities) == len(expected)
            and set(identities) == expected
            and {_identity(alert) for alert in received.alerts.values()} == expected,
        )


def _identity(alert: Mapping[str, Any]) -> AlertIdentity:
    bindings = tuple(sorted((alias, tuple(ids)) for alias, ids in alert["bindings"].items()))
    return alert["pattern"], alert["key"], bindings


def _endings(client: Client) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for group in client.endings.page(limit=1)["counts"]:
        counts[group["chain"]] += group["count"]
    return dict(counts)


def _examples(client: Client, most: int = 5) -> tuple[str, ...]:
    """Return reasons of terminations before the end of the transaction, one of each pattern and constraints."""
    examples: dict[str, str] = {}
    for ending in client.endings.list(most=500):
        if ending["form"] == "end":
            continue
        text = f"{ending['pattern']} {ending['key']}: {ending['reason']}"
        examples.setdefault(f"{ending['pattern']} {ending['constraints']}", text)
    return tuple(examples.values())[:most]

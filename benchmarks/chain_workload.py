"""A chain of derived streams: events per order lead to events per customer, then per region, and finally to alerts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from service.client import Client
from shards import InlineShards, OutputRow, rows_of
from streams import Event, EventBatch, PatternOn, StreamDeclaration, StreamOn

ORDERS, PURCHASES, HABITS = "chained-orders", "purchases", "habits"

CHAIN: Mapping[str, tuple[str, str]] = {
    "bought": (
        ORDERS,
        (
            "PATTERN bought EVENT SEQ(Placed p, Paid q) "
            f"RETURN p.customer AS customer, p.region AS region, q.sum AS sum INTO {PURCHASES} KEY customer"
        ),
    ),
    "habit": (
        PURCHASES,
        (
            "PATTERN habit EVENT SEQ(bought a, bought b [sum > a.sum]) SELECT SKIP PAST LAST "
            f"RETURN b.region AS region, b.customer AS customer INTO {HABITS} KEY region TYPE Habit"
        ),
    ),
    "cluster": (
        HABITS,
        "PATTERN cluster EVENT SEQ(Habit a, Habit b [customer != a.customer]) SELECT SKIP PAST LAST",
    ),
}
"""Stream and text of each pattern, by name."""

_SECOND_US = 1_000_000
_CUSTOMERS, _REGIONS = 500, 20


def chain_events(orders: int, seed: int = 7) -> list[Event]:
    """Return two events of each order, sorted by time and 1 ms apart on average."""
    chance, events = random.Random(seed), []
    for number in range(orders):
        customer = chance.randrange(_CUSTOMERS)
        data = {"customer": f"c{customer}", "region": customer % _REGIONS, "sum": chance.randrange(1_000)}
        placed_us = 1_767_225_600 * _SECOND_US + number * 2_000 + chance.randrange(2_000)
        for kind, time_us in (("Placed", placed_us), ("Paid", placed_us + chance.randrange(1, 3 * _SECOND_US))):
            events.append(Event(id=f"order-{number}-{kind}", type=kind, time_us=time_us, key=f"o{number}", data=data))
    return sorted(events, key=lambda event: event.time_us)


def declare_chain(client: Client) -> None:
    """Declare the stream and register the patterns, which declare the derived streams."""
    client.post("/streams", {"name": ORDERS})
    for stream, text in CHAIN.values():
        client.post("/patterns", {"stream": stream, "text": text})


def chain_rows(events: Sequence[Event], request: int, shards: int = 4) -> list[OutputRow]:
    """Return the expected results of the events, computed by shards in this process."""
    inline, rows = InlineShards(shards), []
    inline.append_record(ORDERS, StreamOn(StreamDeclaration(name=ORDERS)))
    for name in (PURCHASES, HABITS):
        inline.append_record(name, StreamOn(StreamDeclaration(name=name, derived=True)))
    for name, (stream, text) in CHAIN.items():
        inline.append_record(stream, PatternOn(name=name, version=1, text=text))
    for start in range(0, len(events), request):
        inline.feed(ORDERS, EventBatch.from_events(events[start : start + request]))
        rows += inline.settle()
    return rows_of([*rows, *inline.pause()])

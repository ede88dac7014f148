"""A project of joins: orders with payments and couriers, patterns over joins, and auctions that count their bids.

Orders are paid in parts, and some are never paid. The courier arrives in time, late or not at all. Auctions accept bids
until the auction is closed or its window ends, whichever is first. Some auctions get no bids, and some are never
closed. The auctions are the worked example 6.4 e of the specification of punctuation-aware joins.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from service.client import Client
from service.projects import LocalProject, Results, apply_plan, plan_project, read_project
from streams import Event, EventBatch

OPEN_US = 4_000_000
"""How long an auction takes bids if it is never closed."""
STREAMS = ("orders", "payments", "couriers", "auctions", "bids")
DERIVED_STREAMS = ("paid", "delivered", "totals", "sold", "customers")
COUNTED = "sold"
"""The join that emits one event for each auction."""

PROJECT = f"""
kind: stream
name: orders
---
kind: stream
name: payments
keys: {{order: data.order}}
---
kind: stream
name: couriers
---
kind: stream
name: auctions
---
kind: stream
name: bids
end_events: [Closed]
---
kind: stream
name: paid
derived: true
---
kind: stream
name: delivered
derived: true
---
kind: stream
name: totals
derived: true
---
kind: stream
name: sold
derived: true
---
kind: stream
name: customers
derived: true
---
kind: join
name: paid
inputs:
  - {{stream: orders, as: o, type: Order, closed_by: unique}}
  - {{stream: payments, as: p, type: [Part, Last], key: order, closed_by: {{type: Last}}}}
window: 2 s
outer: [p]
memory: {{rows: 25, spill: true}}
return: {{order: id(o), customer: o.customer, payment: id(p), amount: p.amount}}
---
kind: join
name: delivered
inputs:
  - {{stream: orders, as: o, type: Order, closed_by: unique}}
  - {{stream: payments, as: p, type: Last, key: order, closed_by: unique}}
  - {{stream: couriers, as: c, type: [PickedUp, Delivered], key: data.order}}
window: 3 s
return: {{order: id(o), customer: o.customer, payment: id(p), courier: id(c), what: type(c)}}
---
kind: join
name: totals
inputs:
  - {{stream: orders, as: o, type: Order, closed_by: unique, window: 3 s}}
  - {{stream: payments, as: p, type: Part, key: order, closed_by: {{type: Last}}}}
emit: on_close
outer: [p]
return: {{order: id(o), payments: count(p), sum: sum(p.amount), most: max(p.amount)}}
---
kind: join
name: {COUNTED}
inputs:
  - {{stream: auctions, as: a, type: Opened, closed_by: unique, window: {OPEN_US} us}}
  - {{stream: bids, as: b, type: Bid, closed_by: end}}
emit: on_close
outer: [b]
memory: {{rows: 25, spill: true}}
return: {{auction: id(a), bids: count(b), best: max(b.price)}}
---
kind: pattern
name: raised
stream: paid
text: PATTERN raised EVENT SEQ(paid a, paid b [amount > a.amount]) WITHIN 2 s
---
kind: pattern
name: served
stream: delivered
text: |
  PATTERN served EVENT SEQ(delivered a [what = 'PickedUp'], delivered b [what = 'Delivered'])
  RETURN b.customer AS customer INTO customers KEY customer
---
kind: pattern
name: regular
stream: customers
text: PATTERN regular EVENT SEQ(served a, served b) SELECT SKIP PAST LAST
"""

_START_US = 1_767_225_600_000_000
_STEP_US = 3_000  # between orders
_FAR_US = 3_600_000_000
_CUSTOMERS = 40
_BEGINS = 64  # enough keys that each of a few shards has some

_Row: TypeAlias = tuple[int, str, str, str, Mapping[str, Any]]  # time, stream, type, key, data


@dataclass(frozen=True, slots=True)
class Told:
    """An event with its stream."""

    stream: str
    event: Event


def join_events(orders: int, seed: int = 7) -> list[Told]:
    """Return about seven events of each order, by time. All times differ.

    The last event of each stream comes after all windows have ended.
    """
    chance = random.Random(seed)
    rows: list[_Row] = []
    for number in range(orders):
        at_us = number * _STEP_US + chance.randrange(_STEP_US)
        rows += [*_order(number, at_us, chance), *(_auction(number // 2, at_us, chance) if number % 2 else ())]
    rows.sort(key=lambda row: row[0])
    ends: list[_Row] = [(_FAR_US, stream, "Time", "end", {}) for stream in STREAMS]
    return [
        Told(stream, Event(id=f"e{place}", type=kind, time_us=_START_US + at_us + place, key=key, data=data))
        for place, (at_us, stream, kind, key, data) in enumerate([*rows, *ends])
    ]


def begins() -> list[Told]:
    """Return events of many keys that start the time of each stream in every shard. They precede all other events.

    An input without events does not delay the other inputs. If its first event were posted after later events of the
    other inputs, it would come too late for their decisions. Therefore these events must be posted and matched first.
    """
    return [
        Told(
            stream,
            Event(
                id=f"begin{number}",
                type="Time",
                time_us=_START_US - _STEP_US,
                key=f"b{number}",
                data={"order": f"b{number}"},
            ),
        )
        for stream in STREAMS
        for number in range(_BEGINS)
    ]


def _order(number: int, at_us: int, chance: random.Random) -> Iterator[_Row]:
    order = f"o{number}"
    yield at_us, "orders", "Order", order, {"customer": f"c{chance.randrange(_CUSTOMERS)}"}
    for part in range(chance.randrange(4)):
        at_us += chance.randrange(900_000)
        data = {"order": order, "amount": chance.randrange(100)}
        yield at_us, "payments", "Part", f"{order}-p{part}", data
    if chance.random() < 0.8:
        at_us += chance.randrange(900_000)
        yield at_us, "payments", "Last", f"{order}-last", {"order": order, "amount": chance.randrange(100)}
    for kind in ("PickedUp", "Delivered")[: chance.choice((0, 1, 2, 2))]:
        at_us += chance.randrange(800_000)
        yield at_us, "couriers", kind, f"courier-{chance.randrange(50)}", {"order": order}


def _auction(number: int, at_us: int, chance: random.Random) -> Iterator[_Row]:
    auction = f"a{number}"
    yield at_us, "auctions", "Opened", auction, {}
    for _ in range(chance.choice((0, 1, 3, 6))):
        at_us += chance.randrange(1_500_000)  # sometimes after the window has ended
        yield at_us, "bids", "Bid", auction, {"price": chance.randrange(1_000)}
    if chance.random() < 0.7:
        yield at_us + chance.randrange(1, 1_000_000), "bids", "Closed", auction, {}


def by_stream(told: Sequence[Told]) -> dict[str, list[Event]]:
    """Return the events of each stream, in their order."""
    found: dict[str, list[Event]] = {}
    for one in told:
        found.setdefault(one.stream, []).append(one.event)
    return found


def declare(client: Client, folder: Path) -> None:
    """Write the project to a folder and apply it to a service, as ``forestall apply`` does."""
    documents = read_project(written(folder))
    apply_plan(client, plan_project(client, documents, folder, is_pruned=False), lambda change: None)


def run(told: Sequence[Told], folder: Path) -> Results:
    """Run the project over files of these events with ``forestall run``, and return the results."""
    local = LocalProject.of(read_project(written(folder)), folder)
    return local.run({stream: EventBatch.from_events(events) for stream, events in by_stream(told).items()})


def written(folder: Path) -> Path:
    """Write the project to a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "project.yaml").write_text(PROJECT, encoding="utf-8")
    return folder

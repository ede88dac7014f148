"""The order workload of the experiments, as events and as columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from constraints import ConstraintSet
from streams import Event, EventBatch
from workflows import (
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    derive_constraints,
    generate_events,
    order_fulfilment,
)

Q1 = "PATTERN Q1 EVENT SEQ(CheckInventory c, UseRemoteStock u, GenerateInvoice i [price > 200])"
Q2 = """PATTERN Q2 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [price > 200]),
                                 SEQ(UseRemoteStock u, GenerateInvoice i)), FinishOrder f)"""
EP1 = """PATTERN EP1 EVENT SEQ(AND(SEQ(OrderFromSupplier o, GenerateQuote q [totalPrice > 200]),
                                   SEQ(UseRemoteStock u, GenerateInvoice i)), CancelOrder c)"""


def orders(
    count: int, *, concurrent: int = 1_000, seed: int = 42, settings: OrderSettings | None = None
) -> list[Event]:
    """Return the events of ``count`` interleaved orders, about 20 each."""
    stream = SimulationSettings(traces=count, concurrent=min(count, concurrent), key_prefix="order-")
    chosen = settings if settings is not None else OrderSettings(reject=0.0, cancel=0.0)
    return list(generate_events(OrderWorkload(orders=chosen, stream=stream), seed))


def order_constraints() -> ConstraintSet:
    """Return all constraints of the order workflow: 235 priors, 20 exclusions, 278 requirements, 3 end events."""
    return derive_constraints(order_fulfilment())


def decoded(events: Sequence[Event], attributes: Sequence[str]) -> EventBatch:
    """Return one batch with the given integer attributes as columns, so that the matcher need not parse JSON."""
    batch = EventBatch.from_events(events)
    columns: dict[tuple[str, ...], pa.Array] = {
        (name,): pa.array([event.data.get(name) for event in events], pa.int64()) for name in attributes
    }
    return EventBatch(batch.columns, columns)

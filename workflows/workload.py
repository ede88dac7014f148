"""The order workload: the output of ``forestall generate`` and the input of the experiments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streams import Event
from workflows.order_fulfilment import OrderSettings, order_fulfilment
from workflows.simulation import Noise, SimulationSettings, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWorkload:
    """A stream of interleaved orders: the workflow's settings and the stream's."""

    orders: OrderSettings = field(default_factory=OrderSettings)
    stream: SimulationSettings = field(default_factory=lambda: SimulationSettings(key_prefix="order-"))


def generate_events(workload: OrderWorkload, seed: int, noise: Noise | None = None) -> Iterator[Event]:
    """Events of the workload in the order of time, or of arrival if there is noise; the same seed gives the same
    events.

    Raises:
        InvalidWorkflow: The settings contradict themselves.
    """
    return simulate(order_fulfilment(workload.orders), workload.stream, seed, noise)

"""Additions to the demo for ``forestall demo --stay``, so that each page of the console has content.

An aggregate answers questions, the stream follows the demo's process as a model, and some orders remain open.
"""

from __future__ import annotations

from typing import Final

from service.client import Client
from service.sending import send_events
from streams import Event
from workflows import OrderSettings, OrderWorkload, SimulationSettings, generate_events

MODEL: Final = """\
name: order
tree:
  sequence:
    - ReceiveOrder
    - CheckCredit
    - xor:
        - RejectOrder
        - sequence:
            - CheckInventory
            - and:
                - sequence: [AllocateStock, {xor: [UseLocalStock, UseRemoteStock]}, GenerateInvoice, SendInvoice]
                - sequence: [OrderFromSupplier, {loop: [GenerateQuote, tau]}, SendQuote]
            - CollectGoods
            - PackGoods
            - PrintLabels
            - ShipOrder
            - NotifyCustomer
            - ReceivePayment
            - UpdateBooks
            - xor: [CancelOrder, FinishOrder]
"""
"""A model of the process that ``order_fulfilment`` generates."""

_AGGREGATE: Final = {
    "name": "steps",
    "values": {"n": "count()"},
    "window": "30 d",
    "having": "n > 50",
    "by": ["key"],
    "ask": {"by": ["type", "region", "key"]},
}
_OPEN_ORDERS: Final = 24
_FEWEST_EVENTS: Final = 2
_SEED: Final = 43


def add_aggregate(client: Client, stream: str) -> None:
    """Register the aggregate that answers questions. Call it before events are sent."""
    client.request("POST", "/aggregates", body={**_AGGREGATE, "of": stream})


def follow_process(client: Client, stream: str) -> None:
    """Upload the model of the demo's process, and make the stream follow it."""
    headers = {"Content-Type": "application/yaml"}
    client.request("PUT", "/workflows/order", query={"stream": stream}, body=MODEL, headers=headers)


def leave_open(client: Client, stream: str, after_us: int) -> list[str]:
    """Send only the first events of some orders, so that these orders remain open at different steps.

    Return the keys of the orders, in the order of their numbers.
    """
    settings = SimulationSettings(
        traces=_OPEN_ORDERS, concurrent=_OPEN_ORDERS, start_us=after_us, interval_us=60_000_000, key_prefix="late-"
    )
    sent: dict[str, int] = {}
    events: list[Event] = []
    for event in generate_events(OrderWorkload(orders=OrderSettings(), stream=settings), _SEED):
        count = sent[event.key] = sent.get(event.key, 0) + 1
        if count <= _FEWEST_EVENTS + int(event.key.removeprefix(settings.key_prefix)) % 12:
            events.append(event)
    send_events(client, stream, events, "showcase")
    return sorted(sent, key=lambda key: (len(key), key))

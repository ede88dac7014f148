"""The order workflow of the C-CEP experiments (constraint-aware CEP, section 8).

    ReceiveOrder, CheckCredit,
    XOR( RejectOrder END |
         CheckInventory,
         AND( AllocateStock, XOR(UseLocalStock | UseRemoteStock), GenerateInvoice, SendInvoice
            ; OrderFromSupplier, 3 x GenerateQuote, SendQuote ),
         CollectGoods, PackGoods, PrintLabels, ShipOrder, NotifyCustomer, ReceivePayment, UpdateBooks,
         XOR( CancelOrder END | FinishOrder END ) )

Every path without rejection has twenty events. Each event has the integers ``quantity``, ``weight`` and ``priority``,
and the texts ``customer`` and ``region``. An invoice also has a number with the names ``price`` and ``amount``, and a
quote has a number with the names ``totalPrice`` and ``price``. The number is above 200, except in a share of the events
(``invoice_fail``, ``quote_fail``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streams import Event
from workflows.attributes import Attribute, IntegerAttribute, TextAttribute, ThresholdAttribute
from workflows.errors import InvalidWorkflow
from workflows.simulation import Noise, SimulationSettings, simulate
from workflows.tree import Activity, ExclusiveChoice, Loop, Parallel, ProcessTree, Sequence

PRICE_THRESHOLD = 200

_FIRST = ("ReceiveOrder", "CheckCredit")
_LAST = (
    "CollectGoods",
    "PackGoods",
    "PrintLabels",
    "ShipOrder",
    "NotifyCustomer",
    "ReceivePayment",
    "UpdateBooks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings:
    """The adjustable settings of the order workflow (see this module).

    Attributes:
        local: Probability that local stock is used. ``reject`` and ``cancel`` are the probabilities of RejectOrder and
            CancelOrder.
        quote_fail: Share of the GenerateQuote events whose price is 200 or less, independent for each event.
        invoice_fail: Share of the GenerateInvoice events whose price is 200 or less.
        quotes: Number of GenerateQuote events in an order; None means one or more, 3 on average.
    """

    local: float = 0.5
    reject: float = 0.05
    cancel: float = 0.1
    quote_fail: float = 0.5
    invoice_fail: float = 0.5
    quotes: int | None = 3
    integer_domain: int = 1_000
    text_domain: int = 100

    def __post_init__(self) -> None:
        for name in ("local", "reject", "cancel", "quote_fail", "invoice_fail"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidWorkflow(f"order workflow: {name} must lie between 0 and 1, got {getattr(self, name)}")


def order_fulfilment(settings: OrderSettings | None = None) -> ProcessTree:
    """Return the order workflow as a process tree."""
    order_settings = settings if settings is not None else OrderSettings()
    common = _common_attributes(order_settings)
    invoice = _price_attribute(("price", "amount"), order_settings.invoice_fail)
    quote = _price_attribute(("totalPrice", "price"), order_settings.quote_fail)

    def do(*names: str) -> tuple[Activity, ...]:
        return tuple(Activity(name, common) for name in names)

    stock = ExclusiveChoice(do("UseLocalStock", "UseRemoteStock"), (order_settings.local, 1.0 - order_settings.local))
    quoting = Loop(body=Activity("GenerateQuote", (*common, quote)), repetitions=order_settings.quotes, again=2 / 3)
    billing = Activity("GenerateInvoice", (*common, invoice))
    handling = Parallel(
        (
            Sequence((*do("AllocateStock"), stock, billing, *do("SendInvoice"))),
            Sequence((*do("OrderFromSupplier"), quoting, *do("SendQuote"))),
        )
    )
    ending = ExclusiveChoice(do("CancelOrder", "FinishOrder"), (order_settings.cancel, 1.0 - order_settings.cancel))
    accepted = Sequence((*do("CheckInventory"), handling, *do(*_LAST), ending))
    decision = ExclusiveChoice((*do("RejectOrder"), accepted), (order_settings.reject, 1.0 - order_settings.reject))
    return Sequence((*do(*_FIRST), decision))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWorkload:
    """A stream of interleaved orders, which ``forestall generate`` writes and experiments read."""

    orders: OrderSettings = field(default_factory=OrderSettings)
    stream: SimulationSettings = field(default_factory=lambda: SimulationSettings(key_prefix="order-"))


def generate_events(workload: OrderWorkload, seed: int, noise: Noise | None = None) -> Iterator[Event]:
    """Yield the events of a workload in the order of their times, or of their arrival with noise.

    The same seed gives the same events.

    Raises:
        InvalidWorkflow: The settings contradict themselves.
    """
    return simulate(order_fulfilment(workload.orders), workload.stream, seed, noise)


def _common_attributes(settings: OrderSettings) -> tuple[Attribute, ...]:
    integers = (IntegerAttribute(name, settings.integer_domain) for name in ("quantity", "weight", "priority"))
    texts = (TextAttribute(name, settings.text_domain) for name in ("customer", "region"))
    return (*integers, *texts)


def _price_attribute(names: tuple[str, ...], fail_ratio: float) -> Attribute:
    return ThresholdAttribute(names=names, threshold=PRICE_THRESHOLD, fail_ratio=fail_ratio)

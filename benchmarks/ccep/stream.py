"""The order workload as columns: millions of events in seconds, the same stream for the matcher and for the replay.

The traces are those of ``workflows.order_fulfilment`` (three quotes). At each step, a uniformly chosen open order emits
its next event, and a finished order is replaced at once. An event has five attributes: ``quantity``, ``priority`` and
``price`` (integers), ``customer`` and ``region`` (texts). All are uniform, except that the price of a quote or an
invoice is 200 or less with a probability that the experiment sets, independently for each event. ``totalPrice`` is
another name of the price.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.ccep.kernels.orders import interleave, write_orders
from benchmarks.ccep.queries import PRICED
from streams import EventBatch, key_hash
from streams.batch import SCHEMA
from workflows import OrderSettings, iterate_activities, order_fulfilment

TYPES: tuple[str, ...] = tuple(activity.name for activity in iterate_activities(order_fulfilment()))

_EVENTS_PER_ORDER = 20
_START_US, _INTERVAL_US = 1_767_225_600_000_000, 1_000_000
_HIGHEST_PRICE = 1_000
_QUOTES = 3
_AND_BRANCHES = [
    [
        ["AllocateStock", stock, "GenerateInvoice", "SendInvoice"],
        ["OrderFromSupplier", *["GenerateQuote"] * _QUOTES, "SendQuote"],
    ]
    for stock in ("UseRemoteStock", "UseLocalStock")
]
_OTHERS = ["ReceiveOrder", "CheckCredit", "RejectOrder", "CheckInventory"]
_OTHERS += ["CollectGoods", "PackGoods", "PrintLabels", "ShipOrder", "NotifyCustomer", "ReceivePayment", "UpdateBooks"]
_OTHERS += ["FinishOrder", "CancelOrder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStream:
    """The events of interleaved orders, sorted by time.

    Attributes:
        types: int8 index into ``TYPES``.
        orders: int32 number of the order.
        slots: int32 slot of the order among the open orders, below ``concurrent``.
        places: int8 place of the event in the order, from 0.
        ends: Whether the order ends.
        times_us: int64, strictly increasing.
        integers: The columns quantity, priority and price.
        texts: The columns customer and region, as numbers.
        concurrent: The number of open orders at a time.
    """

    types: NDArray[np.int8]
    orders: NDArray[np.int32]
    slots: NDArray[np.int32]
    places: NDArray[np.int8]
    ends: NDArray[np.bool_]
    times_us: NDArray[np.int64]
    integers: dict[str, NDArray[np.int16]]
    texts: dict[str, NDArray[np.int16]]
    concurrent: int

    def __len__(self) -> int:
        return len(self.types)

    @property
    def settled(self) -> int:
        """The first event after which ``concurrent`` orders have finished. Peaks are counted from this event on."""
        finished = np.flatnonzero(self.ends)
        return int(finished[min(self.concurrent, len(finished)) - 1])

    def passes(self, priced: frozenset[str]) -> NDArray[np.bool_]:
        """Return whether each event satisfies a pattern's condition: ``priced`` types cost more than ``PRICED``."""
        is_priced = np.isin(self.types, [TYPES.index(name) for name in priced])
        return ~is_priced | (self.integers["price"] > PRICED)

    def batch(self) -> EventBatch:
        """Return the stream as one batch for the matcher, with attributes both as JSON and as decoded columns."""
        keys = [f"order-{number + 1}" for number in range(int(self.orders.max()) + 1)]
        hashes = np.array([key_hash(key) for key in keys], np.uint64)
        key_column = pc.take(pa.array(keys), pa.array(self.orders))
        ids = pc.binary_join_element_wise(key_column, _text(self.places + 1), ":")
        codes = pa.DictionaryArray.from_arrays(pa.array(self.types.astype(np.int32)), pa.array(list(TYPES)))
        times = pa.array(self.times_us).cast(pa.timestamp("us", tz="UTC"))
        numbers = {name: pa.array(values.astype(np.int64)) for name, values in self.integers.items()}
        texts = {name: _joined(f"{name}-", _text(values)) for name, values in self.texts.items()}
        arrays = [ids, codes, times, key_column, pa.array(hashes[self.orders]), _json(numbers, texts)]
        columns = {**numbers, "totalPrice": numbers["price"], **texts}
        attributes: dict[tuple[str, ...], pa.Array] = {(name,): column for name, column in columns.items()}
        return EventBatch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), attributes)


def order_stream(settings: OrderSettings, *, orders: int, concurrent: int, seed: int) -> OrderStream:
    """Return a stream of interleaved orders. The same seed gives the same stream.

    Args:
        settings: The probabilities and domains. The number of quotes is three.
        orders: The number of orders, about 20 events each.
        concurrent: The number of open orders at a time.
        seed: The random seed.

    Raises:
        ValueError: The settings have another number of quotes.
    """
    if settings.quotes != _QUOTES:
        raise ValueError(f"the workload has {_QUOTES} quotes an order, not {settings.quotes}")
    rng = np.random.default_rng(seed)
    codes = np.empty((orders, _EVENTS_PER_ORDER), np.int8)
    chances = (settings.reject, settings.local, settings.cancel)
    rejected, local, cancelled = (rng.random(orders) < chance for chance in chances)
    write_orders(rejected, local, cancelled, rng.random((orders, 9)), _codes(_AND_BRANCHES), _codes(_OTHERS), codes)
    events = int((codes >= 0).sum())
    owners, slots = np.empty(events, np.int32), np.empty(events, np.int32)
    places, ends = np.empty(events, np.int8), np.empty(events, np.bool_)
    slots[0] = concurrent
    interleave(codes, rng.random(events), owners, slots, places, ends)
    types = codes[owners, places]
    gaps = 1 + (rng.random(events) * (2 * _INTERVAL_US - 1)).astype(np.int64)
    return OrderStream(
        types=types,
        orders=owners,
        slots=slots,
        places=places,
        ends=ends,
        times_us=_START_US + np.cumsum(gaps),
        integers={
            "quantity": _drawn(rng, settings.integer_domain, events),
            "priority": _drawn(rng, settings.integer_domain, events),
            "price": _prices(rng, settings, types),
        },
        texts={name: _drawn(rng, settings.text_domain, events) for name in ("customer", "region")},
        concurrent=min(concurrent, orders),
    )


def _codes(names: list[str] | list[list[list[str]]]) -> NDArray[np.int8]:
    """Return the type codes in the shape of the names. Short branches are padded with -1."""
    if isinstance(names[0], str):
        return np.array([TYPES.index(str(name)) for name in names], np.int8)
    filled = np.full((2, 2, 2 + _QUOTES), -1, np.int8)
    for stock, branches in enumerate(names):
        for branch, tasks in enumerate(branches):
            filled[stock, branch, : len(tasks)] = [TYPES.index(task) for task in tasks]
    return filled


def _drawn(rng: Generator, domain: int, count: int) -> NDArray[np.int16]:
    return rng.integers(1, domain, count, endpoint=True).astype(np.int16)


def _prices(rng: Generator, settings: OrderSettings, types: NDArray[np.int8]) -> NDArray[np.int16]:
    """Return prices that are uniform on either side of the limit.

    For quotes and invoices, the settings determine the side.
    """
    fails = rng.random(len(types)) < PRICED / _HIGHEST_PRICE
    for name, ratio in (("GenerateQuote", settings.quote_fail), ("GenerateInvoice", settings.invoice_fail)):
        chosen = types == TYPES.index(name)
        fails[chosen] = rng.random(int(chosen.sum())) < ratio
    low = rng.integers(1, PRICED, len(types), endpoint=True)
    high = rng.integers(PRICED + 1, _HIGHEST_PRICE, len(types), endpoint=True)
    return np.where(fails, low, high).astype(np.int16)


def _text(numbers: NDArray[np.signedinteger]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _json(numbers: dict[str, pa.Array], texts: dict[str, pa.Array]) -> pa.Array:
    """Return the attributes of each row as one JSON object."""
    parts: list[pa.Array | str] = []
    for name, column in numbers.items():
        parts += ["," if parts else "{", f'"{name}":', column.cast(pa.string())]
    for name, column in texts.items():
        parts += [f',"{name}":"', column, '"']
    return _joined(*parts, "}").cast(pa.binary())

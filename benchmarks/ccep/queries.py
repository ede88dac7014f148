"""The patterns of the experiments, and the cells of their table with reported and reconstructed figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.workload import EP1, Q1, Q2
from workflows import OrderSettings

Q3 = """PATTERN Q3 EVENT SEQ(OR(SEQ(OrderFromSupplier o, GenerateQuote q [price > 200]),
                                SEQ(UseRemoteStock u, GenerateInvoice i)), FinishOrder f)"""

PRICED = 200  # the price limit in every condition of the patterns


@dataclass(frozen=True, slots=True)
class Figure:
    """The change by a mode relative to R-CEP, in percent: peak of bound events, and scan probes."""

    memory: int
    probes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A pattern of the experiments.

    Attributes:
        name: The name in the pattern's text.
        text: The text in the pattern language.
        priced: The types whose events must have a price above ``PRICED``.
    """

    name: str
    text: str
    priced: frozenset[str]


QUERIES: Mapping[str, Query] = {
    "Q1": Query(name="Q1", text=Q1, priced=frozenset({"GenerateInvoice"})),
    "Q2": Query(name="Q2", text=Q2, priced=frozenset({"GenerateQuote"})),
    "Q3": Query(name="Q3", text=Q3, priced=frozenset({"GenerateQuote"})),
    "EP1": Query(name="EP1", text=EP1, priced=frozenset({"GenerateQuote"})),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One query on one workload.

    Attributes:
        sweep: The query and the quantity that varies.
        query: The pattern.
        ratio: The value of this quantity in percent. In the grid of Q3, two values (quote, local).
        orders: The workload.
        peak: The reconstructed peak of bound events of R-CEP, or None if unknown.
        wanted: The reconstructed figures, by mode.
        reported: The memory that the source reports.
    """

    sweep: str
    query: Query
    ratio: tuple[int, ...]
    orders: OrderSettings
    peak: int | None = None
    wanted: Mapping[str, Figure] = field(default_factory=dict)
    reported: str = ""

    @property
    def label(self) -> str:
        """The ratio as text."""
        return ",".join(str(part) for part in self.ratio)


SWEEPS = ("Q1 early", "Q1 late", "Q2", "Q2 late", "Q3", "EP1")
VARIED: Mapping[str, str] = {
    "Q1 early": "P(UseLocalStock)",
    "Q1 late": "share of failing invoices, all remote",
    "Q2": "P(UseLocalStock), half of the quotes fail",
    "Q2 late": "share of failing quotes, half local",
    "Q3": "share of failing quotes, P(UseLocalStock)",
    "EP1": "P(UseLocalStock), half fail, half cancelled",
}


def cell_of(sweep: str, ratio: tuple[int, ...]) -> Cell:
    """Return a cell with its reconstructed figures, if they exist."""
    share = ratio[0] / 100
    if sweep == "Q1 early":
        orders = _orders(local=share, invoice_fail=0.0)
    elif sweep == "Q1 late":
        orders = _orders(local=0.0, invoice_fail=share)
    elif sweep == "Q2":
        orders = _orders(local=share, quote_fail=0.5)
    elif sweep == "Q2 late":
        orders = _orders(local=0.5, quote_fail=share)
    elif sweep == "Q3":
        orders = _orders(local=ratio[1] / 100, quote_fail=share)
    else:
        orders = _orders(local=share, quote_fail=0.5, cancel=0.5)
    peak, query, state, exact = _TABLE.get((sweep, ratio), (None, None, None, None))
    named = {"query": query, "state": state, "exact": exact}
    return Cell(
        sweep=sweep,
        query=QUERIES[sweep.partition(" ")[0]],
        ratio=ratio,
        orders=orders,
        peak=peak,
        wanted={name: Figure(*pair) for name, pair in named.items() if pair is not None},
        reported=_REPORTED.get((sweep, ratio), ""),
    )


def table_cells() -> list[Cell]:
    """Return the cells of section 8."""
    return [cell_of(sweep, ratio) for sweep, ratio in _TABLE]


def sweep_cells(step: int = 10) -> list[Cell]:
    """Return the cells of every sweep from 0 to 90 percent. Q3 is a grid."""
    ratios = range(0, 100, step)
    found = []
    for sweep in SWEEPS:
        pairs = [(quote, local) for quote in ratios for local in ratios]
        found += [cell_of(sweep, ratio) for ratio in (pairs if sweep == "Q3" else [(one,) for one in ratios])]
    return found


def _orders(*, local: float, invoice_fail: float = 0.0, quote_fail: float = 0.0, cancel: float = 0.0) -> OrderSettings:
    return OrderSettings(reject=0.0, cancel=cancel, local=local, invoice_fail=invoice_fail, quote_fail=quote_fail)


_Pair = tuple[int, int]
_Row = tuple[int, _Pair, _Pair, _Pair]

_TABLE: Mapping[tuple[str, tuple[int, ...]], _Row] = {
    ("Q1 early", (0,)): (1_688, (0, 0), (-71, -83), (-71, -83)),
    ("Q1 early", (50,)): (1_309, (-28, -30), (-72, -82), (-72, -82)),
    ("Q1 early", (90,)): (999, (-62, -62), (-73, -82), (-73, -82)),
    ("Q1 late", (0,)): (1_688, (0, 0), (-71, -83), (-71, -83)),
    ("Q1 late", (50,)): (1_688, (-32, -29), (-71, -83), (-71, -83)),
    ("Q1 late", (90,)): (1_688, (-53, -53), (-71, -83), (-71, -83)),
    ("Q2", (0,)): (3_329, (-6, -6), (-6, -63), (-7, -64)),
    ("Q2", (50,)): (2_613, (-36, -33), (-36, -68), (-37, -69)),
    ("Q2", (90,)): (2_016, (-74, -62), (-74, -74), (-74, -74)),
    ("Q2 late", (0,)): (3_670, (-36, -29), (-36, -67), (-36, -68)),
    ("Q2 late", (50,)): (2_613, (-36, -33), (-36, -68), (-37, -69)),
    ("Q2 late", (80,)): (1_987, (-47, -45), (-47, -70), (-50, -72)),
    ("Q2 late", (90,)): (1_782, (-55, -52), (-55, -72), (-60, -73)),
    ("Q3", (0, 0)): (4_386, (0, 0), (0, -59), (0, -61)),
    ("Q3", (0, 90)): (3_072, (0, -17), (0, -55), (0, -57)),
    ("Q3", (90, 0)): (2_497, (-15, -16), (-15, -60), (-18, -62)),
    ("Q3", (50, 50)): (2_613, (-3, -12), (-3, -58), (-3, -60)),
    ("Q3", (90, 90)): (1_186, (-29, -41), (-29, -63), (-34, -65)),
}

_REPORTED: Mapping[tuple[str, tuple[int, ...]], str] = {
    ("Q1 early", (90,)): "-60",
    ("Q1 late", (90,)): "-54",
    ("Q2", (90,)): "-72",
    ("Q2 late", (0,)): "-36",
    ("Q2 late", (50,)): "-36",
    ("Q2 late", (80,)): "-47",
    ("Q2 late", (90,)): "-55",
    ("Q3", (90, 90)): "-30",
}

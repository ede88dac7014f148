"""Delay until ``SEQ(P, NOT X)`` is decided: the number of events of the trace between the match and its alert."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.ccep.engine import matcher_for
from benchmarks.ccep.knowledge import ConstraintOracle, extracted
from benchmarks.ccep.modes import Mode
from benchmarks.ccep.queries import PRICED
from benchmarks.ccep.stream import TYPES, OrderStream
from constraints.remainder import single
from streams import EventBatch
from tests.references.alive import alive
from workflows import OrderSettings

_ROWS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A pattern of one step and a trailing NOT.

    Attributes:
        step: The type of the step.
        absent: The type that must not follow.
        is_priced: Whether only an ``absent`` event with a price above ``PRICED`` counts.
        orders: The workload.
        wanted: The reconstructed number of events from match to alert, with and without constraints. None: unknown.
    """

    step: str
    absent: str
    orders: OrderSettings
    is_priced: bool = False
    wanted: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """The pattern as text in the pattern language."""
        condition = f" [price > {PRICED}]" if self.is_priced else ""
        return f"PATTERN absent EVENT SEQ({self.step} s, NOT {self.absent}{condition})"

    @property
    def label(self) -> str:
        """The pattern's name in tables."""
        return self.text.partition("EVENT ")[2].replace(f"{self.step} s", self.step)


_USUAL = OrderSettings(reject=0.0, cancel=0.1, local=0.9)
ABSENCES = (
    Absence(step="CheckInventory", absent="UseRemoteStock", orders=_USUAL, wanted=(3.9, 17.0)),
    Absence(
        step="OrderFromSupplier",
        absent="GenerateQuote",
        is_priced=True,
        orders=OrderSettings(reject=0.0, cancel=0.1, quote_fail=0.9),
        wanted=(6.4, 15.1),
    ),
    Absence(step="SendInvoice", absent="SendQuote", orders=_USUAL, wanted=(0.0, 8.0)),
    Absence(step="CheckInventory", absent="CancelOrder", orders=_USUAL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The number of a pattern's alerts in one mode, and the mean number of the trace's events before their emission."""

    alerts: int
    events: float


def expected(absence: Absence, stream: OrderStream, *, is_guarded: bool) -> Delay:
    """Compute the delay by definition: after each event, ``alive`` decides whether the absent event can still occur."""
    everything = extracted()
    oracle = ConstraintOracle(everything)
    known: dict[tuple[frozenset[str], str], tuple[frozenset[str], bool]] = {}

    def after(seen: frozenset[str], name: str) -> tuple[frozenset[str], bool]:
        if (seen, name) not in known:
            state = oracle.step(seen, name)
            assert state is not None, f"{name} after {sorted(seen)} breaks a constraint"
            known[seen, name] = state, not alive(everything, state, single(absence.absent))
        return known[seen, name]

    passes = stream.passes(frozenset({absence.absent}) if absence.is_priced else frozenset())
    delays = [_delay(absence, stream, passes, rows, after, is_guarded) for rows in _traces(stream)]
    told = [delay for delay in delays if delay is not None]
    return Delay(alerts=len(told), events=float(np.mean(told)) if told else 0.0)


def measured(absence: Absence, stream: OrderStream, batch: EventBatch, mode: Mode) -> Delay:
    """Measure the matcher's delay: the number of the trace's events between the end of a match and its emission."""
    matcher = matcher_for(absence.text, mode)
    delays: list[int] = []
    owner = {f"order-{number + 1}": number for number in range(int(stream.orders.max()) + 1)}
    times = [stream.times_us[rows] for rows in _traces(stream)]
    for start in range(0, len(batch), _ROWS):
        for match in matcher.process(batch.slice(start, min(_ROWS, len(batch) - start))).matches():
            own = times[owner[match.key]]
            both = np.searchsorted(own, [match.end_us, match.detected_us], side="right")
            delays.append(int(both[1] - both[0]))
    return Delay(alerts=len(delays), events=float(np.mean(delays)) if delays else 0.0)


def _traces(stream: OrderStream) -> list[NDArray[np.intp]]:
    """Return the rows of each order, in their order."""
    rows = np.argsort(stream.orders, kind="stable")
    return np.split(rows, np.flatnonzero(np.diff(stream.orders[rows])) + 1)


def _delay(
    absence: Absence,
    stream: OrderStream,
    passes: NDArray[np.bool_],
    rows: NDArray[np.intp],
    after: Callable[[frozenset[str], str], tuple[frozenset[str], bool]],
    is_guarded: bool,
) -> int | None:
    """Return the number of events from the step to its alert, or None without an alert.

    The steps of ``ABSENCES`` occur once in a trace.
    """
    seen: frozenset[str] = frozenset()
    since: int | None = None
    for row in rows.tolist():
        name = TYPES[stream.types[row]]
        seen, is_certain = after(seen, name)
        since = None if since is None else since + 1
        if since is not None and name == absence.absent and passes[row]:
            return None
        since = 0 if name == absence.step else since
        if since is not None and is_certain and is_guarded:
            return since
    return since

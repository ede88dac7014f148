"""The choice of a join's strategy for a memory budget, or a refusal with the reason.

Source: data-driven memory management for stream joins, section 3.9 of the specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from joins.errors import JoinRefused
from literature.unsynchronised.memory_model import (
    RESERVE,
    STRATEGIES,
    InputEstimate,
    Slots,
    Strategy,
    predicted_slots,
    shown_slots,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The resources of a join.

    Attributes:
        memory_bytes: Memory for the arrivals of all inputs.
        tuple_bytes: Size of an arrival.
        latency_us: Greatest delay of a combination after its last arrival; None: no bound.
        has_disk: Whether arrivals may wait on disk.
        reserve: Number of arrivals of each input that are read ahead from disk.
    """

    memory_bytes: int
    tuple_bytes: int = 24
    latency_us: int | None = None
    has_disk: bool = True
    reserve: int = RESERVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A strategy and the resources that it needs.

    Attributes:
        strategy: The chosen strategy.
        slots: Slots of each input.
        memory_bytes: Memory of all inputs.
        latency_us: Greatest delay of a combination by sorting.
        reason: Reason of the choice, with the figures.
    """

    strategy: Strategy
    slots: tuple[Slots, ...]
    memory_bytes: int
    latency_us: int
    reason: str


def choose(
    estimates: Sequence[InputEstimate], lags: Sequence[Sequence[float]], budget: Budget, *, is_pipelined: bool = False
) -> Choice:
    """The strategy for a join.

    Args:
        estimates: Estimate of each input.
        lags: The number of its own arrivals by which each input leads each other input.
        budget: Resources of the join.
        is_pipelined: Whether its inputs are outputs of joins, or its output is an input of a join.

    Raises:
        JoinRefused: No strategy fits; the message has the needs of each.
    """
    least = len(estimates) * budget.tuple_bytes
    if budget.memory_bytes < least:
        raise JoinRefused(
            f"a join of {len(estimates)} inputs needs at least {least:,} bytes of memory, one arrival of each; "
            f"its budget is {budget.memory_bytes:,}"
        )
    possible = {candidate: predicted_slots(estimates, lags, candidate, budget.reserve) for candidate in STRATEGIES}
    for strategy in _order(estimates, lags, possible["plain"], is_pipelined=is_pipelined):
        if _fault(strategy, estimates, possible[strategy], budget) is None:
            return _choice(strategy, estimates, possible[strategy], budget)
    faults = [f"{candidate}: {_fault(candidate, estimates, possible[candidate], budget)}" for candidate in STRATEGIES]
    raise JoinRefused(f"no strategy keeps the join within its budget; {'; '.join(faults)}")


def _order(
    estimates: Sequence[InputEstimate], lags: Sequence[Sequence[float]], plain: Sequence[Slots], *, is_pipelined: bool
) -> tuple[Strategy, ...]:
    """The strategies in the order in which they are tried."""
    largest = max(range(len(estimates)), key=lambda number: plain[number].join)
    lead = max(lag for other, lag in enumerate(lags[largest]) if other != largest)
    if lead > plain[largest].join / 2:
        return ("plain", "disk", "hybrid")
    return ("plain", "sort", "hybrid") if is_pipelined else ("plain", "hybrid")


def _fault(
    strategy: Strategy, estimates: Sequence[InputEstimate], slots: Sequence[Slots], budget: Budget
) -> str | None:
    """The reason why a strategy does not fit; None: it fits."""
    delay_us, needed = _delay_us(strategy, estimates), _bytes(slots, budget)
    if strategy in ("disk", "hybrid") and not budget.has_disk:
        return "there is no disk to spill to"
    if needed > budget.memory_bytes:
        size_text = "without bound" if needed == inf else f"{ceil(needed):,} bytes"
        slots_text = ", ".join(shown_slots(slots))
        return f"predicted memory {size_text} (arrivals of each input: {slots_text}), budget {budget.memory_bytes:,}"
    if budget.latency_us is not None and delay_us > budget.latency_us:
        return f"sorting delays results by up to {ceil(delay_us):,} us, allowed are {budget.latency_us:,}"
    return None


def _choice(strategy: Strategy, estimates: Sequence[InputEstimate], slots: Sequence[Slots], budget: Budget) -> Choice:
    needed, delay_us = ceil(_bytes(slots, budget)), ceil(_delay_us(strategy, estimates))
    return Choice(
        strategy=strategy,
        slots=tuple(slots),
        memory_bytes=needed,
        latency_us=delay_us,
        reason=f"{strategy}: predicted memory {needed:,} of {budget.memory_bytes:,} bytes "
        f"(arrivals of each input: {', '.join(shown_slots(slots))}), delay up to {delay_us:,} us",
    )


def _bytes(slots: Sequence[Slots], budget: Budget) -> float:
    return sum(input_slots.memory for input_slots in slots) * budget.tuple_bytes


def _delay_us(strategy: Strategy, estimates: Sequence[InputEstimate]) -> float:
    """The longest time that an arrival waits in a sort buffer: until its input had ``factor`` more arrivals."""
    if strategy in ("plain", "disk"):
        return 0
    return max(estimate.factor / estimate.rate * 1e6 if estimate.rate > 0 else inf for estimate in estimates)

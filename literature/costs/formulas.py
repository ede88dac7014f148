"""Cost functions of windowed joins with and without punctuations.

Source: section 4 of the specification of punctuation-aware joins: the costs of PWJoin, MPWJoin and the hash window join
for each unit of time, and the purge threshold of least cost. Lives and lags are those of ``joins.costs``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from joins.costs import mean_stay_us


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRates:
    """Rates per unit of time and times of an input, in any one unit; an infinite window: none.

    Attributes:
        life: Mean life of its keys.
        lag: Time from a key's first event until the other input closes the key, in lives; infinite: never.
        scheduled: Share of its punctuations that have to wait for the window (beta), 0 to 1.
    """

    events: float
    punctuations: float = 0.0
    window: float = math.inf
    life: float = 1.0
    lag: float = math.inf
    scheduled: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """Costs of single steps, in any one unit: comparing two keys, changing a list of events by one, and so on.

    ``schedule`` puts a punctuation into the schedule and takes it out; ``results`` forms the results of an event.
    """

    comparison: float = 1.0
    insert: float = 1.0
    delete: float = 1.0
    schedule: float = 2.0
    results: float = 1.0


def on_the_fly_share(lag: float) -> float:
    """The share of events (alpha) that arrive after the other input closed their key and so are not stored."""
    return 1.0 if lag < 0 else max(0.0, 1 - lag)


def state_size(rates: InputRates) -> float:
    """The mean number of stored events of an input (Little's law)."""
    return rates.events * mean_stay_us(rates.life, rates.lag, rates.window)


def punctuated_cost(
    inputs: Sequence[InputRates], number: int, costs: UnitCosts, *, buckets: int, sharing: float
) -> float:
    """The cost of an input of a PWJoin or MPWJoin per unit of time.

    ``buckets`` are those of the key index; ``sharing`` is the mean number of stored events, of all inputs, that share a
    key.
    """
    mine = inputs[number]
    chain = sum(map(state_size, inputs)) / (2 * buckets * sharing) * costs.comparison
    stored = 1 - on_the_fly_share(mine.lag)
    each_event = chain + 2 * stored * (costs.insert + costs.delete) + costs.results
    each_punctuation = chain + mine.scheduled * costs.schedule
    return mine.events * each_event + mine.punctuations * each_punctuation


def hash_window_cost(mine: InputRates, other: InputRates, costs: UnitCosts, *, buckets: int) -> float:
    """The cost of an input of a hash window join of two inputs per unit of time."""
    chain = other.events * other.window / buckets * costs.comparison
    return mine.events * (chain + costs.insert + costs.delete + costs.results)


def purge_cost(threshold: float, state: float, garbage: float, spacing: float, buckets: int) -> float:
    """The cost of an event, in comparisons, if the state is scanned every ``threshold`` punctuations of both inputs.

    ``state`` is the number of useful events, ``garbage`` the number of events that each punctuation makes useless,
    ``spacing`` the events of both inputs from punctuation to punctuation, ``buckets`` the buckets of each input.
    """
    probing = (state + garbage * threshold / 2) / (2 * buckets)
    scanning = (state + garbage * threshold) / (threshold * spacing)
    return probing + scanning


def best_purge_threshold(state: float, garbage: float, spacing: float, buckets: int) -> float:
    """The threshold at which ``purge_cost`` is least, at least 1."""
    return max(1.0, math.sqrt(4 * buckets * state / (spacing * garbage)))

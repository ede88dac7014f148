"""The choice of attributes that are worth punctuations, and of sources whose punctuations are not.

Source: section 7.4 (d) of the specification of punctuation-aware joins; savings are computed by the cost functions of
its section 4 (``literature.costs``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from literature.costs import InputRates, UnitCosts, punctuated_cost, state_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of costs, all in one unit of the caller's choice.

    Attributes:
        byte: Weight of a retained byte.
        work: Weight of a unit of work in a unit of time.
        latency: Weight of a unit of time by which results are delayed.
    """

    byte: float = 1.0
    work: float = 1.0
    latency: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The saving by punctuations of an attribute.

    Attributes:
        held_bytes: Retained bytes saved, on average; infinite: without punctuations the state grows for ever.
        work: Work saved in a unit of time; negative: punctuations cost more than they save.
    """

    held_bytes: float
    work: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An attribute of an input for which punctuations could be made.

    Attributes:
        attribute: Name of the attribute.
        saving: The saving by its punctuations.
        punctuations: Number of punctuations in a unit of time.
        cost: Cost of making a punctuation.
        delay: Delay of results, as events are held.
    """

    attribute: str
    saving: Saving
    punctuations: float
    cost: float
    delay: float = 0.0


def with_punctuations(
    inputs: Sequence[InputRates], number: int, punctuations: float, lags: Sequence[float]
) -> list[InputRates]:
    """The inputs of a join if one of them had punctuations.

    Args:
        inputs: The present inputs.
        number: The input that gets punctuations.
        punctuations: Number of punctuations in a unit of time.
        lags: The lag of each input with these punctuations alone.
    """
    after = [replace(rates, lag=min(rates.lag, lag)) for rates, lag in zip(inputs, lags, strict=True)]
    after[number] = replace(after[number], punctuations=after[number].punctuations + punctuations)
    return after


def saving_of(
    before: Sequence[InputRates],
    after: Sequence[InputRates],
    *,
    event_bytes: float,
    costs: UnitCosts | None = None,
    buckets: int = 64,
    sharing: float = 1.0,
) -> Saving:
    """The saving of a join by other rates of its inputs.

    Args:
        before: The present inputs.
        after: The inputs with other rates.
        event_bytes: Size of a retained event.
        costs: Costs of single steps; default: ``UnitCosts()``.
        buckets: Number of buckets of the index of keys.
        sharing: The mean number of stored events, of all inputs, that share a key.
    """
    if any(map(_is_endless, after)):
        return Saving(held_bytes=0.0, work=0.0)  # the state grows for ever in both cases
    if any(map(_is_endless, before)):
        return Saving(held_bytes=math.inf, work=math.inf)
    unit = costs or UnitCosts()

    def work(inputs: Sequence[InputRates]) -> float:
        each = [punctuated_cost(inputs, place, unit, buckets=buckets, sharing=sharing) for place in range(len(inputs))]
        return sum(each)

    held = sum(map(state_size, before)) - sum(map(state_size, after))
    return Saving(held_bytes=held * event_bytes, work=work(before) - work(after))


def _is_endless(rates: InputRates) -> bool:
    return math.isinf(rates.lag) and math.isinf(rates.window)


def net_gain(candidate: Candidate, weights: Weights) -> float:
    """The weighted saving by punctuations of an attribute, less their cost."""
    gained = weights.byte * candidate.saving.held_bytes + weights.work * candidate.saving.work
    return gained - candidate.punctuations * candidate.cost - weights.latency * candidate.delay


def worthwhile(candidates: Iterable[Candidate], used: Iterable[str], weights: Weights) -> list[str]:
    """The attributes that are worth punctuations, greatest gain first.

    Args:
        candidates: All attributes for which punctuations can be made.
        used: Attributes that registered patterns and joins use as keys of joins, groups or partitions.
        weights: Weights of the gain.
    """
    allowed = frozenset(used)
    gains = {
        candidate.attribute: net_gain(candidate, weights) for candidate in candidates if candidate.attribute in allowed
    }
    return sorted((name for name, gain in gains.items() if gain > 0), key=lambda name: (-gains[name], name))


@dataclass
class SourceChoice:
    """Disables sources of punctuations that purge nothing, and tries them again later.

    Attributes:
        patience: Number of consecutive punctuations without a purge at which a source is disabled.
        rest: Number of evaluations after which a disabled source is tried again; 0: never.
        disabled: Disabled sources, each with the number of evaluations left.
    """

    patience: int = 1_000
    rest: int = 0
    disabled: dict[str, int] = field(default_factory=dict)
    _useless: dict[str, int] = field(default_factory=dict)

    def note(self, source: str, punctuations: int, purged: int) -> None:
        """Note a source's punctuations since the last note, and the number of events that they purged or let drop."""
        self._useless[source] = 0 if purged else self._useless.get(source, 0) + punctuations
        if self._useless[source] >= self.patience:
            self.disabled.setdefault(source, self.rest)

    def is_enabled(self, source: str) -> bool:
        """Whether a source is enabled."""
        return source not in self.disabled

    def evaluate(self) -> list[str]:
        """Count an evaluation; return the sources whose rest is over, which are enabled again."""
        again = []
        for source, evaluations in list(self.disabled.items()):
            if evaluations == 1:
                again.append(source)
                del self.disabled[source]
                self._useless[source] = 0
            elif evaluations > 1:
                self.disabled[source] = evaluations - 1
        return again

    def dump(self) -> dict[str, dict[str, int]]:
        """The state as a JSON value."""
        return {"disabled": dict(self.disabled), "useless": dict(self._useless)}

    def load(self, saved: Mapping[str, Mapping[str, int]]) -> None:
        """Load a state that ``dump`` returned."""
        self.disabled, self._useless = dict(saved["disabled"]), dict(saved["useless"])

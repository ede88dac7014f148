"""Which attributes are worth punctuations, and which sources of punctuations are not.

Source: section 7.4 (d) of the specification of punctuation-aware joins; what is saved is by the cost functions of its
section 4 (``joins.costs``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joins.costs import InputRates, UnitCosts, punctuated_cost, state_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What counts how much, in any one unit.

    Attributes:
        byte: Of a byte that is held.
        work: Of a unit of work in a unit of time.
        latency: Of a unit of time that results come later.
    """

    byte: float = 1.0
    work: float = 1.0
    latency: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What punctuations of an attribute change.

    Attributes:
        held_bytes: Fewer, on average; infinite: without them the state grows for ever.
        work: Less, in a unit of time; negative: they cost more than they save.
    """

    held_bytes: float
    work: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An attribute of an input for which punctuations could be made.

    Attributes:
        attribute: Its name.
        saving: What they change.
        punctuations: In a unit of time.
        cost: Of making one.
        delay: How much later results come, as events are held.
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
        inputs: As they are.
        number: The one that gets punctuations.
        punctuations: How many in a unit of time.
        lags: What the lag of each input would be by these alone.
    """
    after = [replace(one, lag=min(one.lag, lag)) for one, lag in zip(inputs, lags, strict=True)]
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
    """What other rates of the inputs of a join change.

    Args:
        before: The inputs as they are.
        after: As they would be.
        event_bytes: Of an event that is held.
        costs: Of one step.
        buckets: Of the index of keys.
        sharing: The mean number of stored events, of all inputs, that share a key.
    """
    if any(map(_is_endless, after)):
        return Saving(held_bytes=0.0, work=0.0)  # the state grows for ever all the same
    if any(map(_is_endless, before)):
        return Saving(held_bytes=math.inf, work=math.inf)
    unit = costs or UnitCosts()

    def work(inputs: Sequence[InputRates]) -> float:
        each = [punctuated_cost(inputs, one, unit, buckets=buckets, sharing=sharing) for one in range(len(inputs))]
        return sum(each)

    held = sum(map(state_size, before)) - sum(map(state_size, after))
    return Saving(held_bytes=held * event_bytes, work=work(before) - work(after))


def _is_endless(one: InputRates) -> bool:
    return math.isinf(one.lag) and math.isinf(one.window)


def net_gain(candidate: Candidate, weights: Weights) -> float:
    """What punctuations of an attribute are worth, less what they cost."""
    gained = weights.byte * candidate.saving.held_bytes + weights.work * candidate.saving.work
    return gained - candidate.punctuations * candidate.cost - weights.latency * candidate.delay


def worthwhile(candidates: Iterable[Candidate], used: Iterable[str], weights: Weights) -> list[str]:
    """The attributes for which punctuations are to be made, those of the greatest gain first.

    Args:
        candidates: All attributes for which they can be made.
        used: Attributes that registered patterns and joins have as keys of joins, groups or partitions.
        weights: What counts how much.
    """
    allowed = frozenset(used)
    gains = {one.attribute: net_gain(one, weights) for one in candidates if one.attribute in allowed}
    return sorted((name for name, gain in gains.items() if gain > 0), key=lambda name: (-gains[name], name))


@dataclass
class SourceChoice:
    """Which sources of punctuations go on, by what their punctuations purged.

    Attributes:
        patience: Punctuations in a row that purge nothing, after which a source is disabled.
        rest: How many evaluations a disabled source waits until it is tried again; 0: for ever.
        disabled: Sources that are, with the evaluations that they still wait.
    """

    patience: int = 1_000
    rest: int = 0
    disabled: dict[str, int] = field(default_factory=dict)
    _useless: dict[str, int] = field(default_factory=dict)

    def note(self, source: str, punctuations: int, purged: int) -> None:
        """A source gave punctuations since the last note, which purged so many events or let them be dropped."""
        self._useless[source] = 0 if purged else self._useless.get(source, 0) + punctuations
        if self._useless[source] >= self.patience:
            self.disabled.setdefault(source, self.rest)

    def is_enabled(self, source: str) -> bool:
        """Whether a source is to give punctuations."""
        return source not in self.disabled

    def evaluate(self) -> list[str]:
        """Some time has passed: the sources that are to be tried again, which are enabled from here on."""
        again = []
        for source, left in list(self.disabled.items()):
            if left == 1:
                again.append(source)
                del self.disabled[source]
                self._useless[source] = 0
            elif left > 1:
                self.disabled[source] = left - 1
        return again

    def dump(self) -> dict[str, dict[str, int]]:
        """The state as a JSON value."""
        return {"disabled": dict(self.disabled), "useless": dict(self._useless)}

    def load(self, saved: Mapping[str, Mapping[str, int]]) -> None:
        """Take what ``dump`` gave."""
        self.disabled, self._useless = dict(saved["disabled"]), dict(saved["useless"])

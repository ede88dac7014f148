"""How many results an approximate join may lose: what it has spent of that, and what it has lost.

Source: section 7.5 of the specification of punctuation-aware joins. Events are purged by punctuations that are only
probably true. The expected loss (``lost_bound``) is the specification's. About half of all runs lose more than they
expect, so with a confidence the bound is what few runs exceed: the inequality of D. Freedman, "On tail probabilities
for martingales", Annals of Probability 3 (1975), as punctuations are judged one after another by what came before. It
holds as far as probabilities are what they say, and what is purged later does not depend on what was lost before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from joins.items import Cause
from literature.punctuations import ProbablePunctuation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules:
    """How much may be lost.

    Attributes:
        target: The share of the results that is found at least, above 0 and below 1.
        confidence: In what share of all runs; None: the expected loss is bounded only.
        most_lost: What all false claims may lose together at worst; None: no bound of its own.
    """

    target: float
    confidence: float | None = 0.95
    most_lost: int | None = None

    def __post_init__(self) -> None:
        shares = [self.target, *([] if self.confidence is None else [self.confidence])]
        if not all(0 < share < 1 for share in shares):
            raise ValueError(f"a target and a confidence are above 0 and below 1, got {shares}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """What a purge may lose.

    Attributes:
        events: In the scope of the punctuation.
        doubt: The probability that it is wrong: 1 less its own.
        most: Events of a key that are purged, at most.
        is_claim: Whether it is wrong for all events at once.
    """

    events: int
    doubt: float
    most: int
    is_claim: bool

    @classmethod
    def of(cls, said: ProbablePunctuation, events: int, most: int) -> Risk:
        """The risk of purging so many events of a key at most, where so many events are in the scope."""
        return cls(events=events, doubt=1 - said.probability, most=most, is_claim=said.reading == "claim")

    @property
    def at_worst(self) -> int:
        """What it loses if every event in the scope is one that it rules out."""
        return self.events * self.most

    @property
    def expected(self) -> float:
        """What it loses on average."""
        return self.at_worst * self.doubt

    @property
    def step(self) -> float:
        """What is lost at once, at most."""
        return float(self.at_worst if self.is_claim else self.most) if self.doubt > 0 else 0.0

    @property
    def variance(self) -> float:
        """Of what is lost, at most."""
        return self.doubt * self.step**2 * (1 if self.is_claim else self.events)


@dataclass(slots=True)
class RecallBudget:
    """What an approximate join has spent.

    Attributes:
        expected: Results that it expects to lose (``lost_bound`` of the specification).
        variance: Of that, at most.
        step: What one event or claim loses, at most.
        at_worst: What it can lose.
        claimed: That of claims alone.
        observed: Results that were lost, as far as events came that would have had them.
    """

    expected: float = 0.0
    variance: float = 0.0
    step: float = 0.0
    at_worst: int = 0
    claimed: int = 0
    observed: int = 0

    def bound(self, confidence: float | None) -> float:
        """What is lost at most: on average, or with a confidence."""
        if confidence is None:
            return self.expected
        surprise = -math.log(1 - confidence)
        slope = surprise * self.step / 3
        return min(float(self.at_worst), self.expected + slope + math.sqrt(slope**2 + 2 * self.variance * surprise))

    def allows(self, risk: Risk, rules: RecallRules, emitted: int) -> bool:
        """Whether the target is kept with another purge, if nothing more is emitted."""
        after = self.with_risk(risk)
        if rules.most_lost is not None and after.claimed > rules.most_lost:
            return False
        lost = max(after.bound(rules.confidence), float(self.observed))
        return lost <= (1 - rules.target) * (emitted + lost)

    def with_risk(self, risk: Risk) -> RecallBudget:
        """The same with another purge."""
        return RecallBudget(
            expected=self.expected + risk.expected,
            variance=self.variance + risk.variance,
            step=max(self.step, risk.step),
            at_worst=self.at_worst + (risk.at_worst if risk.doubt > 0 else 0),
            claimed=self.claimed + (risk.at_worst if risk.is_claim else 0),
            observed=self.observed,
        )

    def recall(self, emitted: int) -> float:
        """The measured recall: the share of the results so far that was found."""
        return emitted / (emitted + self.observed) if emitted + self.observed else 1.0

    def dump(self) -> dict[str, float]:
        """The state as a JSON value."""
        return asdict(self)

    @classmethod
    def load(cls, saved: Mapping[str, float]) -> RecallBudget:
        """What ``dump`` gave."""
        whole = {name: int(saved[name]) for name in ("at_worst", "claimed", "observed")}
        return cls(expected=saved["expected"], variance=saved["variance"], step=saved["step"], **whole)


def inherited(cause: Cause, first: float, second: float = 1.0) -> float:
    """How probable it is that no result of some keys comes any more, by the punctuations that say so.

    Args:
        cause: ``REGULAR``: both are needed, and may depend on each other in any way. Else the first alone says so.
        first: The probability of the punctuation of an input.
        second: That of the other input.
    """
    return max(0.0, first + second - 1) if cause == Cause.REGULAR else first

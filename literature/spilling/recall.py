"""The budget of results that an approximate join may lose, its use, and the results lost so far.

Source: section 7.5 of the specification of punctuation-aware joins. Events are purged by punctuations that are only
probably true. The expected loss (``lost_bound``) is the specification's. About half of all runs lose more than they
expect; so with a confidence, the bound is a loss that few runs exceed, by the inequality of D. Freedman, "On tail
probabilities for martingales", Annals of Probability 3 (1975), as each punctuation is judged by the past alone. The
bound holds if the probabilities are true and later purges do not depend on earlier losses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from joins.items import Cause
from literature.punctuations import ProbablePunctuation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules:
    """Bounds of the loss.

    Attributes:
        target: Least share of the results that is found, above 0 and below 1.
        confidence: Share of all runs that reach the target; None: only the expected loss is bounded.
        most_lost: Greatest loss by all claims together, if all are false; None: no such bound.
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
    """The possible loss by a purge.

    Attributes:
        events: Number of events in the scope of the punctuation.
        doubt: Probability that the punctuation is wrong: 1 less its own probability.
        most: Greatest number of purged events of a key.
        is_claim: Whether the punctuation is right or wrong for all events at once.
    """

    events: int
    doubt: float
    most: int
    is_claim: bool

    @classmethod
    def of(cls, punctuation: ProbablePunctuation, events: int, most: int) -> Risk:
        """The risk of purging at most ``most`` events of a key, with ``events`` events in the scope."""
        return cls(events=events, doubt=1 - punctuation.probability, most=most, is_claim=punctuation.reading == "claim")

    @property
    def at_worst(self) -> int:
        """The loss if every event in the scope has a key that the punctuation rules out."""
        return self.events * self.most

    @property
    def expected(self) -> float:
        """The loss on average."""
        return self.at_worst * self.doubt

    @property
    def step(self) -> float:
        """Upper bound of the loss by a single event or claim."""
        return float(self.at_worst if self.is_claim else self.most) if self.doubt > 0 else 0.0

    @property
    def variance(self) -> float:
        """Upper bound of the variance of the loss."""
        return self.doubt * self.step**2 * (1 if self.is_claim else self.events)


@dataclass(slots=True)
class RecallBudget:
    """The accumulated risks of an approximate join.

    Attributes:
        expected: Expected number of lost results (``lost_bound`` of the specification).
        variance: Upper bound of the variance of the loss.
        step: Upper bound of the loss by a single event or claim.
        at_worst: Loss in the worst case.
        claimed: Loss in the worst case by claims alone.
        observed: Lost results that were observed when an event arrived that would have had them.
    """

    expected: float = 0.0
    variance: float = 0.0
    step: float = 0.0
    at_worst: int = 0
    claimed: int = 0
    observed: int = 0

    def bound(self, confidence: float | None) -> float:
        """The expected loss, or with a confidence an upper bound of the loss."""
        if confidence is None:
            return self.expected
        surprise = -math.log(1 - confidence)
        slope = surprise * self.step / 3
        return min(float(self.at_worst), self.expected + slope + math.sqrt(slope**2 + 2 * self.variance * surprise))

    def allows(self, risk: Risk, rules: RecallRules, emitted: int) -> bool:
        """Whether the target is reached with another purge even if nothing more is emitted."""
        after = self.with_risk(risk)
        if rules.most_lost is not None and after.claimed > rules.most_lost:
            return False
        lost = max(after.bound(rules.confidence), float(self.observed))
        return lost <= (1 - rules.target) * (emitted + lost)

    def with_risk(self, risk: Risk) -> RecallBudget:
        """The budget after another purge."""
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
        """The budget that ``dump`` saved."""
        whole = {name: int(saved[name]) for name in ("at_worst", "claimed", "observed")}
        return cls(expected=saved["expected"], variance=saved["variance"], step=saved["step"], **whole)


def inherited(cause: Cause, first: float, second: float = 1.0) -> float:
    """The probability that some keys are finished, from the probabilities of the punctuations that finish them.

    Args:
        cause: ``REGULAR``: both punctuations are needed, and may depend on each other in any way. Otherwise the first
            one suffices.
        first: Probability of the punctuation of an input.
        second: Probability of the punctuation of the other input.
    """
    return max(0.0, first + second - 1) if cause == Cause.REGULAR else first

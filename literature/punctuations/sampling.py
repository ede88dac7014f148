"""Bounds, with a confidence, of the share of events that satisfy a condition, from a sample.

Source: section 7.4 (c) of the specification of punctuation-aware joins; C. Clopper, E. Pearson, "The use of confidence
or fiducial limits", Biometrika 26 (1934). The lower bound is the least share that does not make the sample too
improbable. The tail is summed exactly, and the share is found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from literature.punctuations.hints import ProbablePunctuation, Scope
from literature.punctuations.patterns import Pattern, matches

_STEPS = 60  # of the bisection; each halves an interval of initial length 1


def tail(successes: int, sample: int, share: float) -> float:
    """The probability that at least ``successes`` of ``sample`` draws satisfy, if ``share`` of all events do."""
    if successes <= 0:
        return 1.0
    if share <= 0 or share >= 1:
        return float(share >= 1)
    least, greatest = math.log(share), math.log1p(-share)
    terms = [
        _log_choices(sample, count) + count * least + (sample - count) * greatest
        for count in range(successes, sample + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, terms)))


def unanimous_share(sample: int, risk: float) -> float:
    """The lower bound of the share, with the confidence 1 - risk, where all events of a sample satisfied."""
    _require(sample, sample, risk)
    return float(risk ** (1 / sample))


def least_share(successes: int, sample: int, risk: float) -> float:
    """The lower bound of Clopper and Pearson of a share, with the confidence 1 - risk.

    Args:
        successes: Number of draws that satisfied.
        sample: Number of independent draws, at least one.
        risk: The probability that the bound is too high, between 0 and 1.

    Raises:
        ValueError: The numbers or the risk are out of range.
    """
    _require(successes, sample, risk)
    if successes == 0:
        return 0.0
    if successes == sample:
        return unanimous_share(sample, risk)
    low, high = 0.0, successes / sample
    if tail(successes, sample, high) <= risk:  # then the bound is higher: a risk of more than about a half
        high = 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if tail(successes, sample, middle) > risk else (middle, high)
    return low


def greatest_share(successes: int, sample: int, risk: float) -> float:
    """The upper bound of Clopper and Pearson of a share, with the confidence 1 - risk.

    Raises:
        ValueError: The numbers or the risk are out of range.
    """
    return 1.0 - least_share(sample - successes, sample, risk)


def sampled_punctuation(
    keys: Sequence[int], absent: Pattern, *, sample: int, risk: float, chance: np.random.Generator
) -> ProbablePunctuation:
    """A probable punctuation, from a sample of held events: they have no key of a pattern.

    Args:
        keys: Keys of the held events, at least one.
        absent: The pattern of keys that are probably absent.
        sample: Number of draws, with replacement, so that they are independent.
        risk: The probability that the punctuation claims too much.
        chance: Generator of the draws.

    Returns:
        A ``per-event`` punctuation whose scope is the held events, which the input releases next.
    """
    drawn = chance.integers(0, len(keys), sample).tolist()
    kept_count = sum(not matches(absent, keys[place]) for place in drawn)
    return ProbablePunctuation(
        pattern=absent,
        scope=Scope(events=len(keys)),
        probability=least_share(kept_count, sample, risk),
        reading="per-event",
    )


def _log_choices(sample: int, count: int) -> float:
    return math.lgamma(sample + 1) - math.lgamma(count + 1) - math.lgamma(sample - count + 1)


def _require(successes: int, sample: int, risk: float) -> None:
    if sample < 1 or not 0 <= successes <= sample or not 0 < risk < 1:
        raise ValueError(f"a sample has events of which some satisfy, at a risk: {successes} of {sample}, {risk}")

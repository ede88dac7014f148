"""Generators for the attributes of simulated events. Values are drawn independently for each event."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.random import Generator

from workflows.errors import InvalidWorkflow

Value: TypeAlias = int | float | str | bool

_MOST_WHOLE = 2**53  # JSON readers represent whole numbers up to this limit exactly
_MOST_NUMBER = 1e300


class Attribute(Protocol):
    """A random attribute of simulated events. It may have several names, all of which get the same value."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def sample(self, rng: Generator, count: int) -> Sequence[Value]:
        """Draw ``count`` independent values of the attribute."""
        ...


@dataclass(frozen=True, slots=True)
class _Named:
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True, slots=True)
class IntegerAttribute(_Named):
    """A whole number, uniform over the ``domain`` numbers from ``least`` on."""

    domain: int
    least: int = 1

    def __post_init__(self) -> None:
        _check_domain(self.name, self.domain)
        most = max(abs(self.least), abs(self.least + self.domain))
        _check(self.name, most <= _MOST_WHOLE, "whole numbers lie between -2^53 and 2^53")

    def sample(self, rng: Generator, count: int) -> list[int]:
        return list(map(int, rng.integers(self.least, self.least + self.domain - 1, count, endpoint=True)))


@dataclass(frozen=True, slots=True)
class TextAttribute(_Named):
    """A text, uniform over ``<name>-1``, ``<name>-2``, ... ``<name>-<domain>``."""

    domain: int

    def __post_init__(self) -> None:
        _check_domain(self.name, self.domain)

    def sample(self, rng: Generator, count: int) -> list[str]:
        return [f"{self.name}-{number}" for number in rng.integers(1, self.domain, count, endpoint=True).tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAttribute:
    """A whole number that makes the condition ``[name > threshold]`` false with probability ``fail_ratio``.

    In this case it is uniform from 1 to ``threshold``, otherwise from ``threshold + 1`` to ``highest``. Values of
    different events are independent. The number may have several names.
    """

    names: tuple[str, ...]
    fail_ratio: float
    threshold: int = 200
    highest: int = 1_000

    def __post_init__(self) -> None:
        name, threshold, highest = self.names[0], self.threshold, self.highest
        _check(name, 0.0 <= self.fail_ratio <= 1.0, f"fail ratio {self.fail_ratio} is not between 0 and 1")
        _check(name, 1 <= threshold < highest, f"needs 1 <= threshold < highest, got {threshold} and {highest}")

    def sample(self, rng: Generator, count: int) -> list[int]:
        low = rng.integers(1, self.threshold, count, endpoint=True)
        high = rng.integers(self.threshold + 1, self.highest, count, endpoint=True)
        return list(map(int, np.where(rng.random(count) < self.fail_ratio, low, high)))


@dataclass(frozen=True, slots=True)
class ConstantAttribute(_Named):
    """A constant value."""

    value: Value

    def sample(self, rng: Generator, count: int) -> list[Value]:
        return [self.value] * count


@dataclass(frozen=True, slots=True)
class BooleanAttribute(_Named):
    """A truth value that is true with probability ``share``."""

    share: float = 0.5

    def __post_init__(self) -> None:
        _check(self.name, 0.0 <= self.share <= 1.0, f"share {self.share} is not between 0 and 1")

    def sample(self, rng: Generator, count: int) -> list[bool]:
        return [bool(flag) for flag in rng.random(count) < self.share]


@dataclass(frozen=True, slots=True)
class ChoiceAttribute(_Named):
    """One of several values. Their frequencies are proportional to ``weights``, or equal if ``weights`` is empty."""

    values: tuple[Value, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check(self.name, bool(self.values), "a choice needs at least one value")
        values, weights = len(self.values), self.weights
        _check(self.name, len(weights) in (0, values), f"{values} values need as many weights, got {len(weights)}")
        are_usable = all(weight >= 0.0 for weight in weights) and 0.0 < math.fsum(weights) < math.inf
        _check(self.name, not weights or are_usable, f"weights are 0 or more, not all 0, got {weights}")

    def sample(self, rng: Generator, count: int) -> list[Value]:
        total = math.fsum(self.weights)
        shares = [weight / total for weight in self.weights] or None
        return [self.values[place] for place in rng.choice(len(self.values), count, p=shares)]


@dataclass(frozen=True, slots=True)
class UniformAttribute(_Named):
    """A number that is uniform from ``least`` to ``most``."""

    least: float
    most: float

    def __post_init__(self) -> None:
        _check_finite(self.name, self.least, self.most, self.most - self.least)
        wrong = f"{self.least} to {self.most} is not a range; the smaller number comes first"
        _check(self.name, self.least <= self.most, wrong)

    def sample(self, rng: Generator, count: int) -> list[float]:
        return [float(value) for value in rng.uniform(self.least, self.most, count)]


@dataclass(frozen=True, slots=True)
class NormalAttribute(_Named):
    """A normally distributed number."""

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        _check_finite(self.name, self.mean, self.deviation)
        _check(self.name, self.deviation >= 0.0, f"a deviation is 0 or more, got {self.deviation}")

    def sample(self, rng: Generator, count: int) -> list[float]:
        return [float(value) for value in rng.normal(self.mean, self.deviation, count)]


@dataclass(frozen=True, slots=True)
class ExponentialAttribute(_Named):
    """An exponentially distributed number, 0 or more."""

    mean: float

    def __post_init__(self) -> None:
        _check_finite(self.name, self.mean)
        _check(self.name, self.mean > 0.0, f"a mean is above 0, got {self.mean}")

    def sample(self, rng: Generator, count: int) -> list[float]:
        return [float(value) for value in rng.exponential(self.mean, count)]


def _check_finite(name: str, *numbers: float) -> None:
    for number in numbers:
        _check(name, abs(number) <= _MOST_NUMBER, f"numbers lie between -1e300 and 1e300, got {number}")


def _check_domain(name: str, domain: int) -> None:
    _check(name, domain >= 1, f"a domain has at least 1 value, got {domain}")


def _check(name: str, is_valid: bool, wrong: str) -> None:
    if not is_valid:
        raise InvalidWorkflow(f"attribute {name}: {wrong}")

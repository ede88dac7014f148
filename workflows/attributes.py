"""What simulated events carry: attributes, each drawn on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from workflows.errors import InvalidWorkflow


class Attribute(Protocol):
    """Draws the values of one attribute, which may go by several names."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which an event shows the value."""
        ...

    def sample(self, rng: Generator, count: int) -> list[int] | list[str]:
        """``count`` independent values."""
        ...


@dataclass(frozen=True, slots=True)
class IntegerAttribute:
    """A whole number, uniform over 1 to ``domain``."""

    name: str
    domain: int

    def __post_init__(self) -> None:
        _check_domain(self.name, self.domain)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def sample(self, rng: Generator, count: int) -> list[int]:
        return list(map(int, rng.integers(1, self.domain, count, endpoint=True)))


@dataclass(frozen=True, slots=True)
class TextAttribute:
    """A text ``<name>-1`` to ``<name>-<domain>``, uniform."""

    name: str
    domain: int

    def __post_init__(self) -> None:
        _check_domain(self.name, self.domain)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def sample(self, rng: Generator, count: int) -> list[str]:
        return [f"{self.name}-{number}" for number in rng.integers(1, self.domain, count, endpoint=True).tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAttribute:
    """A whole number that stays at or below a threshold with a set probability.

    With probability ``fail_ratio`` uniform over 1 to ``threshold``, else over ``threshold + 1`` to ``highest``: so the
    condition ``[name > threshold]`` passes with probability ``1 - fail_ratio``, for each event on its own.

    Attributes:
        names: All show the same value.
    """

    names: tuple[str, ...]
    fail_ratio: float
    threshold: int = 200
    highest: int = 1_000

    def __post_init__(self) -> None:
        if not 0.0 <= self.fail_ratio <= 1.0:
            raise InvalidWorkflow(f"attribute {self.names[0]}: fail ratio {self.fail_ratio} is not between 0 and 1")
        if not 1 <= self.threshold < self.highest:
            raise InvalidWorkflow(
                f"attribute {self.names[0]}: needs 1 <= threshold < highest, got {self.threshold} and {self.highest}"
            )

    def sample(self, rng: Generator, count: int) -> list[int]:
        low = rng.integers(1, self.threshold, count, endpoint=True)
        high = rng.integers(self.threshold + 1, self.highest, count, endpoint=True)
        return list(map(int, np.where(rng.random(count) < self.fail_ratio, low, high)))


def _check_domain(name: str, domain: int) -> None:
    if domain < 1:
        raise InvalidWorkflow(f"attribute {name}: a domain has at least 1 value, got {domain}")

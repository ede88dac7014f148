"""The number of random examples in tests: all, or a share of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")
_FEWEST = 10
_FEWEST_EACH = 5  # of a test with parameters, for each of them
_PARTNERS = 3
_SETTINGS = (
    "_hypothesis_internal_use_settings"  # where hypothesis stores the values of @settings; it has no public name for it
)


def share_of(examples: int, share: float, fewest: int = _FEWEST) -> int:
    """A share of some examples, but at least ten if there were as many."""
    return min(examples, max(fewest, round(examples * share)))


@dataclass(frozen=True, slots=True)
class Draws:
    """The cases that a test draws in a loop of its own, ``for _ in draws(6_000)``."""

    share: float

    def __call__(self, cases: int) -> range:
        """Numbers of the cases: a share of all, as a property test draws of its examples."""
        return range(share_of(cases, self.share))

    def until(self, cases: int, is_met: Callable[[], bool]) -> Iterator[int]:
        """The same numbers, and more of all as long as something rare that the test has to meet is missing."""
        for number in range(cases):
            if number >= share_of(cases, self.share) and is_met():
                return
            yield number

    def turn(self, things: Sequence[T], number: int) -> Sequence[T]:
        """What the numbered partner meets where each thing would meet each partner: a third, every partner others."""
        return things if self.share == 1 else things[number % _PARTNERS :: _PARTNERS]


def share_examples(tests: Iterable[Any], share: float) -> None:
    """Let each property test draw a share of its examples, for each of its parameters at least five.

    Args:
        tests: Test functions, a parametrised one once per parameter; functions without examples are left alone.
        share: Of the examples that a test requests; 1 leaves everything unchanged.
    """
    if share == 1:
        return
    by_id = [(id(test), test) for test in tests]
    times = Counter(number for number, _ in by_id)
    for number, test in dict(by_id).items():
        chosen = getattr(test, _SETTINGS, None)
        if chosen is not None:
            drawn = share_of(chosen.max_examples, share, _FEWEST if times[number] == 1 else _FEWEST_EACH)
            setattr(test, _SETTINGS, settings(chosen, max_examples=drawn))

"""The number of random examples that tests draw: all of them, or a share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")
_FEWEST = 10
_FEWEST_EACH = 5  # minimum for each parameter of a parametrised test
_PARTNERS = 3
_SETTINGS = (
    "_hypothesis_internal_use_settings"  # the attribute in which hypothesis stores @settings; it has no public name
)


def share_of(examples: int, share: float, fewest: int = _FEWEST) -> int:
    """Return a share of a number of examples, but at least ``fewest`` if there are that many."""
    return min(examples, max(fewest, round(examples * share)))


@dataclass(frozen=True, slots=True)
class Draws:
    """The random cases of a test that draws them in its own loop, ``for _ in draws(6_000)``."""

    share: float

    def __call__(self, cases: int) -> range:
        """Return the numbers of the cases to draw: a share of all, as for the examples of a property test."""
        return range(share_of(cases, self.share))

    def until(self, cases: int, is_met: Callable[[], bool]) -> Iterator[int]:
        """Yield the numbers of the cases to draw.

        If ``is_met`` still returns False after the share, more cases follow, up to all of them: the test must meet a
        rare situation at least once.
        """
        for number in range(cases):
            if number >= share_of(cases, self.share) and is_met():
                return
            yield number

    def turn(self, things: Sequence[T], number: int) -> Sequence[T]:
        """Return the items that the numbered partner is tested with: all, or a third of them if only a share is drawn.

        Consecutive partners get different thirds. Use this where a full test would combine each item with each partner.
        """
        return things if self.share == 1 else things[number % _PARTNERS :: _PARTNERS]


def share_examples(tests: Iterable[Any], share: float) -> None:
    """Reduce each property test to a share of its examples, but at least five for each of its parameters.

    Args:
        tests: The test functions, a parametrised test once per parameter. Functions without examples do not change.
        share: The share of each test's examples. 1 changes nothing.
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

"""How many random examples the property tests draw: all they ask for, or a share where a pass repeats another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import settings

_FEWEST = 10
_SETTINGS = (
    "_hypothesis_internal_use_settings"  # where hypothesis keeps what @settings says; it has no other name for it
)


def share_of(examples: int, share: float) -> int:
    """A share of some examples, but not fewer than ten unless there were."""
    return min(examples, max(_FEWEST, round(examples * share)))


def share_examples(tests: Iterable[Any], share: float) -> None:
    """Let each property test draw a share of its examples.

    Args:
        tests: Test functions, the same one more than once where it has parameters; others are left alone.
        share: Of the examples that a test asks for; 1 leaves everything as it is.
    """
    if share == 1:
        return
    for test in {id(test): test for test in tests}.values():
        chosen = getattr(test, _SETTINGS, None)
        if chosen is not None:
            setattr(test, _SETTINGS, settings(chosen, max_examples=share_of(chosen.max_examples, share)))

"""Room for a further record in a store that keeps a limited number and removes the oldest that are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_Record = TypeVar("_Record")


def surplus(known: Sequence[_Record], kept: int, is_over: Callable[[_Record], bool]) -> list[_Record] | None:
    """The oldest ended records (``is_over``) to remove before another is stored; None if there are too few."""
    wanted = max(0, len(known) - kept + 1)
    over = [record for record in known if is_over(record)][:wanted]
    return over if len(over) == wanted else None

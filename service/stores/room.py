"""Room for one more, where a store keeps a number of records and lets the oldest go that are of no more use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_Record = TypeVar("_Record")


def surplus(known: Sequence[_Record], kept: int, is_over: Callable[[_Record], bool]) -> list[_Record] | None:
    """Which records have to go before another one is kept; None: too many are still of use.

    Args:
        known: All records, the oldest first.
        kept: So many are kept.
        is_over: Whether a record is of no more use.
    """
    wanted = max(0, len(known) - kept + 1)
    over = [record for record in known if is_over(record)][:wanted]
    return over if len(over) == wanted else None

"""Formulas for the time that an event remains in the state of a join.

The *life* of a key at an input is the time from its first event to the input's own punctuation. The *lag* is the time
from the first event to the punctuation of the other input, divided by the life. It may be negative. The formulas assume
that events are spread evenly over the life.

Source: section 4 of the specification of punctuation-aware joins: Eq. 6.1 with its two corrected cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def stay_case(life: float, lag: float, window: float) -> int:
    """Return which case (1 to 6) of Eq. 6.1, the mean stay of an event in a join's state, applies to the arguments.

    If several cases apply, the first of them is returned.
    """
    if lag <= 0:
        return 2
    if lag > 1 and (lag - 1) * life >= window:
        return 1
    if lag <= 1:
        return 3 if window <= lag * life else 4
    return 5 if window <= lag * life else 6


def mean_stay_us(life: float, lag: float, window: float) -> float:
    """Return the mean time that an event remains in a join's state (Eq. 6.1), in the unit of ``life`` and ``window``.

    ``lag`` is a share of ``life``. Raise ``ValueError`` if the result is infinite.
    """
    if life < 0 or window < 0:
        raise ValueError(f"a life and a window are not negative, got {life} and {window}")
    if math.isinf(lag) and lag > 0:
        if math.isinf(window):
            raise ValueError("without a window and without punctuations of the other input, events stay for ever")
        return window
    formulas = {
        1: lambda: window,
        2: lambda: 0.0,
        3: lambda: lag * window - window * window / (2 * life),
        4: lambda: lag * lag * life / 2,
        5: lambda: lag * window - (window * window / life + (lag - 1) ** 2 * life) / 2,
        6: lambda: (lag - 0.5) * life,
    }
    return formulas[stay_case(life, lag, window)]() if life > 0 else 0.0


def purge_time_us(closings: Sequence[float], expiries: Sequence[float]) -> float:
    """Return the time T_p from which the events of a key in one input can no longer join.

    ``closings`` has the time at which each other input closes the key, or infinity if it never does. ``expiries`` has
    the time at which the key's last event of each other input leaves its window, or minus infinity without events.
    """
    assisted = min(max(closing, expiry) for closing, expiry in zip(closings, expiries, strict=True))
    return min(max(closings), assisted)

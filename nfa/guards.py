"""The seam to whoever knows what can still happen in a trace.

The matcher asks a *guard* two things: how its monitor moves on an event type, and which pattern states can still
complete in a monitor state. It interns the answers as tables and never learns why. ``constraints.Monitor`` is the guard
that reasons from order and occurrence constraints (constraint-aware CEP, section 4.2).
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nfa.automata.query import Query

Seen: TypeAlias = frozenset[str]


class Guard(Protocol):
    """What one constraint set says about traces.

    A monitor state is the set of event types seen so far that matter to the guard; it is plain data, so that saved
    state can name it.
    """

    @property
    def types(self) -> frozenset[str]:
        """Event types that can move the monitor."""
        ...

    def step(self, seen: Seen, event_type: str) -> Seen | None:
        """Monitor state after one more event, or None when the trace deviates by it.

        The empty text stands for any type that the guard does not name.
        """
        ...

    def live(self, seen: Seen, query: Query) -> NDArray[np.bool_]:
        """Which of ``query.states`` can still complete in some conforming continuation."""
        ...

"""How much work a model may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """How much work a model may be.

    Attributes:
        max_states: Most states of the minimal automaton; beyond, there is none.
        max_markings: Most markings of a net that are explored, a bound on memory and time; beyond, there is no
            automaton either.
        max_event_types: Most event types; beyond, the model is refused, as relations between types grow with the
            square of their number.
        max_elements: Most activities, gateways and other nodes, or places and transitions; beyond, it is refused.
    """

    max_states: int = 100_000
    max_markings: int = 2_000_000
    max_event_types: int = 300
    max_elements: int = 5_000

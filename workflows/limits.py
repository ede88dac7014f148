"""Limits of the work for compiling a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """Limits of the work for compiling a model.

    The automaton is given up beyond ``max_states`` states, or beyond ``max_markings`` explored markings of the net. The
    model is rejected beyond ``max_event_types`` (relations grow with the square of their number) or ``max_elements``
    (activities, gateways and other nodes, or places and transitions).
    """

    max_states: int = 100_000
    max_markings: int = 2_000_000
    max_event_types: int = 300
    max_elements: int = 5_000

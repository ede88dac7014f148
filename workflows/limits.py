"""Limits of the work for compiling a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """Limits of the work for compiling a model.

    Beyond ``max_states`` of the minimal automaton, or ``max_markings`` of a net that are explored, a bound on memory
    and time, there is no automaton. Beyond ``max_event_types`` (relations between types grow with the square of their
    number) or ``max_elements`` (activities, gateways and other nodes, or places and transitions) the model is rejected.
    """

    max_states: int = 100_000
    max_markings: int = 2_000_000
    max_event_types: int = 300
    max_elements: int = 5_000

"""Limits of the work for compiling a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """Limits of the work for compiling a model.

    Beyond ``max_states`` states, or ``max_markings`` explored markings of the net, the model is compiled without an
    automaton. Beyond ``max_event_types`` types or ``max_elements`` elements the model is rejected. Elements are
    activities, gateways and other nodes, or places and transitions. Event types are limited because relations grow with
    the square of their number.
    """

    max_states: int = 100_000
    max_markings: int = 2_000_000
    max_event_types: int = 300
    max_elements: int = 5_000

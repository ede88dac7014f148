"""Limits of the work for compiling a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileLimits:
    """Limits of the work for compiling a model.

    Attributes:
        max_states: Largest number of states of the minimal automaton; beyond, there is no automaton.
        max_markings: Largest number of markings of a net that are explored, a bound on memory and time; beyond, there
            is no automaton either.
        max_event_types: Largest number of event types; beyond, the model is rejected, because relations between types
            grow with the square of their number.
        max_elements: Largest number of activities, gateways and other nodes, or places and transitions; beyond, the
            model is rejected.
    """

    max_states: int = 100_000
    max_markings: int = 2_000_000
    max_event_types: int = 300
    max_elements: int = 5_000

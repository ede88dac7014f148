"""Measurements of the inputs of a join with ``wait: auto``, and the expected number of events that it stores.

Source: data-driven memory management for stream joins, section 3.3 of the specification: an input keeps the events
whose keys are above the closing key of another input. This module counts keys, and derives the number of events from
their density.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigures:
    """The measurements of an input over its newest events.

    Attributes:
        events: The number of measured events.
        distance: The most that the key of an event is below the key of an earlier event.
        room: How far the closing key is below the highest key: the distance with headroom.
        highest: The highest key of the measured events. None without events.
        least: The lowest key of the measured events. None without events.
        rise: How much the highest key rose during the measured events.
        span_us: The time between the first and the last measured event.
        reached_us: The newest event time of the input. None if unknown.
        closing: The closing key: all keys up to it are finished. None if no key is finished.
    """

    events: int
    distance: int
    room: int
    highest: int | None
    least: int | None
    rise: int
    span_us: int
    reached_us: int | None
    closing: int | None


def heads(inputs: Mapping[str, KeyFigures]) -> dict[str, int] | None:
    """Estimate the highest key of each input at the latest event time that all inputs have reached. None if unknown."""
    reached = [figures.reached_us for figures in inputs.values() if figures.reached_us is not None]
    highest_keys = {}
    for name, figures in inputs.items():
        if figures.highest is None or figures.reached_us is None or len(reached) < len(inputs):
            return None
        speed = figures.rise / figures.span_us if figures.span_us > 0 else 0.0
        highest_keys[name] = figures.highest - round(speed * (figures.reached_us - min(reached)))
    return highest_keys


def predicted_rows(inputs: Mapping[str, KeyFigures]) -> dict[str, int] | None:
    """Return how many events of each input are expected to be stored, or None if unknown.

    An input stores the events whose keys are above the lowest closing key of the other inputs.
    """
    highest = heads(inputs)
    closings = {name: figures.closing for name, figures in inputs.items() if figures.closing is not None}
    if highest is None or len(closings) < max(len(inputs), 2) or any(figures.rise <= 0 for figures in inputs.values()):
        return None
    rows = {}
    for name, figures in inputs.items():
        lowest = min(closing for other, closing in closings.items() if other != name)
        rows[name] = round(figures.events / figures.rise * max(highest[name] - lowest, 0))
    return rows

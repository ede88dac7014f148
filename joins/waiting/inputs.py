"""Measurements and decisions about the inputs of a join with ``wait: auto``, as numbers and as sentences.

Source: data-driven memory management for stream joins, section 8 of the specification, which reports on each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joins.combinations import FIGURE
from joins.document import JoinBody
from joins.items import ItemColumns, are_events
from joins.waiting.decider import WaitDecider
from joins.waiting.prediction import heads, predicted_rows
from streams import format_time

_ARRIVED, _LATE, _HELD = "arrived", "late", "held"


class Arrivals:
    """Counts the events of each input, and its late events, whose key was finished. ``saved`` is from ``to_json``."""

    def __init__(self, inputs: int, saved: Sequence[Sequence[int]] | None = None) -> None:
        self._counts = np.zeros((2, inputs), np.int64) if saved is None else np.array(saved, np.int64)

    def note(self, items: ItemColumns, late: NDArray[np.int32]) -> None:
        """Count the events among the items. ``late`` has the indices of the late ones."""
        inputs = self._counts.shape[1]
        self._counts[0] += np.bincount(items.inputs[are_events(items)], minlength=inputs)
        self._counts[1] += np.bincount(items.inputs[late], minlength=inputs)

    def measures(self, body: JoinBody, held: Sequence[int]) -> dict[str, int]:
        """Return the counts by input, and the number of events in memory (``held``).

        Names begin with the input's alias.
        """
        counts = {}
        for number, join_input in enumerate(body.inputs):
            arrived, late = self._counts[:, number].tolist()
            for name, count in ((_ARRIVED, arrived), (_LATE, late), (_HELD, held[number])):
                counts[f"{join_input.alias}{FIGURE}{name}"] = count
        return counts

    def to_json(self) -> list[list[int]]:
        counts: list[list[int]] = self._counts.tolist()
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingInput:
    """Measurements of one input of a join with ``wait: auto``. None means not known yet.

    Attributes:
        disorder: The most that a key is below the key of an earlier event, in the newest blocks of events.
        of_events: The number of events in these blocks.
        least_key: The lowest key of these events.
        lag: How far the input's highest key is below the highest key of all inputs, at the same time.
        closing_key: All keys up to this key are finished.
        arrived: Number of the input's events.
        late: Number of the input's events whose keys were finished before.
        accuracy: Share of events that were not late. It estimates the share of results that are found.
        held: Number of events in memory.
        predicted: Number of events expected in memory, from the measurements.
    """

    disorder: int | None
    of_events: int
    least_key: int | None
    lag: int | None
    closing_key: int | None
    arrived: int
    late: int
    accuracy: float | None
    held: int
    predicted: int | None


def waiting_inputs(
    body: JoinBody, counts: Mapping[str, int], state: Mapping[str, Any] | None
) -> dict[str, WaitingInput]:
    """Return the measurements of a join's inputs by alias.

    ``counts`` are sums of ``Arrivals.measures`` over all shards. ``state`` is the saved ``WaitDecider``, or None before
    it has one.
    """
    decider = WaitDecider.from_json(state)
    aliases = {join_input.alias for join_input in body.inputs}
    figures = {name: input_keys.figures() for name, input_keys in decider.inputs.items() if name in aliases}
    is_all = len(figures) == len(body.inputs)
    highest, predicted = (heads(figures), predicted_rows(figures)) if is_all else (None, None)
    measurements = {}
    for join_input in body.inputs:
        arrived, late, held = (counts.get(f"{join_input.alias}{FIGURE}{name}", 0) for name in (_ARRIVED, _LATE, _HELD))
        input_figures = figures.get(join_input.alias)
        measurements[join_input.alias] = WaitingInput(
            disorder=None if input_figures is None else input_figures.distance,
            of_events=0 if input_figures is None else input_figures.events,
            least_key=None if input_figures is None else input_figures.least,
            lag=None if highest is None else max(highest.values()) - highest[join_input.alias],
            closing_key=None if input_figures is None else input_figures.closing,
            arrived=arrived,
            late=late,
            accuracy=1 - late / arrived if arrived else None,
            held=held,
            predicted=None if predicted is None else predicted[join_input.alias],
        )
    return measurements


def waiting_sentences(inputs: Mapping[str, WaitingInput], decided_us: Mapping[str, int]) -> list[str]:
    """Return a sentence about each input with measurements.

    ``decided_us`` has for each input when its closing key was last decided, in microseconds UTC.
    """
    return [
        _sentence(name, figures, decided_us.get(name))
        for name, figures in inputs.items()
        if figures.disorder is not None
    ]


def _sentence(name: str, figures: WaitingInput, decided_us: int | None) -> str:
    text = (
        f"{name}: keys come up to {figures.disorder:,} below the highest one before them, "
        f"of {figures.of_events:,} events"
    )
    when = "" if decided_us is None else f" (decided at {format_time(decided_us)})"
    if figures.closing_key is None:
        text += "; no keys are finished yet"
    elif figures.least_key is not None and figures.closing_key < figures.least_key:
        text += f"; no key of these events is finished, as the closing key {figures.closing_key} is below them{when}"
    else:
        text += f"; keys up to {figures.closing_key} are finished{when}"
    if figures.lag is not None:
        text += (
            f"; its highest key is {figures.lag:,} below that of the input that is farthest ahead"
            if figures.lag
            else ("; no input is ahead of it")
        )
    if figures.accuracy is not None:
        text += (
            f"; {figures.late:,} of {figures.arrived:,} events came for a finished key "
            f"(accuracy about {figures.accuracy:.4%})"
        )
    expected = "" if figures.predicted is None else f", {figures.predicted:,} are expected"
    return f"{text}; {figures.held:,} are in memory{expected}."

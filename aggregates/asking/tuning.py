"""Tuning of a running index: the frequencies of questions, and whether another configuration is worth the move.

Frequencies decay with the number of questions, never by a clock, so equal events and questions lead to equal
configurations. Source: the specification of parameterised group-by, section 3.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregates.asking.choosing import Choice, Problem, best_configuration
from aggregates.asking.costs import MEASURED, CostModel, Workload

MOST_BITS = 16
PERIOD = 128
"""Questions between two assessments; at each, older questions lose half of their weight."""

_EVENTS_PER_PARTITION = 8  # with fewer events, the table of partitions would need too much memory per event
_MOST_PATTERNS = 64
_EXPECTED = 64.0  # initial weight of expected questions, which fix one attribute each, all equally often
_FORGOTTEN = 0.01  # patterns of a smaller weight are dropped
_HORIZON = 5.0  # a move must pay for itself within this multiple of the remembered questions
_TOO_MANY = 2  # surplus of bits, for the number of events, at which a move saves memory
_HYSTERESIS = 0.05  # a move must also lower the cost by at least this share


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of comparing configurations: the best one for the observed questions, and whether a move to it pays.

    ``present`` and ``best`` are the costs per question in the present and the best configuration.
    """

    choice: Choice
    present: float
    best: float
    is_worthwhile: bool


class Tuner:
    """Observes the questions to an index, and decides when another configuration is worth a move.

    The frequencies of questions are counted by pattern, the set of fixed attributes. They decay with the number of
    questions.
    """

    def __init__(self, attributes: int, model: CostModel = MEASURED, filtered: Sequence[int] | None = None) -> None:
        self._attributes, self._model = attributes, model
        self._filtered = range(attributes) if filtered is None else filtered
        self._patterns: dict[int, list[float]] = {}  # weight, and the sum of the events in the windows
        self._events, self._expected = 0.0, _EXPECTED
        self._asked = self._assessed_rows = 0
        self.assessment: Assessment | None = None

    def note_events(self, count: int) -> None:
        self._events += count

    def note_question(self, pattern: int, rows: int) -> None:
        """Count a question that fixes the attributes of ``pattern`` (bits), over a window with ``rows`` events."""
        known = self._patterns.setdefault(pattern, [0.0, 0.0])
        known[0] += 1
        known[1] += rows
        self._asked += 1

    def is_due(self, rows: int) -> bool:
        """Check whether an assessment is due, for a window with ``rows`` events.

        It is due after enough questions, or after a great change of the number of events.
        """
        assessed = max(self._assessed_rows, _EVENTS_PER_PARTITION)
        return self._asked >= PERIOD or rows >= 2 * assessed or rows * 4 < self._assessed_rows

    def assess(self, bits: tuple[int, ...], rows: int, caps: NDArray[np.int64]) -> Assessment:
        """Compare the present configuration ``bits`` with the best one for a window with ``rows`` events.

        ``caps`` has the most bits that are useful for each attribute.
        """
        workload = self.workload(rows)
        most = most_bits(rows)
        problem = Problem(workload, self._model, most, np.maximum(caps, np.minimum(bits, most)))
        choice, present = best_configuration(problem), problem.cost(bits)
        indexed = sum(bit > 0 for bit in choice.configuration)
        if present <= choice.cost and sum(bits) <= most:
            choice = Choice(bits, present, choice.evaluated, choice.way)
        gain, price = present - choice.cost, rows * (indexed * self._model.hashing + self._model.moving)
        pays = (gain * _HORIZON > price and gain > _HYSTERESIS * present) or sum(bits) > most + _TOO_MANY
        questions = float(workload.requests.sum()) or 1.0
        self.assessment = Assessment(choice, present / questions, choice.cost / questions, pays)
        self._forget(rows)
        return self.assessment

    def workload(self, rows: int) -> Workload:
        """Return the workload of past and expected questions, for a window with ``rows`` events.

        It has the patterns with the largest weights.
        """
        weights = {pattern: list(known) for pattern, known in self._patterns.items()}
        each = self._expected / max(1, len(self._filtered))
        for attribute in self._filtered if self._expected > _FORGOTTEN else ():
            known = weights.setdefault(1 << attribute, [0.0, 0.0])
            known[0] += each
            known[1] += each * rows
        heaviest = sorted(weights.items(), key=lambda item: (-item[1][1], item[0]))[:_MOST_PATTERNS]
        patterns = np.array([pattern for pattern, _ in heaviest], np.int64)
        requests, sums = np.array([known for _, known in heaviest], np.float64).reshape(-1, 2).T
        return Workload(self._attributes, self._events, patterns, requests, sums / np.maximum(requests, _FORGOTTEN))

    def _forget(self, rows: int) -> None:
        self._assessed_rows = rows
        if self._asked < PERIOD:
            return
        self._asked = 0
        self._events, self._expected = self._events / 2, self._expected / 2
        halved = {pattern: [weight / 2, sums / 2] for pattern, (weight, sums) in self._patterns.items()}
        self._patterns = {pattern: known for pattern, known in halved.items() if known[0] > _FORGOTTEN}

    def dump(self) -> list[Any]:
        """Return the frequencies of questions as plain JSON."""
        patterns = [[pattern, *known] for pattern, known in self._patterns.items()]
        return [patterns, self._events, self._expected, self._asked, self._assessed_rows]

    def load(self, saved: Sequence[Any]) -> None:
        patterns, self._events, self._expected, self._asked, self._assessed_rows = saved
        self._patterns = {pattern: known for pattern, *known in patterns}


def most_bits(rows: int) -> int:
    """Return the most address bits that a configuration may use for a window with ``rows`` events."""
    return min(MOST_BITS, max(0, (rows // _EVENTS_PER_PARTITION).bit_length() - 1))

"""Choices that several commands have as options."""

from __future__ import annotations

from enum import StrEnum

from streams import Ties


class TieOrder(StrEnum):
    """How events with equal timestamps are ordered."""

    LOG = "log"
    SIMULTANEOUS = "simultaneous"

    @property
    def ties(self) -> Ties:
        """The value of a stream's declaration."""
        return "simultaneous" if self is TieOrder.SIMULTANEOUS else "log"


class LatePolicy(StrEnum):
    """What to do with events that are too late."""

    DEAD_LETTER = "dead_letter"
    DROP = "drop"
    PROCESS = "process"

"""The errors of patterns, a branch of the error tree."""

from __future__ import annotations

from nfa.syntax import Position
from streams import ForestallError


class PatternError(ForestallError, code="pattern", fault="caller"):
    """A pattern, or the saved state of its runs, is invalid."""


class PatternRefused(PatternError, code="pattern-refused"):
    """A pattern text is refused.

    ``reason`` is the stable code of the refusal, such as ``syntax`` or ``duplicate-alias``; see ``docs/semantics.md``.
    """

    def __init__(self, reason: str, message: str, position: Position) -> None:
        super().__init__(
            f"line {position.line}, column {position.column}: {message}",
            reason=reason,
            line=position.line,
            column=position.column,
        )
        self.reason = reason
        self.position = position


class KeyMismatch(PatternError, code="pattern-key"):
    """``WHERE [..]`` lacks the correlation key of the events."""


class TooManyRows(PatternError, code="too-many-rows"):
    """The table of FOR EACH ROW has more rows than a pattern may have, or too many rows with equal values."""


class UnknownPattern(PatternError, code="pattern-not-running"):
    """No pattern with this name is registered."""


class StateFormatError(PatternError, code="state-format", fault="internal"):
    """Saved state cannot be read: it is damaged, cut short, or of a version that this release does not know."""

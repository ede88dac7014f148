"""The pattern branch of the error tree.

PatternError               nfa.errors
├── PatternRefused         the text cannot be read, or means nothing, or too much
├── KeyMismatch            a pattern is correlated by another key than the events
├── UnknownPattern         no pattern of that name is registered with the matcher
└── StateFormatError       saved state is damaged or of an unknown version
"""

from __future__ import annotations

from typing import ClassVar

from nfa.syntax import Position
from streams import ForestallError
from streams.errors import Fault


class PatternError(ForestallError):
    """Something is wrong with a pattern or with the state of its runs."""

    code: ClassVar[str] = "pattern"
    fault: ClassVar[Fault] = "caller"


class PatternRefused(PatternError):
    """A pattern text is refused.

    Args:
        reason: Stable code of the refusal, such as ``syntax`` or ``duplicate-alias``; see ``docs/semantics.md``.
        message: What is wrong and what would be right.
        position: Where in the text.
    """

    code: ClassVar[str] = "pattern-refused"

    def __init__(self, reason: str, message: str, position: Position) -> None:
        super().__init__(
            f"line {position.line}, column {position.column}: {message}",
            reason=reason,
            line=position.line,
            column=position.column,
        )
        self.reason = reason
        self.position = position


class KeyMismatch(PatternError):
    """``WHERE [..]`` does not contain the key that the events are correlated by."""

    code: ClassVar[str] = "pattern-key"


class UnknownPattern(PatternError):
    """No pattern of that name is registered."""

    code: ClassVar[str] = "pattern-not-running"


class StateFormatError(PatternError):
    """Saved state cannot be read: damaged, cut short, or of a version that this release does not know."""

    code: ClassVar[str] = "state-format"
    fault: ClassVar[Fault] = "internal"

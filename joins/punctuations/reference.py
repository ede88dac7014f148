"""The meaning of closed keys, slow and obvious: every pattern is kept, and a key is compared with all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from joins.punctuations.patterns import Pattern, Value, is_missing, matches


@dataclass
class ReferenceClosedSet:
    """What ``ClosedSet`` must equal.

    Attributes:
        patterns: All that came.
    """

    patterns: list[Pattern] = field(default_factory=list)

    def add(self, pattern: Pattern) -> None:
        """Close the keys of a pattern."""
        self.patterns.append(pattern)

    def covers(self, value: Value | None) -> bool:
        """Whether a key is closed."""
        return not is_missing(value) and any(matches(pattern, value) for pattern in self.patterns)

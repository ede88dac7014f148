"""The constraint branch of the error tree.

ConstraintError                constraints.errors
├── InvalidConstraints         an uploaded document cannot be read; every problem is listed
├── ContradictoryConstraints   no trace at all, not even a future one, keeps the set
└── UnsatisfiablePattern       no conforming trace can hold a match of the pattern
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams import ForestallError


class ConstraintError(ForestallError):
    """Something is wrong with a constraint set, or with a pattern under it."""

    code: ClassVar[str] = "constraint"
    fault = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with an uploaded document.

    Attributes:
        where: Place in the document, such as ``entry 3`` or ``prior, entry 1``; empty for the whole of it.
        line: Line of the text, from 1; None where the document came decoded.
        message: What is wrong, and what would be right.
    """

    where: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.where, f"line {self.line}" if self.line else "") if part)
        return f"{place}: {self.message}" if place else self.message


class InvalidConstraints(ConstraintError):
    """An uploaded list of constraints cannot be read.

    Attributes:
        problems: All that is wrong, in the order of the document.
    """

    code: ClassVar[str] = "invalid-constraints"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(
            "; ".join(str(problem) for problem in problems),
            problems=[
                {"where": problem.where, "line": problem.line, "message": problem.message} for problem in problems
            ],
        )
        self.problems = problems


class ContradictoryConstraints(ConstraintError):
    """The constraints contradict one another before the first event; the message names a minimal clash."""

    code: ClassVar[str] = "contradictory-constraints"


class UnsatisfiablePattern(ConstraintError):
    """The pattern cannot match in any conforming trace; the message names atoms and constraints that clash."""

    code: ClassVar[str] = "unsatisfiable-pattern"

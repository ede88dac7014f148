"""The constraint branch of the error tree."""

from __future__ import annotations

from dataclasses import dataclass

from streams import ForestallError


class ConstraintError(ForestallError, code="constraint", fault="caller"):
    """A constraint set, or a pattern under a constraint set, is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem in an uploaded document; ``message`` describes the mistake and the correction.

    Attributes:
        where: Place in the document, such as ``entry 3`` or ``prior, entry 1``; empty for the whole document.
        line: Line of the text, from 1; None if the document was passed decoded.
    """

    where: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.where, f"line {self.line}" if self.line else "") if part)
        return f"{place}: {self.message}" if place else self.message


class InvalidConstraints(ConstraintError, code="invalid-constraints"):
    """An uploaded list of constraints cannot be read; ``problems`` has all its problems, in document order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(
            "; ".join(str(problem) for problem in problems),
            problems=[
                {"where": problem.where, "line": problem.line, "message": problem.message} for problem in problems
            ],
        )
        self.problems = problems


class ContradictoryConstraints(ConstraintError, code="contradictory-constraints"):
    """The constraints contradict one another before the first event; the message names a minimal clash."""


class UnsatisfiablePattern(ConstraintError, code="unsatisfiable-pattern"):
    """The pattern cannot match in any conforming trace; the message names the clashing atoms and constraints."""

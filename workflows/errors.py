"""The workflow branch of the error tree."""

from __future__ import annotations

from collections.abc import Sequence

from streams import Detail, ForestallError


class WorkflowError(ForestallError, code="workflow", fault="caller"):
    """A workflow model or its simulation is invalid."""


class InvalidWorkflow(WorkflowError, code="invalid-workflow"):
    """A process tree, an attribute or a simulation setting contradicts itself. The message names the contradiction."""


class UnderivableWorkflow(WorkflowError, code="underivable-workflow"):
    """A tree has no net with bounded places. The message names the activities that prevent such a net."""


class ModelRefused(WorkflowError, code="model-refused"):
    """A model cannot be read without changing its meaning. The error lists every problem.

    A problem is a pair: the id or place of an element, which may be empty, and a message that says what is wrong and
    what would be right.
    """

    def __init__(self, problems: Sequence[tuple[str, str]], **details: Detail) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(f"{element}: {message}" if element else message for element, message in self.problems)
        elements: list[Detail] = [{"element": element, "message": message} for element, message in self.problems]
        super().__init__(listed, problems=elements, **details)


class WorkflowTooLarge(WorkflowError, code="workflow-too-large"):
    """A model has too many event types or elements. ``details`` name the ``limit`` and its value ``most``."""

    def __init__(self, message: str, *, limit: str, most: int) -> None:
        super().__init__(message, limit=limit, most=most)
        self.limit = limit

    @classmethod
    def beyond(cls, limit: str, most: int, things: str) -> WorkflowTooLarge:
        return cls(f"the model has more than {most} {things}; split it into smaller ones", limit=limit, most=most)


class UnsoundWorkflow(WorkflowError, code="unsound-workflow"):
    """A model was read, but none of its traces completes, or one of its places can hold any number of tokens."""


class AutomatonTooLarge(WorkflowError, code="automaton-too-large"):
    """The model has no automaton within the limits, or no exact one. The message gives the reason."""

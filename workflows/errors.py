"""The workflow branch of the error tree.

WorkflowError              workflows.errors
├── InvalidWorkflow        a tree, an attribute or a setting that contradicts itself
├── UnderivableWorkflow    a sound tree of which no net with bounded places says the same
├── ModelRefused           a model that cannot be read, or whose meaning would be lost
├── WorkflowTooLarge       a model with more event types or elements than the limit
├── UnsoundWorkflow        a model that was read, but of which no trace completes, or that never comes to rest
└── AutomatonTooLarge      a language with more states than the limit, or that no finite automaton has
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from streams import Detail, ForestallError


class WorkflowError(ForestallError):
    """Something is wrong with a workflow model or with its simulation."""

    code: ClassVar[str] = "workflow"
    fault = "caller"


class InvalidWorkflow(WorkflowError):
    """A process tree, an attribute or a simulation setting contradicts itself; the message says how."""

    code: ClassVar[str] = "invalid-workflow"


class UnderivableWorkflow(WorkflowError):
    """A tree has no net with bounded places; the message names the activities that prevent it."""

    code: ClassVar[str] = "underivable-workflow"


class ModelRefused(WorkflowError):
    """A model cannot be read, or would not mean what it says; every problem is named.

    Attributes:
        problems: (element id or place, what is wrong and what would be right); the first may be empty.
    """

    code: ClassVar[str] = "model-refused"

    def __init__(self, problems: Sequence[tuple[str, str]], **details: Detail) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(f"{element}: {message}" if element else message for element, message in self.problems)
        elements: list[Detail] = [{"element": element, "message": message} for element, message in self.problems]
        super().__init__(listed, problems=elements, **details)


class WorkflowTooLarge(WorkflowError):
    """A model has more event types or elements than the limit; ``details`` have ``limit``, its name, and ``most``.

    Attributes:
        limit: The name of the limit, a field of ``CompileLimits``.
    """

    code: ClassVar[str] = "workflow-too-large"

    def __init__(self, message: str, *, limit: str, most: int) -> None:
        super().__init__(message, limit=limit, most=most)
        self.limit = limit

    @classmethod
    def beyond(cls, limit: str, most: int, things: str) -> WorkflowTooLarge:
        """The error for more than ``most`` things."""
        return cls(f"the model has more than {most} {things}; split it into smaller ones", limit=limit, most=most)


class UnsoundWorkflow(WorkflowError):
    """A model was read, but no trace of it completes, or its places can hold any number of tokens."""

    code: ClassVar[str] = "unsound-workflow"


class AutomatonTooLarge(WorkflowError):
    """The language has no automaton within the limits; the message says which limit."""

    code: ClassVar[str] = "automaton-too-large"

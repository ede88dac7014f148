"""The workflow branch of the error tree.

WorkflowError              workflows.errors
├── InvalidWorkflow        a tree, an attribute or a setting that contradicts itself
└── UnderivableWorkflow    a sound tree from which constraints cannot be derived pair by pair
"""

from __future__ import annotations

from typing import ClassVar

from streams import ForestallError


class WorkflowError(ForestallError):
    """Something is wrong with a workflow model or with its simulation."""

    code: ClassVar[str] = "workflow"
    fault = "caller"


class InvalidWorkflow(WorkflowError):
    """A process tree, an attribute or a simulation setting contradicts itself; the message says how."""

    code: ClassVar[str] = "invalid-workflow"


class UnderivableWorkflow(WorkflowError):
    """Constraints cannot be derived from this tree; the message names the activities that prevent it."""

    code: ClassVar[str] = "underivable-workflow"

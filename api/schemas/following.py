"""The followed workflow of a stream on the wire."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from api.schemas.constraints import ConstraintsModel
from api.schemas.workflows import Mode
from api.wire import WireModel
from service import ConstraintReport


class FollowRequest(WireModel):
    """The workflow that a stream should follow."""

    workflow: str
    mode: Mode = Field(
        "auto",
        description="exact: by the workflow's automaton; tables: by its constraints; auto: exact, where there is an "
        "automaton within the limits.",
    )


class FollowedWorkflow(WireModel):
    """The workflow that a stream follows, and the constraint set derived from it."""

    workflow: str
    version: int
    mode: Mode = Field(description="The requested mode.")
    constraint_set: ConstraintsModel

    @classmethod
    def from_domain(cls, report: ConstraintReport) -> Self:
        """The wire form of a set that follows a workflow."""
        return cls.copying(report.record.following, constraint_set=report)

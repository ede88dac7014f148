"""Which workflow a stream follows: say it, look it up, end it."""

from __future__ import annotations

from fastapi import APIRouter, status

from api.schemas.following import FollowedWorkflow, FollowRequest
from api.services import Served

router = APIRouter(prefix="/streams", tags=["workflows"])


@router.put("/{stream}/workflow", summary="Let a stream follow a workflow")
def follow_workflow(stream: str, request: FollowRequest, services: Served) -> FollowedWorkflow:
    """Transactions that begin later follow the workflow, beside the constraints that are written by hand.

    Later versions of the workflow are followed as they come. ``exact`` is refused where the workflow has no automaton
    within the limits.
    """
    return FollowedWorkflow.from_domain(services.workflows.follow(stream, request.workflow, request.mode))


@router.get("/{stream}/workflow", summary="Look up the workflow that a stream follows")
def get_followed_workflow(stream: str, services: Served) -> FollowedWorkflow:
    """The workflow, how it is followed, and the constraint set that comes of it."""
    return FollowedWorkflow.from_domain(services.workflows.following(stream))


@router.delete(
    "/{stream}/workflow", status_code=status.HTTP_204_NO_CONTENT, summary="Let a stream follow no workflow any more"
)
def unfollow_workflow(stream: str, services: Served) -> None:
    """Transactions that begin later keep only the constraints that are written by hand."""
    services.workflows.unfollow(stream)

"""The workflow that a stream follows: set, look up, remove."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from api.requests.preconditions import Preconditions, give_tag
from api.schemas.following import FollowedWorkflow, FollowRequest
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/streams", tags=["workflows"])


@router.put("/{stream}/workflow", summary="Let a stream follow a workflow")
@bounded
def follow_workflow(
    stream: str, request: FollowRequest, services: Served, response: Response, preconditions: Preconditions
) -> FollowedWorkflow:
    """Transactions that begin later follow the workflow, in addition to hand-written constraints.

    Later versions of the workflow are followed automatically. ``exact`` is refused where the workflow has no automaton
    within the limits.
    """
    report = services.workflows.follow(stream, request.workflow, request.mode, preconditions)
    give_tag(response, report.record)
    return FollowedWorkflow.from_domain(report)


@router.get("/{stream}/workflow", summary="Look up the workflow that a stream follows")
@bounded
def get_followed_workflow(stream: str, services: Served, response: Response) -> FollowedWorkflow:
    """The workflow, the mode in which it is followed, and the resulting constraint set."""
    report = services.workflows.following(stream)
    give_tag(response, report.record)
    return FollowedWorkflow.from_domain(report)


@router.delete(
    "/{stream}/workflow", status_code=status.HTTP_204_NO_CONTENT, summary="Stop a stream from following its workflow"
)
@bounded
def unfollow_workflow(stream: str, services: Served, preconditions: Preconditions) -> None:
    """Transactions that begin later are checked against hand-written constraints only."""
    services.registration.constraint_sets.unfollow(stream, preconditions)

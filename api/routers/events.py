"""Sending events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response, status

from api.errors import REPLAYED, NothingAccepted
from api.problems import OVERLOAD_RESPONSES
from api.requests.bodies import MediaType, RawBody
from api.requests.event_forms import SentEvents, read_events
from api.schemas.events import BODY, HEADERS, IntakeModel
from api.services import Served

router = APIRouter(prefix="/events", tags=["events"])


def sent_events(request: Request, body: RawBody, media_type: MediaType, services: Served) -> SentEvents:
    """Return the events of a request."""
    return read_events(request.headers, media_type, body, services.settings.limits.max_batch_events)


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Send events",
    response_description="Some or all of the events were accepted: see `rejected`.",
    responses=OVERLOAD_RESPONSES,
    openapi_extra={"requestBody": BODY, "parameters": HEADERS},
    response_model_exclude_unset=True,
)
def send_events(
    sent: Annotated[SentEvents, Depends(sent_events)],
    services: Served,
    response: Response,
    stream: Annotated[str, Query(description="A declared stream.")],
    idempotency_key: Annotated[
        str | None, Header(description="Your name for this batch: a repetition is not accepted again.")
    ] = None,
) -> IntakeModel:
    """Accept events: CloudEvents, or plain objects that the stream's mapping describes. Arrays and lines may mix both.

    A CloudEvent in binary mode has its attributes in header fields `ce-…`, and `data` is the body. In
    `application/x-ndjson`, each line is an event, and rejected events are reported with their `line`.

    The answer 202 may accept only some of the events: see ``rejected``. If no event was accepted, the answer is 422,
    `nothing-accepted`, with the same members. Accepted events are safe in the log. Rejected events are listed with the
    reason, in the answer and under ``/v1/dead-letters``.

    While the backlog is full, the answer is 429, and no event of the request is accepted. Send the request again, with
    the same Idempotency-Key, after the number of seconds in Retry-After.
    """
    report = services.intake.ingest(stream, sent.objects, shape=sent.shape, idempotency_key=idempotency_key)
    answer = IntakeModel.from_domain(report, sent.lines)
    if report.is_duplicate:
        response.headers.update(REPLAYED)
    if report.rejected and not report.accepted and not report.duplicates:
        raise _nothing_accepted(answer, is_replayed=report.is_duplicate)
    return answer


def _nothing_accepted(answer: IntakeModel, *, is_replayed: bool) -> NothingAccepted:
    first = answer.rejected[0]
    return NothingAccepted(
        f"no event was accepted; rejected has the reason for each; the first: {first.detail}",
        replayed=is_replayed,
        **answer.model_dump(exclude_unset=True),
    )

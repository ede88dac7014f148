"""Events: their way into the log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, status

from api.bodies import MediaType, RawBody, parse_json
from api.errors import EventForm, UnsupportedMediaType
from api.problems import OVERLOAD_RESPONSES
from api.schemas.events import BODY, IntakeModel
from api.services import Served
from service import EventShape

router = APIRouter(prefix="/events", tags=["events"])

_ONE = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_PLAIN = "application/json"


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Send events",
    response_description="Some, all or none of the events were accepted: look at `rejected`.",
    responses=OVERLOAD_RESPONSES,
    openapi_extra={"requestBody": BODY},
)
def send_events(
    body: RawBody,
    media_type: MediaType,
    services: Served,
    stream: Annotated[str, Query(description="A declared stream.")],
    idempotency_key: Annotated[
        str | None, Header(description="Your name for this batch; sent again, it is taken once.")
    ] = None,
) -> IntakeModel:
    """Take events: CloudEvents, or plain objects read by the stream's mapping; an array may mix both.

    The answer 202 may accept only some of the events, or none: look at ``rejected``. Accepted events are safe in the
    log. The others are listed with the reason, here and under ``/v1/dead-letters``.

    While too much waits to be matched, the answer is 429 and nothing of the request is taken; send it again, with the
    same Idempotency-Key, after as many seconds as Retry-After says.
    """
    objects, shape = _objects(body, media_type)
    report = services.intake.ingest(stream, objects, shape=shape, idempotency_key=idempotency_key)
    return IntakeModel.from_domain(report)


def _objects(body: bytes, media_type: str) -> tuple[list[Any], EventShape]:
    if media_type not in (_ONE, _BATCH, _PLAIN):
        raise UnsupportedMediaType(f"media type {media_type!r} is not read here; send {_ONE}, {_BATCH} or {_PLAIN}")
    value = parse_json(body)
    is_list = isinstance(value, list)
    if media_type == _BATCH and not is_list:
        raise EventForm(f"{_BATCH} is an array of CloudEvents; send one CloudEvent as {_ONE}")
    if media_type == _ONE and is_list:
        raise EventForm(f"{_ONE} is one CloudEvent; send an array as {_BATCH}")
    if not is_list and not isinstance(value, dict):
        raise EventForm("the body is neither an event, which is a JSON object, nor an array of events")
    return (value if is_list else [value]), ("any" if media_type == _PLAIN else "cloudevents")

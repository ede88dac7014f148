"""Streams: declare, list, look up."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response, status

from api.access.callers import Calling
from api.locations import LOCATION, give_location
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.streams import StreamDetail, StreamList, StreamModel
from api.services import Served
from service import stream_usage

router = APIRouter(prefix="/streams", tags=["streams"], route_class=IdempotentRoute)


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Declare a stream",
    dependencies=[Depends(once)],
    responses={
        201: {"headers": LOCATION},
        200: {"model": StreamModel, "description": "It was already declared with the same members."},
    },
)
def declare_stream(
    stream: StreamModel, services: Served, response: Response, preconditions: Preconditions
) -> StreamModel:
    """Declare a stream: its correlation key, event types, and ends of transactions. Declarations cannot be changed."""
    declaration = stream.to_domain()
    if not services.registration.declare_stream(declaration, preconditions):
        response.status_code = status.HTTP_200_OK
    give_location(response, "streams", declaration.name)
    give_tag(response, declaration)
    return StreamModel.from_domain(declaration)


@router.get("", summary="List the streams")
def list_streams(services: Served, caller: Calling) -> StreamList:
    """All streams that the caller may touch, by name."""
    found = [stream for stream in services.stores.registry.streams() if caller.may_touch(stream.name)]
    return StreamList(items=[StreamModel.from_domain(stream) for stream in found])


@router.get("/{name}", summary="Look up a stream")
def get_stream(name: str, services: Served, response: Response) -> StreamDetail:
    """The declaration of a stream, who makes its events if it is derived, and who listens to them.

    Events of a derived stream that come from several places wait until no older ones can come; ``waits_for`` says what
    they wait for.
    """
    declaration = services.stores.registry.stream(name)
    give_tag(response, declaration)
    return StreamDetail.of(declaration, stream_usage(services.stores, declaration))

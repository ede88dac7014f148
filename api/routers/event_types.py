"""Event types: JSON Schemas for the attributes of events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response, status

from api.errors import UnsupportedMediaType, WrongShape
from api.locations import require_segment
from api.requests.bodies import MediaType, RawBody
from api.requests.filters import WantedPart
from api.requests.form import parse_document
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.event_types import BODY, EventTypeList, EventTypeModel
from api.services import Served
from api.work import bounded
from service import EventSchema

router = APIRouter(prefix="/streams/{stream}/event-types", tags=["streams"], route_class=IdempotentRoute)

TypeName = Annotated[str, Path(min_length=1, max_length=200, description="The event type.")]

_KINDS = ("application/json", "application/schema+json")


@router.get("", summary="List the schemas of a stream")
def list_event_types(stream: str, services: Served, part: WantedPart) -> EventTypeList:
    """List the types of a stream that have schemas, by name.

    A member of the stream says whether its events are checked.
    """
    types = services.stores.registry.event_types
    items = [EventTypeModel.of(stream, event_type) for event_type in types.all(stream).values()]
    return EventTypeList(**part.of(items, "type"))


@router.get("/{event_type:path}/versions", summary="List the schemas that a type has had")
def list_event_type_versions(stream: str, event_type: TypeName, services: Served, part: WantedPart) -> EventTypeList:
    """List the present and former schemas of a type, oldest first. A stream keeps the newest 1,000 changes."""
    versions = services.stores.registry.event_types.versions(stream, event_type)
    return EventTypeList(**part.of([EventTypeModel.of(stream, version) for version in versions], "version"))


@router.get("/{event_type:path}", summary="Look up the schema of a type")
def get_event_type(stream: str, event_type: TypeName, services: Served, response: Response) -> EventTypeModel:
    """Look up the schema of an event type."""
    record = services.stores.registry.event_types.get(stream, event_type)
    give_tag(response, record)
    return EventTypeModel.of(stream, record)


def named_type(stream: str, event_type: TypeName) -> tuple[str, str]:
    """Return stream and event type in the path.

    Raises ``WrongShape`` if the type is ``.`` or ``..``, or ends with ``/versions``.
    """
    require_segment(event_type, "event_type")
    if event_type.endswith("/versions"):
        raise WrongShape("path.event_type: a type with a schema does not end with /versions; rename the type")
    return stream, event_type


def read_schema(body: RawBody, media_type: MediaType) -> dict[str, Any]:
    """Read the schema in the body.

    Raises:
        UnsupportedMediaType: The body is not declared as JSON.
        SchemaRefused: The body is not a supported schema.
    """
    if media_type not in _KINDS:
        raise UnsupportedMediaType(f"media type {media_type!r} is not supported; send {' or '.join(_KINDS)}")
    schema = parse_document(body)
    EventSchema(schema)
    return dict(schema)


@router.put(
    "/{event_type:path}",
    summary="Set the schema of a type",
    dependencies=[Depends(once)],
    openapi_extra={"requestBody": BODY},
    responses={201: {"model": EventTypeModel, "description": "The type had no schema before."}},
)
@bounded
def put_event_type(
    place: Annotated[tuple[str, str], Depends(named_type)],
    schema: Annotated[dict[str, Any], Depends(read_schema)],
    services: Served,
    response: Response,
    preconditions: Preconditions,
) -> EventTypeModel:
    """Set the JSON Schema of an event type (draft 2020-12) for its `data`. The body is the schema.

    The schema must not refer to other documents, must not have circular references, and its regular expressions must
    not have look-around. It is used if the stream checks its events (`PATCH /v1/streams/{stream}` with
    `schemas: check`).
    """
    types = services.stores.registry.event_types
    record, is_new = types.put(*place, schema, services.clock.now_us(), preconditions)
    if is_new:
        response.status_code = status.HTTP_201_CREATED
    give_tag(response, record)
    return EventTypeModel.of(place[0], record)


@router.delete("/{event_type:path}", status_code=status.HTTP_204_NO_CONTENT, summary="Remove the schema of a type")
def delete_event_type(stream: str, event_type: TypeName, services: Served, preconditions: Preconditions) -> None:
    """Remove the schema of an event type. Events of this type are no longer checked."""
    services.stores.registry.event_types.remove(stream, event_type, preconditions)

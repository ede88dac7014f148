"""Streams: declare, list, look up, change, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from api.access.auth import Calling, require_scope
from api.locations import creation, give_location
from api.requests.filters import WantedPart
from api.requests.idempotency import IdempotentRoute
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.streams import (
    DeclaredStream,
    NewStream,
    StreamChanges,
    StreamDetail,
    StreamList,
    StreamModel,
    StreamRemoval,
)
from api.services import Served
from service import stream_usage

router = APIRouter(prefix="/streams", tags=["streams"], route_class=IdempotentRoute)


@router.post("", **creation("Declare a stream", "It was already declared with the same members.", DeclaredStream))
def declare_stream(
    stream: NewStream, services: Served, response: Response, preconditions: Preconditions
) -> DeclaredStream:
    """Declare a stream: its correlation key, event types, ends of transactions, and event time.

    The members that determine how events are read cannot be changed later. Event time and the ends of transactions can
    be changed (`PATCH`).
    """
    if not services.registration.declare_stream(stream.to_domain(), preconditions, is_checked=_checked(stream)):
        response.status_code = status.HTTP_200_OK
    give_location(response, "streams", stream.name)
    record = services.stores.registry.stream_with_schemas(stream.name)
    give_tag(response, record)
    return DeclaredStream.of(record, warnings=services.registration.type_warnings(record.declaration.name))


@router.get("", summary="List the streams")
def list_streams(services: Served, caller: Calling, part: WantedPart) -> StreamList:
    """List all streams that the caller may access, by name."""
    records = services.stores.registry.streams_with_schemas()
    models = [StreamModel.of(record) for record in records if caller.may_touch(record.declaration.name)]
    return StreamList(**part.of(models, "name"))


@router.get("/{stream}", summary="Look up a stream")
def get_stream(stream: str, services: Served, response: Response) -> StreamDetail:
    """Look up the declaration of a stream, and the operators that read its events.

    A derived stream also has its producers.

    Events of a derived stream wait until no older events can arrive from any shard or source. ``held_back_by`` names
    the shards and sources that delay these events.
    """
    record = services.stores.registry.stream_with_schemas(stream)
    give_tag(response, record)
    return StreamDetail.used(record, stream_usage(services.stores, record.declaration))


@router.patch("/{stream}", summary="Change a stream")
def change_stream(
    stream: str, changes: StreamChanges, services: Served, response: Response, preconditions: Preconditions
) -> DeclaredStream:
    """Change the members of a declaration that may change, for later events. Omitted members do not change.

    With ``schemas: check``, an event that violates the schema of its type is rejected. The answer lists the event, and
    it becomes a dead letter with the code `schema-broken`. Events of a type without a schema are not checked.

    Events that wait for older events are matched under the changed declaration. The watermark never decreases. A new
    idle timeout or new end events also apply to open transactions. New end events create the next version of the
    stream's constraint set, which applies to transactions that start later.
    """
    record = services.registration.change_stream(
        stream, changes.to_domain(), preconditions, is_checked=_checked(changes)
    )
    give_tag(response, record)
    return DeclaredStream.of(record, warnings=services.registration.type_warnings(record.declaration.name))


@router.delete("/{stream}", summary="Delete a stream")
def delete_stream(
    stream: str,
    services: Served,
    caller: Calling,
    preconditions: Preconditions,
    cascade: Annotated[
        bool, Query(description="Also delete everything that belongs to the stream; needs the scope `admin`.")
    ] = False,
    dry_run: Annotated[
        bool, Query(description="Only list everything that belongs to the stream; nothing is deleted.")
    ] = False,
) -> StreamRemoval:
    """Delete a stream that nothing uses. The answer lists what was deleted with it.

    A stream is in use by its patterns and other operators that are not retired, constraints, a followed workflow, its
    webhooks, schemas of event types and feeds. The answer 409 lists these uses, unless `cascade` deletes them as well.
    Alerts and other results are kept, without their counts by hour. Events are refused at once. The stream may be
    declared again, and then starts with empty state.
    """
    if dry_run:
        return StreamRemoval.of(stream, services.stores.registry.removal.uses(stream, preconditions), dry_run=True)
    if cascade:
        require_scope(caller, "admin")
    uses = services.registration.remove_stream(stream, preconditions, is_cascading=cascade)
    return StreamRemoval.of(stream, uses, dry_run=False)


def _checked(request: NewStream | StreamChanges) -> bool | None:
    return request.schemas == "check" if "schemas" in request.model_fields_set else None

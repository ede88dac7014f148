"""Streams: declare, list, look up, change, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, status

from api.access.auth import require_scope
from api.access.callers import Calling
from api.locations import LOCATION, give_location
from api.requests.filters import WantedPart
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.streams import (
    NewStream,
    SchemaChecks,
    StreamChanges,
    StreamDetail,
    StreamList,
    StreamModel,
    StreamRemoval,
)
from api.services import Served, Services
from service import SchemaUse, stream_usage

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
    stream: NewStream, services: Served, response: Response, preconditions: Preconditions
) -> StreamModel:
    """Declare a stream: its correlation key, event types, ends of transactions, and event time.

    How the stream's events are read cannot be changed later; event time and the ends of transactions can (`PATCH`).
    """
    declaration = stream.to_domain()
    if not services.registration.declare_stream(declaration, preconditions):
        response.status_code = status.HTTP_200_OK
    give_location(response, "streams", declaration.name)
    give_tag(response, declaration)
    checks = stream.schemas if "schemas" in stream.model_fields_set else None
    return StreamModel.from_domain(declaration, _with_checks(services, declaration.name, checks))


@router.get("", summary="List the streams")
def list_streams(services: Served, caller: Calling, part: WantedPart) -> StreamList:
    """All streams that the caller may touch, by name."""
    found = services.stores.registry.streams_with_schemas()
    shown = [StreamModel.from_domain(stream, use) for stream, use in found if caller.may_touch(stream.name)]
    return StreamList(**part.of(shown, "name"))


@router.get("/{name}", summary="Look up a stream")
def get_stream(name: str, services: Served, response: Response) -> StreamDetail:
    """The declaration of a stream, the operators that produce its events (of a derived stream), and its readers.

    Events of a derived stream wait until no older ones can come from any shard or source; ``waits_for`` names what they
    wait for.
    """
    declaration, use = services.stores.registry.stream_with_schemas(name)
    give_tag(response, declaration)
    return StreamDetail.of(declaration, use, stream_usage(services.stores, declaration))


@router.patch("/{name}", summary="Change a stream")
def change_stream(
    name: str, changes: StreamChanges, services: Served, response: Response, preconditions: Preconditions
) -> StreamModel:
    """Change the changeable members of a declaration, from this position of the log on; members that are left out stay.

    With ``schemas: check``, an event that violates the schema of its type is rejected: the answer names it, and it
    becomes a dead letter with the code `schema-broken`. Events of a type without a schema are not checked.

    Events that wait for older ones are matched under the changed declaration. The watermark does not go back. A new
    idle timeout or new end events apply to open transactions, too. New end events give the stream's constraint set its
    next version, which transactions that begin later follow.
    """
    declaration = services.streams.change(name, changes.to_domain(), preconditions)
    give_tag(response, declaration)
    return StreamModel.from_domain(declaration, _with_checks(services, name, changes.schemas))


@router.delete("/{name}", summary="Delete a stream")
def delete_stream(
    name: str,
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
    webhooks, schemas of event types and feeds. The answer 409 names these, unless `cascade` deletes them as well.
    Alerts and other results stay. Events are refused at once, and the stream may be declared again, with empty state.
    """
    if dry_run:
        return StreamRemoval.of(name, services.streams.uses(name, preconditions), dry_run=True)
    if cascade:
        require_scope(caller, "admin")
    found = services.streams.remove(name, preconditions, is_cascading=cascade)
    return StreamRemoval.of(name, found, dry_run=False)


def _with_checks(services: Services, name: str, checks: SchemaChecks | None) -> SchemaUse:
    """The use of schemas of a stream, after its checks were turned on or off by a request."""
    types = services.stores.registry.event_types
    use = types.use(name)
    if checks is None or use.is_checked == (checks == "check"):
        return use
    return types.switch(name, is_checked=checks == "check")

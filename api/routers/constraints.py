"""Constraint sets: upload, list, look up, analyse, remove."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status

from api.access.auth import Calling
from api.errors import UnsupportedMediaType
from api.locations import creation, give_location
from api.requests.bodies import MediaType, RawBody
from api.requests.filters import StreamFilter, WantedPart, reachable
from api.requests.idempotency import IdempotentRoute
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.constraints import (
    EXAMPLE,
    YAML_EXAMPLE,
    AnalysisModel,
    ConstraintsList,
    ConstraintsModel,
    ConstraintsVersion,
    ConstraintsVersions,
)
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/constraints", tags=["constraints"], route_class=IdempotentRoute)

_JSON = "application/json"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        _JSON: {"schema": {"type": "object"}, "example": EXAMPLE},
        _YAML[0]: {"schema": {"type": "string"}, "example": YAML_EXAMPLE},
    },
}


@router.post(
    "",
    **creation("Upload the constraint set of a stream", "The stream has this set already.", ConstraintsModel),
    openapi_extra={"requestBody": _BODY},
)
@bounded
def upload_constraints(
    body: RawBody,
    media_type: MediaType,
    services: Served,
    response: Response,
    preconditions: Preconditions,
    stream: Annotated[str | None, Query(description="The stream, if the document does not name it.")] = None,
) -> ConstraintsModel:
    """Set the constraints of a stream. They apply to transactions that start later.

    Patterns that can no longer match stay registered, and the answer has a warning for each. If the document is
    refused, the error lists all of its problems, with their lines.
    """
    if media_type != _JSON and media_type not in _YAML:
        raise UnsupportedMediaType(f"media type {media_type!r} is not supported; send {_JSON} or {_YAML[0]}")
    report = services.registration.constraint_sets.upload(stream, body, preconditions)
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    give_location(response, "constraints", report.record.stream)
    give_tag(response, report.record)
    return ConstraintsModel.from_domain(report)


@router.get("", summary="List the constraint sets")
def list_constraints(services: Served, caller: Calling, stream: StreamFilter, part: WantedPart) -> ConstraintsList:
    """List the streams with a constraint set that the caller may access, each with the current version."""
    records = reachable(services.stores.registry.constraints.all(), caller, stream)
    return ConstraintsList(**part.of(records, "stream"))


@router.get("/{stream}", summary="Look up the constraint set of a stream")
@bounded
def get_constraints(stream: str, services: Served, response: Response) -> ConstraintsModel:
    """Look up the constraints in words, with warnings and notices."""
    report = services.registration.constraint_sets.current(stream)
    give_tag(response, report.record)
    return ConstraintsModel.from_domain(report)


@router.get("/{stream}/versions", summary="List the versions of a stream's constraint set")
def list_constraint_versions(stream: str, services: Served, part: WantedPart) -> ConstraintsVersions:
    """List all versions, the newest first. A transaction follows the version that was current when it started."""
    records = services.registration.constraint_sets.versions(stream)
    return ConstraintsVersions(**part.of(records[::-1], "version"))


@router.get("/{stream}/versions/{version}", summary="Look up a version of a stream's constraint set")
@bounded
def get_constraint_version(stream: str, version: int, services: Served, response: Response) -> ConstraintsVersion:
    """Look up a version: its constraints in words, and its settings."""
    record = services.registration.constraint_sets.version(stream, version)
    give_tag(response, record)
    return ConstraintsVersion.of_version(record)


@router.delete("/{stream}", status_code=status.HTTP_204_NO_CONTENT, summary="Remove the constraints of a stream")
@bounded
def delete_constraints(stream: str, services: Served, preconditions: Preconditions) -> None:
    """Remove all hand-written constraints of a stream. Transactions that start later do not follow them.

    The set remains, with an empty next version, because transactions that have started follow earlier versions. A
    stream that follows a workflow keeps the constraints of the workflow.
    """
    services.registration.constraint_sets.remove(stream, preconditions)


@router.get("/{stream}/analysis", summary="Analyse the constraint set of a stream")
@bounded
def analyse_constraints(stream: str, services: Served) -> AnalysisModel:
    """Analyse which types the monitor distinguishes, what the constraints do to each pattern, and which are unused.

    The analysis is computed for each call, from the registered patterns. With hundreds of constraints it takes seconds.
    """
    return AnalysisModel.of(*services.registration.constraint_sets.analysis(stream))

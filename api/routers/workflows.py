"""Workflows: operations to upload, list, look up, compare, draw, delete and follow models, and check transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Query, Response, status

from api.errors import UnsupportedMediaType, WrongShape
from api.pictures import PICTURE_HEADERS, SOURCE_HEADERS, SVG
from api.requests.bodies import MediaType, RawBody
from api.requests.filters import WantedPart
from api.requests.form import parse_document
from api.requests.idempotency import IdempotentRoute, once
from api.requests.preconditions import Preconditions, give_tag
from api.schemas.workflows import (
    BPMN_EXAMPLE,
    JSON_EXAMPLE,
    TREE_EXAMPLE,
    ConformanceList,
    ConformanceRequest,
    DerivedConstraints,
    DerivedKind,
    FollowedWorkflow,
    FollowRequest,
    Mode,
    ModelEnvelope,
    WorkflowDiff,
    WorkflowList,
    WorkflowModel,
    WorkflowVersion,
    WorkflowVersions,
)
from api.services import Served
from api.work import bounded
from service import Marks, ModelUpload, RegisteredWorkflow
from workflows import ModelFormat

router = APIRouter(prefix="/workflows", tags=["workflows"], route_class=IdempotentRoute)

_JSON = "application/json"
_XML = ("application/xml", "application/bpmn+xml", "text/xml")
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        _JSON: {"schema": {"$ref": "#/components/schemas/ModelEnvelope"}, "example": JSON_EXAMPLE},
        _YAML[0]: {"schema": {"type": "string"}, "example": TREE_EXAMPLE},
        **{kind: {"schema": {"type": "string"}, "example": BPMN_EXAMPLE} for kind in _XML[:2]},
    },
}

Version = Annotated[int | None, Query(ge=1, description="A version (default: the current one).")]


def upload_options(
    process: Annotated[str | None, Query(description="Id of the process, if the file has several.")] = None,
    stream: Annotated[str | None, Query(description="A stream that is to follow the workflow.")] = None,
    mode: Annotated[Mode, Query(description="How the stream follows the workflow.")] = "auto",
    pairs: Annotated[
        list[str] | None,
        Query(
            alias="map",
            description="TASK=TYPE: a task, by name or id, emits this event type; TASK=: the task is silent.",
        ),
    ] = None,
) -> ModelEnvelope:
    """Return the options in the query of an upload whose body is the model itself."""
    mapping: dict[str, str | None] = {}
    for pair in pairs or []:
        task, sign, event_type = pair.partition("=")
        if not task or not sign:
            raise WrongShape(f"query.map: {pair!r} is not TASK=TYPE; write TASK= for a silent task")
        mapping[task] = event_type or None
    options = {"process": process, "mapping": mapping, "stream": stream, "mode": None if mode == "auto" else mode}
    return ModelEnvelope(content="", **{name: value for name, value in options.items() if value})


def read_upload(
    name: str, body: RawBody, media_type: MediaType, options: Annotated[ModelEnvelope, Depends(upload_options)]
) -> ModelUpload:
    """Read the model of a request, with its options."""
    return _upload(name, body, media_type, options)


@router.put(
    "/{name}",
    status_code=status.HTTP_201_CREATED,
    summary="Upload a workflow",
    dependencies=[Depends(once)],
    openapi_extra={"requestBody": _BODY},
    responses={200: {"model": WorkflowModel, "description": "This model is already registered."}},
)
@bounded
def upload_workflow(
    upload: Annotated[ModelUpload, Depends(read_upload)],
    preconditions: Preconditions,
    services: Served,
    response: Response,
) -> WorkflowModel:
    """Register a model: BPMN 2.0, PNML, or a process tree in YAML or JSON. The model is compiled before the answer.

    The body is the file itself, with options in the query, or a JSON object with both. Another model under the same
    name is the next version, and streams that follow the workflow switch to it. If a model cannot be read or has no
    complete trace, it is refused, and the answer lists the faulty elements.
    """
    report = services.workflows.upload(replace(upload, condition=preconditions))
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    response.headers["ETag"] = _etag(report.record)
    return WorkflowModel.from_domain(report)


@router.get("", summary="List the workflows")
def list_workflows(services: Served, part: WantedPart) -> WorkflowList:
    """List all workflows by name, with the streams that follow them."""
    return WorkflowList(
        **part.of([WorkflowModel.from_domain(report) for report in services.workflows.workflows()], "name")
    )


@router.get("/{name}", summary="Look up a workflow")
def get_workflow(name: str, services: Served, response: Response) -> WorkflowModel:
    """Look up the model, how its constraints were found, the size of its automaton, and the streams that follow it."""
    report = services.workflows.workflow(name)
    response.headers["ETag"] = _etag(report.record)
    return WorkflowModel.from_domain(report)


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, summary="Delete a workflow")
def delete_workflow(name: str, services: Served, preconditions: Preconditions) -> None:
    """Delete a workflow that no stream follows."""
    services.workflows.delete(name, preconditions)


@router.get("/{name}/versions", summary="List the versions of a workflow")
def list_workflow_versions(name: str, services: Served, part: WantedPart) -> WorkflowVersions:
    """List all versions, the newest first."""
    records = services.stores.workflows.versions(name)
    return WorkflowVersions(**part.of([WorkflowVersion.from_record(record) for record in reversed(records)], "version"))


@router.get("/{name}/versions/{version}", summary="Look up a version of a workflow")
def get_workflow_version(name: str, version: int, services: Served, response: Response) -> WorkflowVersion:
    """Look up a version of the workflow."""
    record = services.workflows.workflow(name, version).record
    response.headers["ETag"] = _etag(record)
    return WorkflowVersion.from_record(record)


@router.get(
    "/{name}/versions/{version}/source",
    summary="Get the model of a version",
    response_class=Response,
    responses={
        200: {
            "content": {_JSON: {"schema": {}}, **{kind: {"schema": {"type": "string"}} for kind in (_XML[0], _YAML[0])}}
        }
    },
)
def get_workflow_source(name: str, version: int, services: Served) -> Response:
    """Return the model exactly as it was uploaded."""
    record, content = services.workflows.source(name, version)
    return Response(content, media_type=record.media_type, headers={**SOURCE_HEADERS, "ETag": _etag(record)})


@router.get("/{name}/constraints", summary="List the constraints of a workflow")
@bounded
def list_workflow_constraints(
    name: str,
    services: Served,
    kind: Annotated[
        list[DerivedKind] | None, Query(description="Only constraints of these kinds, such as prior.")
    ] = None,
    full: Annotated[
        bool, Query(description="List all constraints that hold, including those that follow from others.")
    ] = False,
    version: Version = None,
) -> DerivedConstraints:
    """List the constraints that every complete trace of the workflow keeps, each with its origin in the model."""
    return DerivedConstraints.of(services.workflows.derived(name, version), kind or [], is_full=full)


@router.get("/{name}/diff", summary="Compare two versions of a workflow")
@bounded
def compare_workflow_versions(
    name: str,
    services: Served,
    first: Annotated[int, Query(alias="from", ge=1, description="The first version.")],
    second: Annotated[int, Query(alias="to", ge=1, description="The second version.")],
) -> WorkflowDiff:
    """Compare two versions: whether they allow the same traces, and in which constraints and events they differ.

    The events are the event types and the end events.
    """
    return WorkflowDiff.from_domain(services.workflows.difference(name, first, second))


@router.get(
    "/{name}/picture.svg",
    summary="Draw a workflow",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
@bounded
def draw_workflow(
    name: str,
    services: Served,
    highlight: Annotated[list[str] | None, Query(description="Event types to highlight.")] = None,
    trace: Annotated[
        str | None,
        Query(
            description="Key of a transaction: its events and the possible next ones are highlighted; not together "
            "with highlight."
        ),
    ] = None,
    stream: Annotated[
        str | None, Query(description="The stream of the transaction, if several streams follow the workflow.")
    ] = None,
    version: Version = None,
) -> Response:
    """Draw the model as SVG: its own drawing if it has one, otherwise a computed layout."""
    if trace is not None and highlight:
        raise WrongShape("query: give highlight or trace, not both")
    marks = Marks(highlighted=highlight or [])
    if trace is not None:
        marks = services.workflows.marks_of_trace(name, trace, stream=stream, version=version)
    picture = services.workflows.picture(name, version, marks)
    return Response(picture, media_type=SVG, headers=PICTURE_HEADERS)


def _upload(name: str, body: bytes, media_type: str, options: ModelEnvelope) -> ModelUpload:
    if media_type in _XML:
        return _model_upload(name, body, media_type, options)
    if media_type in _YAML:
        return _model_upload(name, body, media_type, options, ModelFormat.TREE)
    if media_type != _JSON:
        raise UnsupportedMediaType(f"media type {media_type!r} is not supported; send {_XML[0]}, {_YAML[0]} or {_JSON}")
    document = parse_document(body)
    if not isinstance(document, dict) or "content" not in document:
        return _model_upload(name, body, media_type, options, ModelFormat.TREE)
    if beside := sorted(options.model_fields_set - {"content"}):
        raise WrongShape(f"query: with a JSON body that has content, these belong into the body: {', '.join(beside)}")
    envelope = ModelEnvelope.of(document)
    content = envelope.content
    if isinstance(content, dict):
        return _model_upload(name, orjson.dumps(content), _JSON, envelope, ModelFormat.TREE)
    kind = _XML[0] if content.lstrip("\ufeff \t\r\n").startswith("<") else _YAML[0]
    return _model_upload(
        name, content.encode(), kind, envelope, None if envelope.format is None else ModelFormat(envelope.format)
    )


def _model_upload(
    name: str, content: bytes, media_type: str, options: ModelEnvelope, model_format: ModelFormat | None = None
) -> ModelUpload:
    return ModelUpload(
        name=name,
        content=content,
        media_type=media_type,
        format=model_format,
        process=options.process,
        mapping=options.mapping,
        stream=options.stream,
        mode=options.mode,
    )


def _etag(record: RegisteredWorkflow) -> str:
    return f'"{record.tag}"'


conformance_router = APIRouter(prefix="/workflows", tags=["workflows"])


@conformance_router.post("/{name}/conformance", summary="Check transactions against a workflow")
@bounded
def check_conformance(
    name: str,
    request: ConformanceRequest,
    services: Served,
    version: Annotated[int | None, Query(ge=1, description="A version (default: the current one).")] = None,
) -> ConformanceList:
    """Check sequences of events.

    Each is a complete trace of the workflow, begins one, or leaves the workflow somewhere.
    """
    limit = services.settings.limits.max_batch_events
    record, conformances = services.workflows.conformance(name, request.to_domain(limit), version)
    return ConformanceList.of(record, conformances)


following_router = APIRouter(prefix="/streams", tags=["workflows"])


@following_router.put("/{stream}/workflow", summary="Let a stream follow a workflow")
@bounded
def follow_workflow(
    stream: str, request: FollowRequest, services: Served, response: Response, preconditions: Preconditions
) -> FollowedWorkflow:
    """Let a stream follow a workflow, in addition to its hand-written constraints, from the next transactions on.

    Later versions of the workflow are followed automatically. ``exact`` is refused if the workflow has no automaton
    within the limits.
    """
    report = services.workflows.follow(stream, request.workflow, request.mode, preconditions)
    give_tag(response, report.record)
    return FollowedWorkflow.from_domain(report)


@following_router.get("/{stream}/workflow", summary="Look up the workflow that a stream follows")
@bounded
def get_followed_workflow(stream: str, services: Served, response: Response) -> FollowedWorkflow:
    """Look up the workflow, the mode in which it is followed, and the resulting constraint set."""
    report = services.workflows.following(stream)
    give_tag(response, report.record)
    return FollowedWorkflow.from_domain(report)


@following_router.delete(
    "/{stream}/workflow", status_code=status.HTTP_204_NO_CONTENT, summary="Stop a stream from following its workflow"
)
@bounded
def unfollow_workflow(stream: str, services: Served, preconditions: Preconditions) -> None:
    """Stop following the workflow. Transactions that start later are checked against hand-written constraints only."""
    services.registration.constraint_sets.unfollow(stream, preconditions)

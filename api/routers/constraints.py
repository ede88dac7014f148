"""Constraint sets: upload, list, look up."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status

from api.bodies import MediaType, RawBody, parse_strict_json, parse_yaml
from api.errors import BodyTooLarge, StreamMissing, UnsupportedMediaType
from api.schemas.constraints import EXAMPLE, YAML_EXAMPLE, ConstraintsList, ConstraintsModel, ConstraintsSummary
from api.services import Served

router = APIRouter(prefix="/constraints", tags=["constraints"])

_JSON = "application/json"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_MOST_BYTES = 1_000_000  # YAML is read slowly
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        _JSON: {"schema": {"type": "object"}, "example": EXAMPLE},
        _YAML[0]: {"schema": {"type": "string"}, "example": YAML_EXAMPLE},
    },
}


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Upload the constraint set of a stream",
    openapi_extra={"requestBody": _BODY},
    responses={200: {"model": ConstraintsModel, "description": "The stream has this set already."}},
)
def upload_constraints(
    body: RawBody,
    media_type: MediaType,
    services: Served,
    response: Response,
    stream: Annotated[str | None, Query(description="The stream, if the document does not name it.")] = None,
) -> ConstraintsModel:
    """Give a stream its constraint set; transactions that begin later follow it.

    Patterns that can no longer match stay registered; the answer warns of them.
    """
    if len(body) > _MOST_BYTES:
        raise BodyTooLarge(f"a constraint document has at most {_MOST_BYTES} bytes", limit_bytes=_MOST_BYTES)
    if media_type != _JSON and media_type not in _YAML:
        raise UnsupportedMediaType(f"media type {media_type!r} is not read here; send {_JSON} or {_YAML[0]}")
    named, document = _split(body, media_type)
    if stream is None and named is None:
        raise StreamMissing("name the stream that the document is for: 'stream: NAME' in it, or ?stream=NAME")
    if stream is not None and named not in (None, stream):
        raise StreamMissing(f"the document is for the stream {named!r}, the query says {stream!r}; name one")
    report = services.registration.upload_constraints(stream or str(named), document)
    if not report.is_new:
        response.status_code = status.HTTP_200_OK
    return ConstraintsModel.from_domain(report)


@router.get("", summary="List the constraint sets")
def list_constraints(services: Served) -> ConstraintsList:
    """Which streams have a constraint set, and its version."""
    records = services.stores.registry.constraint_sets()
    return ConstraintsList(items=[ConstraintsSummary.from_domain(record) for record in records])


@router.get("/{stream}", summary="Look up the constraint set of a stream")
def get_constraints(stream: str, services: Served) -> ConstraintsModel:
    """The constraints in words, with warnings and notices."""
    return ConstraintsModel.from_domain(services.registration.constraints(stream))


def _split(body: bytes, media_type: str) -> tuple[str | None, object]:
    """The stream that a document names, and the rest of it; the text itself, which has lines, when it names none."""
    value = parse_strict_json(body) if media_type == _JSON else parse_yaml(body)
    if not isinstance(value, dict) or "stream" not in value:
        return None, body
    named = value.pop("stream")
    if not isinstance(named, str):
        raise StreamMissing(f"the stream of the document is a name in quotes, got {named!r}")
    return named, value

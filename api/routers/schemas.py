"""Schemas of the documents that this service accepts."""

from __future__ import annotations

from importlib.resources import files

import orjson
from fastapi import APIRouter, Response

from service import document_schema

router = APIRouter(prefix="/schemas", tags=["schemas"])

_MEDIA_TYPE = "application/schema+json"


@router.get(
    "/pattern",
    summary="Get the JSON Schema of patterns",
    response_class=Response,
    responses={200: {"content": {_MEDIA_TYPE: {"schema": {"type": "object"}}}}},
)
def get_pattern_schema() -> Response:
    """Return the JSON Schema (2020-12) of a pattern's JSON form, the ``definition`` in ``POST /v1/patterns``."""
    return Response(files("nfa.language").joinpath("pattern.schema.json").read_bytes(), media_type=_MEDIA_TYPE)


@router.get(
    "/project",
    summary="Get the JSON Schema of documents of a project",
    response_class=Response,
    responses={200: {"content": {_MEDIA_TYPE: {"schema": {"type": "object"}}}}},
)
def get_project_schema() -> Response:
    """Return the JSON Schema (2020-12) of the documents that ``forestall apply`` reads.

    Editors can use it for completion.
    """
    return Response(orjson.dumps(document_schema()), media_type=_MEDIA_TYPE)

"""Conformance: whether transactions follow a workflow."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.schemas.conformance import ConformanceList, ConformanceRequest
from api.services import Served
from api.work import bounded

router = APIRouter(prefix="/workflows", tags=["workflows"])


@router.post("/{name}/conformance", summary="Check transactions against a workflow")
@bounded
def check_conformance(
    name: str,
    request: ConformanceRequest,
    services: Served,
    version: Annotated[int | None, Query(ge=1, description="A version (default: the current one).")] = None,
) -> ConformanceList:
    """Whether sequences of events are complete traces of the workflow, beginnings of some, or leave it, and where."""
    limit = services.settings.limits.max_batch_events
    record, found = services.workflows.conformance(name, request.to_domain(limit), version)
    return ConformanceList.of(record, found)

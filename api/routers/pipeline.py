"""The state of the pipeline."""

from __future__ import annotations

from fastapi import APIRouter

from api.schemas.pipeline import PipelineModel
from api.services import Served
from service import pipeline_overview

router = APIRouter(prefix="/pipeline", tags=["pipeline"])


@router.get("", summary="Get the state of the pipeline")
def get_pipeline(services: Served) -> PipelineModel:
    """When the pipeline started, how its latest micro-batch spent its time, the backlog, and totals.

    Unknown values are null.
    """
    return PipelineModel.from_domain(pipeline_overview(services.stores, services.clock), services.settings.limits)

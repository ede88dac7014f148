"""The state of the pipeline."""

from __future__ import annotations

from fastapi import APIRouter

from api.schemas.pipeline import PipelineModel, PlanModel
from api.services import Served
from service import pipeline_overview, pipeline_plan

router = APIRouter(prefix="/pipeline", tags=["pipeline"])


@router.get("", summary="Get the state of the pipeline")
def get_pipeline(services: Served) -> PipelineModel:
    """When the pipeline started, how its latest micro-batch spent its time, the backlog, and totals.

    Unknown values are null.
    """
    return PipelineModel.of(pipeline_overview(services.stores, services.clock), services.settings.limits)


@router.get("/plan", summary="Get the plan of the pipeline")
def get_plan(services: Served) -> PlanModel:
    """Which task holds which shards, how far each shard is, and what the operators of each stream cost.

    Operators of one kind on one key of a stream share an engine: processor time is measured for the engine, results are
    counted for each operator. Recent events count more than older ones; figures are updated about once a second.
    """
    return PlanModel.model_validate(pipeline_plan(services.stores, services.settings, services.clock))

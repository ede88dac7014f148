"""The state of the pipeline, health and readiness, and metrics for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from api.errors import NotReady
from api.problems import READY_RESPONSES
from api.schemas.pipeline import Health, PipelineModel, PlanModel, Ready
from api.services import Served
from service import METRICS_FORM, HttpTimes, missing_parts, pipeline_overview, pipeline_plan, render_metrics

router = APIRouter(prefix="/pipeline", tags=["pipeline"])


@router.get("", summary="Get the state of the pipeline")
def get_pipeline(services: Served) -> PipelineModel:
    """Look up when the pipeline started, the time spent in its latest micro-batch, the backlog, and totals.

    Unknown values are null.
    """
    return PipelineModel.of(pipeline_overview(services.stores, services.clock), services.settings.limits)


@router.get("/plan", summary="Get the plan of the pipeline")
def get_plan(services: Served) -> PlanModel:
    """Look up which task owns which shards, the position of each shard, and the cost of each stream's operators.

    Operators of one kind on one key of a stream share an engine. Processor time is measured for the engine, and results
    are counted for each operator. Recent events count more than older ones. The figures are updated about once a
    second.
    """
    return PlanModel.model_validate(pipeline_plan(services.stores, services.settings, services.clock))


health_router = APIRouter(tags=["health"])


_OPEN: dict[str, Any] = {"security": []}  # requires no key


@health_router.get("/health", summary="Is the process up?", openapi_extra=_OPEN)
def get_health() -> Health:
    """Report that the API process is up. The rest of the service is not checked."""
    return Health()


@health_router.get(
    "/ready",
    summary="Is the service ready?",
    responses=READY_RESPONSES,
    openapi_extra=_OPEN,
)
def get_ready(services: Served) -> Ready:
    """Report whether the service is ready: Redis answers, and the pipeline has reported recently."""
    missing = missing_parts(services.stores, services.settings, services.clock)
    if missing:
        raise NotReady("; ".join(missing), missing=list(missing))
    return Ready()


metrics_router = APIRouter(tags=["pipeline"])


class MetricsResponse(PlainTextResponse):
    """An answer in the text format of Prometheus."""

    media_type = METRICS_FORM


@metrics_router.get("/metrics", summary="Metrics for Prometheus", response_class=MetricsResponse)
def get_metrics(request: Request, services: Served) -> MetricsResponse:
    """Return counters and gauges of the whole service, read from the stores, and times of this process's requests.

    Unknown values are left out.

    A key is required, as for other operations. Prometheus sends it with ``authorization`` in its scrape configuration.
    """
    times: HttpTimes = request.app.state.http_times
    content = render_metrics(services.stores, services.settings.limits, services.clock, times.metrics())
    return MetricsResponse(content)

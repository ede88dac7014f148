"""Metrics for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from api.services import Served
from service import METRICS_FORM, HttpTimes, render_metrics

router = APIRouter(tags=["pipeline"])


class MetricsResponse(PlainTextResponse):
    """The text form of Prometheus."""

    media_type = METRICS_FORM


@router.get("/metrics", summary="Metrics for Prometheus", response_class=MetricsResponse)
def get_metrics(request: Request, services: Served) -> MetricsResponse:
    """Counters and gauges of the whole service, read from the stores, and times of this process's requests.

    Unknown values are left out.

    A key is required as everywhere; Prometheus sends it with ``authorization`` in its scrape configuration.
    """
    times: HttpTimes = request.app.state.http_times
    content = render_metrics(services.stores, services.settings.limits, services.clock, times.metrics())
    return MetricsResponse(content)

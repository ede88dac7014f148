"""The application: its routers under ``/v1``, its errors, and what it opens and closes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

from api.auth import require_key
from api.bodies import BodyLimit
from api.errors import add_handlers
from api.problems import PROBLEM_RESPONSES
from api.routers import (
    alerts,
    analysis,
    backtests,
    conformance,
    constraints,
    corrections,
    dead_letters,
    deviations,
    dry_runs,
    endings,
    event_types,
    events,
    following,
    health,
    live,
    metrics,
    patterns,
    pipeline,
    punctuations,
    schemas,
    streams,
    timeouts,
    trace_ends,
    traces,
    webhooks,
    workflows,
)
from api.services import Services
from service import Settings, load_settings, open_stores
from streams import Clock, SystemClock

TITLE = "Forestall"
DESCRIPTION = "Complex event processing that knows the workflow behind the events."

_GUARDED = (
    streams,
    event_types,
    workflows,
    conformance,
    following,
    constraints,
    analysis,
    dry_runs,
    patterns,
    schemas,
    events,
    punctuations,
    trace_ends,
    traces,
    live,
    alerts,
    corrections,
    timeouts,
    endings,
    deviations,
    dead_letters,
    webhooks,
    pipeline,
    backtests,
)


def create_app(settings: Settings | None = None, clock: Clock | None = None) -> FastAPI:
    """The application.

    Args:
        settings: Read from the environment unless given.
        clock: The machine's unless given.

    Raises:
        SettingsInvalid: The environment is wrong.
    """
    settings = settings or load_settings()
    clock = clock or SystemClock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        with open_stores(settings) as stores:
            yield {"services": Services.of(stores, settings, clock)}

    app = FastAPI(title=TITLE, description=DESCRIPTION, version="1", lifespan=lifespan, redirect_slashes=False)
    app.add_middleware(BodyLimit, limit_bytes=settings.limits.max_body_bytes)
    add_handlers(app)
    guarded = APIRouter(dependencies=[Depends(require_key)], responses=PROBLEM_RESPONSES)
    for resource in _GUARDED:
        guarded.include_router(resource.router)
    app.include_router(guarded, prefix="/v1")
    app.include_router(metrics.router, dependencies=[Depends(require_key)], responses=PROBLEM_RESPONSES)
    app.include_router(health.router, prefix="/v1")
    return app

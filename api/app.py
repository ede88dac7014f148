"""The FastAPI application: routers under ``/v1``, error handlers, and the resources that its lifespan opens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, asynccontextmanager, nullcontext
from typing import Any

from fastapi import APIRouter, FastAPI, Security
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from api.access.auth import VERSION, authorize, scope_of, security_of
from api.access.direct import DirectRoute
from api.access.door import Door
from api.description import DESCRIPTION, SERVERS, TAGS, TITLE, DescribedApi, operation_id
from api.errors import add_handlers
from api.exchange import Exchange
from api.methods import HeadAsGet
from api.pages import add_pages
from api.problems import problem_responses
from api.requests.bodies import BodyLimit
from api.resources import Operations
from api.routers import (
    alerts,
    announcements,
    audit,
    backtests,
    calendars,
    constraints,
    dead_letters,
    event_types,
    events,
    incidents,
    keys,
    live,
    operators,
    patterns,
    pipeline,
    projects,
    results,
    schemas,
    sinks,
    stream_events,
    streams,
    tables,
    traces,
    webhooks,
    workflows,
)
from api.services import Services
from api.start_page import add_start_page
from api.validators import Validators
from api.work import BoundedWork, WorkPool, is_bounded
from service import HttpTimes, Scope, Settings, TracingSettings, load_settings, open_spans, open_stores
from shards import DOCUMENT_KINDS, KINDS, RESULT_KINDS, DocumentKind, result_table
from streams import Clock, SystemClock

# Each router, with the scope that its changes require. GET requires ``read``, unless that scope is ``admin``.
_ROUTERS: tuple[tuple[APIRouter, Scope], ...] = (
    (streams.router, "patterns"),
    (stream_events.router, "patterns"),
    (event_types.router, "patterns"),
    (tables.router, "patterns"),
    (calendars.router, "patterns"),
    (workflows.router, "patterns"),
    (workflows.conformance_router, "read"),  # its POST changes nothing
    (workflows.following_router, "patterns"),
    (constraints.router, "patterns"),
    (patterns.router, "patterns"),
    (schemas.router, "patterns"),
    (events.router, "ingest"),
    (announcements.router, "ingest"),
    (traces.router, "patterns"),
    (live.router, "patterns"),
    (alerts.router, "patterns"),
    (results.router, "patterns"),
    (incidents.router, "patterns"),
    (dead_letters.router, "patterns"),
    (webhooks.router, "patterns"),
    (sinks.router, "patterns"),
    (pipeline.router, "patterns"),
    (backtests.router, "patterns"),
    (projects.router, "patterns"),
    (keys.caller_router, "read"),
    (keys.router, "admin"),
    (audit.router, "admin"),
)

_OWN_PAGES: dict[str, Any] = {"redirect_slashes": False, "docs_url": None, "redoc_url": None}
_FEWEST_ZIPPED_BYTES = 2_000
_ZIP_LEVEL = 4
_EXPOSED = ("ETag", "Location", "Retry-After", "X-Request-Id", "RateLimit", "Idempotency-Replayed", "Deprecation")

_TABLE_UPLOADS = Route(f"{VERSION}/tables/{{name}}", tables.upload_table, methods=["PUT"])


def create_app(
    settings: Settings | None = None,
    clock: Clock | None = None,
    *,
    has_workers: bool = False,
    kinds: Sequence[DocumentKind] = DOCUMENT_KINDS,
) -> FastAPI:
    """Create the application. By default, the settings are read from the environment.

    With ``has_workers``, requests whose work may be large are answered by worker processes, which have limits. Workers
    always use the machine's clock. Each kind of operator in ``kinds`` gets its own operations.
    """
    settings = settings or load_settings()
    pool = WorkPool(create_worker, settings) if has_workers else None
    app = _application(settings, clock or SystemClock(), pool, kinds)
    if pool is not None:
        app.add_middleware(BoundedWork, pool=pool, limits=settings.work, routes=bounded_routes())
    app.add_middleware(
        BodyLimit,
        limit_bytes=settings.limits.max_body_bytes,
        timeout_s=settings.api_read_timeout_s,
        files=((_TABLE_UPLOADS, settings.limits.max_table_bytes),),
    )
    # This middleware runs before BodyLimit, so that callers are authenticated before bodies are read.
    app.add_middleware(Door, settings=settings)
    app.add_middleware(Validators)
    app.add_middleware(GZipMiddleware, minimum_size=_FEWEST_ZIPPED_BYTES, compresslevel=_ZIP_LEVEL)
    app.add_middleware(HeadAsGet)
    if settings.api_cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[origin.strip() for origin in settings.api_cors_origins.split(",")],
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
        )
    app.add_middleware(Exchange, times=app.state.http_times)
    return app


def create_worker(settings: Settings) -> FastAPI:
    """Create the application of a worker process. The parent process has already authenticated its requests."""
    return _application(settings.model_copy(update={"tracing": TracingSettings()}), SystemClock())


def _application(
    settings: Settings,
    clock: Clock,
    pool: WorkPool | None = None,
    kinds: Sequence[DocumentKind] = DOCUMENT_KINDS,
) -> FastAPI:
    """Create the application with its operations, but without the middleware that ``create_app`` adds."""
    spans = open_spans(settings.tracing, "api")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        with ExitStack() as ends:
            if spans is not None:
                ends.callback(spans.close)
            results = result_table((*KINDS, *kinds)) if kinds else RESULT_KINDS
            stores = ends.enter_context(open_stores(settings, result_kinds=results))
            context = {} if spans is None else {"context": spans.current}
            services = Services(stores, settings, clock, kinds=kinds, **context)
            ends.callback(services.questions.end)
            async with nullcontext() if pool is None else pool:
                yield {"services": services}

    app = DescribedApi(
        telemetry=_telemetry_of(None if spans is None else spans.provider),
        title=TITLE,
        description=DESCRIPTION,
        version="1",
        servers=SERVERS,
        openapi_tags=TAGS,
        generate_unique_id_function=operation_id,
        lifespan=lifespan,
        **_OWN_PAGES,
    )
    app.state.http_times = HttpTimes()
    add_handlers(app)
    app.router.middleware_stack = operations = Operations(app)
    for router, writing in _ROUTERS:
        _include(operations, router, writing, prefix=VERSION)
    for kind in kinds:
        if not kind.has_own_resource:
            _include(operations, operators.operator_router(kind), "patterns", prefix=VERSION)
        if kind.is_asked:
            _include(operations, operators.asking_router(kind), "read", prefix=VERSION)
    _include(operations, live.results_router, "read", prefix=VERSION)
    _include(operations, pipeline.metrics_router, "patterns")
    operations.include(pipeline.health_router, prefix=VERSION)
    add_pages(app)
    add_start_page(app)
    return app


def bounded_routes() -> list[Route]:
    """Return paths and methods of the operations that worker processes answer."""
    operations = [operation for router, _ in _ROUTERS for operation in router.routes if isinstance(operation, APIRoute)]
    return [
        Route(VERSION + operation.path, operation.endpoint, methods=operation.methods)
        for operation in operations
        if is_bounded(operation)
    ]


def _include(operations: Operations, router: APIRouter, writing: Scope, prefix: str = "") -> None:
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(router.routes), "a resource has operations only"
    for route in routes:
        scope = scope_of(route.methods or set(), writing)
        assert scope == "read" or not isinstance(route, DirectRoute), "a direct route checks no other scope"
        gate = Security(authorize, scopes=[scope])
        route.openapi_extra = (route.openapi_extra or {}) | security_of(scope)
        part = APIRouter(routes=[route])
        operations.include(part, prefix, dependencies=[gate], responses=problem_responses(route))


_METHOD, _PATH = "POST", "/v1/events"


def _telemetry_of(tracer_provider: Any) -> TelemetryConfig:
    """Return the settings of FastAPI's telemetry. Only requests that send events are traced."""
    return {
        "tracing": tracer_provider is not None,
        "tracer_provider": tracer_provider,
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,  # configuration is read from the environment by the settings only
        "exclude": _is_left_out,
    }


def _is_left_out(scope: MutableMapping[str, Any]) -> bool:
    return (scope.get("method"), scope.get("path")) != (_METHOD, _PATH)

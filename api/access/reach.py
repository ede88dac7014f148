"""The reach of a restricted key: the streams that the key may access.

Every request with such a key must name a stream, and the key must have access to each stream in the path, query or
body. The same rule applies to all present and future operations.

The tables in this module find the stream of a resource. A resource without an entry belongs to no stream and requires
an unrestricted key. A resource of a stream out of reach is answered as not found. Lists with pages require a stream.
Lists without pages show only resources within the key's reach.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from api.errors import Forbidden
from api.requests.form import query_names
from api.services import Services
from service import (
    AlertFilter,
    Caller,
    NotFound,
    UnknownAlert,
    UnknownBacktest,
    UnknownDeadLetter,
    UnknownIncident,
    UnknownOperator,
    UnknownPatternName,
    UnknownSink,
    UnknownWebhook,
)

Owner: TypeAlias = Callable[[Services, str], str | None]

# Key: the resource (first part of the path) and the name of the path parameter. Value: the function that finds the
# stream of a resource by its id or name, and the error if the resource does not exist.
_OWNERS: Mapping[tuple[str, str], tuple[Owner, type[NotFound]]] = {
    ("alerts", "alert_id"): (lambda services, id_: str(services.stores.alerts.get(id_)["stream"]), UnknownAlert),
    ("backtests", "backtest_id"): (lambda services, id_: services.stores.backtests.get(id_).stream, UnknownBacktest),
    ("dead-letters", "letter_id"): (
        lambda services, id_: str(services.stores.dead_letters.get(id_)["stream"]),
        UnknownDeadLetter,
    ),
    ("incidents", "incident_id"): (
        lambda services, id_: str(services.stores.incidents.get(id_)["stream"]),
        UnknownIncident,
    ),
    ("patterns", "name"): (lambda services, name: services.stores.registry.pattern(name).stream, UnknownPatternName),
    ("sinks", "sink_id"): (lambda services, id_: services.stores.webhooks.get(id_).stream, UnknownSink),
    ("webhooks", "webhook_id"): (lambda services, id_: services.stores.webhooks.get(id_).stream, UnknownWebhook),
}
_STREAMS = frozenset({("streams", "stream"), ("constraints", "stream"), ("traces", "stream")})
OWNED_PLACES = _STREAMS | _OWNERS.keys()
# In these resources, a body selects the results of an operator, which may be of any kind.
_FILTERING = frozenset({"sinks", "webhooks"})
_NAMING_PATTERNS = {"/patterns/dry-run": ("name",)}  # further members of bodies that name a pattern
# Path parameters that select a part of a resource. Another parameter identifies the resource.
_PARTS = frozenset({"delivery_id", "event_type", "key", "version"})
_OPEN_RESOURCES = frozenset({"caller", "schemas"})
_LISTS_WITHIN_REACH = frozenset({"streams", "constraints", "webhooks", "sinks", "backtests"})


def require_reach(request: Request, services: Services, caller: Caller, body: bytes) -> None:
    """Refuse a request by a restricted key unless it names streams, all within the key's reach.

    The error is ``Forbidden``. If a resource in the request is missing or out of reach, the error is ``NotFound``.
    """
    route: APIRoute = request.scope["route"]
    resource = route.path.split("/")[1]
    if resource in _OPEN_RESOURCES:
        return
    streams = [
        *_named_in_path(request, services, caller, resource),
        *_named_in_query(request, services, caller, route),
        *_named_in_body(services, caller, route, resource, body),
    ]
    if not streams and not _is_list_within_reach(request.method, route.path, services):
        raise Forbidden(
            f"{request.method} {request.url.path} is not about one stream, and the API key {caller.id} is restricted "
            f"to {_listed(caller)}; name the stream (stream=...) where that is possible, or use another key"
        )
    for stream in streams:
        if not caller.may_touch(stream):
            target = "what belongs to no stream" if stream is None else f"the stream {stream!r}"
            raise Forbidden(f"the API key {caller.id} may not touch {target}; it is restricted to {_listed(caller)}")


def _named_in_path(request: Request, services: Services, caller: Caller, resource: str) -> Iterator[str | None]:
    for name, value in request.path_params.items():
        place = (resource, name)
        if place in _STREAMS:
            yield value
        elif place in _OWNERS:
            if request.method != "PUT" or _exists(services, place, value):
                yield _stream_in_reach(services, caller, place, value)
        elif name == "name" and (kind := services.operators.kind_of(resource)) is not None:
            operators = services.stores.registry.operators(kind).all()
            if request.method != "PUT" or any(operator.name == value for operator in operators):
                yield _operator_stream_in_reach(services, caller, kind, value)
        elif name not in _PARTS:
            yield None


def _named_in_query(request: Request, services: Services, caller: Caller, route: APIRoute) -> Iterator[str | None]:
    declared = query_names(route.dependant)
    streams = request.query_params.getlist("stream") if "stream" in declared else []
    yield from streams
    for pattern in request.query_params.getlist("pattern") if "pattern" in declared else []:
        if not any(
            services.stores.alerts.page(AlertFilter(stream=stream, pattern=pattern), limit=1).items
            for stream in streams
        ):
            _require_filter_in_reach(services, caller, pattern)


def _named_in_body(
    services: Services, caller: Caller, route: APIRoute, resource: str, body: bytes
) -> Iterator[str | None]:
    """Yield the streams that a body names, and None if the body refers to more than streams.

    This is a body that selects all streams, a file or a workflow.
    """
    members = _members(route)
    if not members or not body:
        return
    try:
        document = json.loads(body)  # parsed in the same way as by the framework
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    stream = document.get("name") if route.path == "/streams" else document.get("stream")
    if isinstance(stream, str) or ("stream" in members and "stream" in document):
        yield stream if isinstance(stream, str) else None  # null selects every stream; other types are refused later
    for pattern in _patterns_in(document, resource, _NAMING_PATTERNS.get(route.path, ())):
        if resource in _FILTERING:
            _require_filter_in_reach(services, caller, pattern)
        else:
            _stream_in_reach(services, caller, ("patterns", "name"), pattern)
    if any(_names_file(document.get(member)) for member in members) or "workflow" in members:
        yield None  # files and workflows belong to no stream


def _members(route: APIRoute) -> frozenset[str]:
    form: Any = None if route.body_field is None else route.body_field.field_info.annotation
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    return frozenset(form.model_fields) if is_model else frozenset()


def _patterns_in(document: Mapping[str, Any], resource: str, more: Sequence[str]) -> Iterator[str]:
    """Yield the names of registered patterns in a body, from its usual members and the members ``more``.

    In a backtest, a string is a pattern's text, not its name.
    """
    for member in ("pattern", "against", *more):
        value = document.get(member)
        if isinstance(value, dict):
            value = value.get("name")
        elif resource == "backtests":
            value = None
        if isinstance(value, str):
            yield value
    resolves = document.get("resolves")
    if isinstance(resolves, dict) and isinstance(resolves.get("pattern"), str):
        yield resolves["pattern"]


def _names_file(value: object) -> bool:
    return isinstance(value, dict) and value.get("path") is not None


def _exists(services: Services, place: tuple[str, str], value: str) -> bool:
    """Return whether the resource that a PUT names in its path exists.

    If the resource is new, the stream is not known from the path, but is named in the body. ``place`` is the collection
    and the path parameter, such as ``("patterns", "name")``.
    """
    try:
        _OWNERS[place][0](services, value)
    except NotFound:
        return False
    return True


def _stream_in_reach(services: Services, caller: Caller, place: tuple[str, str], value: str) -> str:
    """Return the stream of a resource. Raise ``NotFound`` if it is out of reach. ``place`` is as in ``_exists``."""
    owner, missing = _OWNERS[place]
    try:
        stream = owner(services, value)
    except NotFound:
        stream = None
    if stream is None or not caller.may_touch(stream):
        raise missing(f"there is no {value!r}", name=value)
    return stream


def _require_filter_in_reach(services: Services, caller: Caller, name: str) -> None:
    """Check that the caller may access an operator by whose name results are filtered.

    Operators of several kinds may have this name. Access to one of them suffices, because results are also filtered by
    a stream that the caller may access.
    """
    try:
        operators = services.stores.registry.named(name)
    except UnknownPatternName:
        operators = []
    if not any(caller.may_touch(operator.stream) for operator in operators):
        raise UnknownPatternName(f"there is no {name!r}", name=name)


def _operator_stream_in_reach(services: Services, caller: Caller, kind: str, name: str) -> str:
    streams = [operator.stream for operator in services.stores.registry.operators(kind).all() if operator.name == name]
    if not streams or not caller.may_touch(streams[0]):
        raise UnknownOperator(f"there is no {kind} {name!r}", kind=kind, name=name)
    return streams[0]


def _is_list_within_reach(method: str, path: str, services: Services) -> bool:
    """Return whether an operation lists only resources within the caller's reach. Such lists have no pages."""
    resource = path.removeprefix("/")
    return method == "GET" and (resource in _LISTS_WITHIN_REACH or services.operators.kind_of(resource) is not None)


def _listed(caller: Caller) -> str:
    return ", ".join(caller.streams or ())

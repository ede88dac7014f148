"""What a key that is restricted to some streams reaches: every request says its stream, and each stream that it says,
in its path, its query or its body, is one of them.

One rule for all operations, known and to come: what a request names is looked up in the tables here, and whatever is
not in them belongs to no stream, so it wants a key that is not restricted. What is found by its id is answered like
something that is not there when it is of another stream. Lists are asked for with their stream; those that are not
paged need none and show what the key may touch.
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
    UnknownOperator,
    UnknownPatternName,
    UnknownWebhook,
)

Owner: TypeAlias = Callable[[Services, str], str | None]

# How the stream of what is found by its id or name is looked up, and what is said where there is none such; by
# resource, which is the first part of the path, and name of the parameter.
_OWNED: Mapping[tuple[str, str], tuple[Owner, type[NotFound]]] = {
    ("alerts", "alert_id"): (lambda services, id_: str(services.stores.alerts.get(id_)["stream"]), UnknownAlert),
    ("backtests", "backtest_id"): (lambda services, id_: services.stores.backtests.get(id_).stream, UnknownBacktest),
    ("dead-letters", "letter_id"): (
        lambda services, id_: str(services.stores.dead_letters.get(id_)["stream"]),
        UnknownDeadLetter,
    ),
    ("patterns", "name"): (lambda services, name: services.stores.registry.operator(name).stream, UnknownPatternName),
    ("webhooks", "webhook_id"): (lambda services, id_: services.stores.webhooks.get(id_).stream, UnknownWebhook),
}
_STREAMS = frozenset({("streams", "name"), ("streams", "stream"), ("constraints", "stream"), ("traces", "stream")})
OWNED_PLACES = _STREAMS | _OWNED.keys()
_NAMING_PATTERNS = {"/patterns/dry-run": ("name",)}  # members of bodies that name a pattern, beside those everywhere
_PARTS = frozenset({"delivery_id", "event_type", "key", "version"})  # of what another parameter names
_OF_EVERYBODY = frozenset({"schemas"})
_SHOWS_OWN = frozenset({"streams", "patterns", "constraints", "webhooks", "backtests"})


def require_reach(request: Request, services: Services, caller: Caller, body: bytes) -> None:
    """Refuse a request of a restricted caller that names another stream than theirs, or none.

    Raises:
        Forbidden: It does.
        NotFound: It names by its id what is not there, or is of another stream.
    """
    route: APIRoute = request.scope["route"]
    resource = route.path.split("/")[1]
    if resource in _OF_EVERYBODY:
        return
    named = [
        *_named_in_path(request, services, caller, resource),
        *_named_in_query(request, services, caller, route),
        *_named_in_body(services, caller, route, resource, body),
    ]
    if not named and not _shows_own(request.method, route.path, services):
        raise Forbidden(
            f"{request.method} {request.url.path} is not about one stream, and the API key {caller.id} is restricted "
            f"to {_listed(caller)}; name the stream (stream=...) where that is possible, or use another key"
        )
    for stream in named:
        if not caller.may_touch(stream):
            what = "what belongs to no stream" if stream is None else f"the stream {stream!r}"
            raise Forbidden(f"the API key {caller.id} may not touch {what}; it is restricted to {_listed(caller)}")


def _named_in_path(request: Request, services: Services, caller: Caller, resource: str) -> Iterator[str | None]:
    for name, value in request.path_params.items():
        place = (resource, name)
        if place in _STREAMS:
            yield value
        elif place in _OWNED:
            yield _own(services, caller, place, value)
        elif name == "name" and (kind := services.operators.kind_of(resource)) is not None:
            yield _owned_operator(services, caller, kind, value)
        elif name not in _PARTS:
            yield None


def _named_in_query(request: Request, services: Services, caller: Caller, route: APIRoute) -> Iterator[str | None]:
    """What is said in the query, where the operation listens to it."""
    declared = query_names(route.dependant)
    streams = request.query_params.getlist("stream") if "stream" in declared else []
    yield from streams
    for pattern in request.query_params.getlist("pattern") if "pattern" in declared else []:
        if not any(
            services.stores.alerts.page(AlertFilter(stream=stream, pattern=pattern), limit=1).alerts
            for stream in streams
        ):
            _own(services, caller, ("patterns", "name"), pattern)


def _named_in_body(
    services: Services, caller: Caller, route: APIRoute, resource: str, body: bytes
) -> Iterator[str | None]:
    """What a body names whose form is declared; of others, which are files, nothing is asked but the query."""
    members = _members(route)
    if not members or not body:
        return
    try:
        document = json.loads(body)  # read as the framework reads it
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    stream = document.get("name") if route.path == "/streams" else document.get("stream")
    if isinstance(stream, str) or ("stream" in members and "stream" in document):
        yield stream if isinstance(stream, str) else None  # null is every stream, and what is no text is refused anyhow
    for pattern in _patterns_in(document, resource, _NAMING_PATTERNS.get(route.path, ())):
        _own(services, caller, ("patterns", "name"), pattern)
    if any(_names_file(document.get(member)) for member in members) or "workflow" in members:
        yield None  # files and workflows are of no stream


def _members(route: APIRoute) -> frozenset[str]:
    """Names of what the body of an operation may hold; none where it is not declared."""
    form: Any = None if route.body_field is None else route.body_field.field_info.annotation
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    return frozenset(form.model_fields) if is_model else frozenset()


def _patterns_in(document: Mapping[str, Any], resource: str, more: Sequence[str]) -> Iterator[str]:
    """Names of registered patterns; a backtest names them in objects, and otherwise has their text."""
    for member in ("pattern", "against", *more):
        value = document.get(member)
        if isinstance(value, dict):
            value = value.get("name")
        elif resource == "backtests":
            value = None
        if isinstance(value, str):
            yield value


def _names_file(value: object) -> bool:
    return isinstance(value, dict) and value.get("path") is not None


def _own(services: Services, caller: Caller, place: tuple[str, str], value: str) -> str:
    """The stream of something that is found by its id and that the caller may touch.

    Raises:
        NotFound: It is not there, or of another stream.
    """
    owner, missing = _OWNED[place]
    try:
        stream = owner(services, value)
    except NotFound:
        stream = None
    if stream is None or not caller.may_touch(stream):
        raise missing(f"there is no {value!r}", name=value)
    return stream


def _owned_operator(services: Services, caller: Caller, kind: str, name: str) -> str:
    """The stream of an operator that the caller may touch.

    Raises:
        UnknownOperator: It is not there, or of another stream.
    """
    streams = [operator.stream for operator in services.operators.all(kind) if operator.name == name]
    if not streams or not caller.may_touch(streams[0]):
        raise UnknownOperator(f"there is no {kind} {name!r}", kind=kind, name=name)
    return streams[0]


def _shows_own(method: str, path: str, services: Services) -> bool:
    """Whether an operation is a list that is not paged, which shows what the caller may touch."""
    resource = path.removeprefix("/")
    return method == "GET" and (resource in _SHOWS_OWN or services.operators.kind_of(resource) is not None)


def _listed(caller: Caller) -> str:
    return ", ".join(caller.streams or ())

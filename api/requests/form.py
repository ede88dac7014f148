"""The form of a request, checked for every operation alike, before its content is interpreted.

The query has only parameters that the operation declares, and the body is JSON without integers beyond 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from api.errors import WrongShape
from api.requests.bodies import parse_json, require_json

_LARGEST = 2**63 - 1
_SMALLEST = -(2**63)
_SMALL = 16_384  # bytes that are parsed at once; a thread for them would cost more


async def require_form(request: Request, body: bytes) -> None:
    """Refuse a request that does not have its operation's form; faults that its model finds are not checked here.

    The query may have no undeclared parameter; a body must be declared as JSON, be JSON, and have no integer beyond 64
    bits.
    """
    route: APIRoute = request.scope["route"]
    _require_known(request, query_names(route.dependant))
    field = route.body_field
    if field is None:  # none, or read by the operation itself, as events and files are
        return
    if body or "content-type" in request.headers or field.field_info.is_required():
        require_json(request)
    if len(body) > _SMALL:
        await run_in_threadpool(parse_document, body)
    elif body:
        parse_document(body)


def query_names(dependant: Dependant) -> frozenset[str]:
    """The query parameters of an operation and its dependencies."""
    return frozenset(_query_names(dependant))


def parse_document(body: bytes) -> Any:
    """The value of a JSON body that is stored as it is.

    ``WrongShape`` for an integer beyond 64 bits, which not every reader of JSON accepts.
    """
    value = parse_json(body)
    for place in _beyond(value, "body"):
        raise WrongShape(f"{place}: an integer beyond 64 bits; write it with an exponent, or as text")
    return value


def _query_names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _query_names(part)


def _require_known(request: Request, names: frozenset[str]) -> None:
    unknown = sorted(set(request.query_params) - names)
    if not unknown:
        return
    known = f"there are {', '.join(sorted(names))}" if names else "there are none"
    raise WrongShape("; ".join(f"query.{name}: not a parameter of this operation; {known}" for name in unknown))


def _beyond(value: object, place: str) -> Iterator[str]:
    """Paths of the integers beyond 64 bits in a value."""
    waiting = [(place, value)]
    while waiting:
        at, found = waiting.pop()
        if isinstance(found, Mapping):
            waiting.extend((f"{at}.{name}", item) for name, item in found.items())
        elif isinstance(found, list):
            waiting.extend((f"{at}.{index}", item) for index, item in enumerate(found))
        elif isinstance(found, int) and not _SMALLEST <= found <= _LARGEST:
            yield at

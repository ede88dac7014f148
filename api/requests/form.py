"""Checks of a request's form, the same for all operations, before the content is interpreted.

The query may contain only declared parameters, each once unless it is repeatable. A body is JSON without integers
beyond 64 bits and without repeated members.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args, get_origin

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from api.errors import WrongShape
from api.requests.bodies import parse_json, require_json
from api.wire import LONGEST_NAME

_LARGEST = 2**63 - 1
_SMALLEST = -(2**63)
SMALL = 16_384  # bytes; for a body this small, a thread would cost more than parsing


async def require_form(request: Request, body: bytes) -> None:
    """Refuse a request that does not have its operation's form. The operation's model checks the body's content later.

    A body must be declared as JSON. If an optional body is missing, no declaration is needed.
    """
    route: APIRoute = request.scope["route"]
    fields = list(_query_fields(route.dependant))
    _require_known(request, frozenset(field.alias for field in fields))
    _require_single(request, [field.alias for field in fields if not _is_repeatable(field)])
    field = route.body_field
    if field is None:  # no body, or the operation reads the body itself, such as events and files
        return
    if body or "content-type" in request.headers or field.field_info.is_required():
        require_json(request)
    if len(body) > SMALL:
        await run_in_threadpool(parse_document, body)
    elif body:
        parse_document(body)


def query_names(dependant: Dependant) -> frozenset[str]:
    """Return the query parameters of an operation and of its dependencies."""
    return frozenset(field.alias for field in _query_fields(dependant))


def parse_document(body: bytes) -> Any:
    """Parse a JSON body that is stored unchanged.

    Raises ``WrongShape`` for an integer beyond 64 bits, which some JSON readers do not accept. Also raises
    ``WrongShape`` for a repeated member, because JSON readers disagree on which value counts.
    """
    value = parse_json(body)
    for place in _large_integers(value, "body"):
        raise WrongShape(f"{place}: an integer beyond 64 bits; write it with an exponent, or as text")
    with suppress(RecursionError):  # the model refuses such deep nesting
        _MEMBERS.decode(body.decode(errors="surrogatepass"))
    return value


def _query_fields(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for part in dependant.dependencies:
        yield from _query_fields(part)


def _is_repeatable(field: ModelField) -> bool:
    form = field.field_info.annotation
    return any(get_origin(part) is list for part in (form, *get_args(form)))


def _require_single(request: Request, names: Sequence[str]) -> None:
    twice = [name for name in names if len(request.query_params.getlist(name)) > 1]
    if twice:
        raise WrongShape(*(f"query.{name}: given twice; give it once" for name in dict.fromkeys(twice)))


def _require_single_members(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise WrongShape(f"body: the member {twice[:LONGEST_NAME]!r} is given twice in one object; give it once")


def _require_known(request: Request, names: frozenset[str]) -> None:
    unknown = sorted(set(request.query_params) - names)
    if not unknown:
        return
    listing = f"there are {', '.join(sorted(names))}" if names else "there are none"
    raise WrongShape(*(f"query.{name}: not a parameter of this operation; {listing}" for name in unknown))


_MEMBERS = json.JSONDecoder(object_pairs_hook=_require_single_members, parse_int=float)


def _large_integers(value: object, place: str) -> Iterator[str]:
    pending = [(place, value)]
    while pending:
        path, part = pending.pop()
        if isinstance(part, Mapping):
            pending.extend((f"{path}.{name}", item) for name, item in part.items())
        elif isinstance(part, list):
            pending.extend((f"{path}.{index}", item) for index, item in enumerate(part))
        elif isinstance(part, int) and not _SMALLEST <= part <= _LARGEST:
            yield path
